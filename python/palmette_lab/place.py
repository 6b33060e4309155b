"""A lab as a place of benchmarks: what the measuring commands of palmette run on, with links that can be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from palmette.measure.links import LinkLog, Load
from palmette.measure.running import run_to_end
from palmette.mpi.install import Installation
from palmette_lab.lab import Lab
from palmette_lab.lab import state as lab_state
from palmette_lab.traffic import Traffic, background


class LabLinks:
    """The links of a lab: their counters, and traffic that loads them."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def logging(self, period_s: float) -> AbstractContextManager[Callable[[], LinkLog]]:
        """Log the bytes over all links. Raises LabError."""
        return self._lab.logging_links(period_s)

    def background(self, traffic: str) -> AbstractContextManager[Load]:
        """Run traffic for as long as the context lasts. Raises LabError, BenchError."""
        return background(self._lab, Traffic.parse(traffic))


class LabPlace:
    """An emulated cluster that is up."""

    mpi: Installation | None = None
    folder: Path | None = None
    clock = "shared"
    spins = False

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.links = LabLinks(lab)

    @property
    def description(self) -> str:
        delay = self.lab.state.spine_delay_s
        limits = f" ({'; '.join(self.lab.state.limits)})" if self.lab.state.limits else ""
        return f"lab {self.lab.state.spec}" + (f", spine delay {delay * 1e3:g} ms" if delay else "") + limits

    @property
    def options(self) -> list[str]:
        delay = self.lab.state.spine_delay_s
        return ["--lab", self.lab.state.spec, *(["--spine-delay", f"{delay * 1e3:g}ms"] if delay else [])]

    @property
    def topology_path(self) -> Path:
        return self.lab.topology_path

    def place(self, placement: str, ppn: int | None, ranks: int | None) -> list[str]:
        """Return the host of each rank. Raises PlacementError."""
        return self.lab.place(placement, ppn=ppn, ranks=ranks)

    def run(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str], timeout_s: float,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run `argv` on the lab. Raises LabError."""
        return run_to_end(self.command(mpi, hosts, argv, env), timeout_s=timeout_s, capture=True, stdin=stdin)

    def command(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str]
    ) -> list[str]:
        """Return the command line that runs `argv` on the lab. Raises LabError."""
        return self.lab.command(mpi, hosts, argv, env)

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Take the rates off for a while."""
        with self.lab.unlimited():
            yield


def free_lab_name(wanted: str) -> str:
    """Return `wanted`, or a name made of it where a lab of that name is up."""
    found = lab_state.read_state(lab_state.lab_directory(wanted))
    return f"{wanted}-{os.getpid()}" if found is not None and found.is_alive() else wanted
