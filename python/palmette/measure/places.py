"""Where a benchmark runs, and local ranks as one such place; lines.py has launcher lines."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from palmette.measure.errors import BenchError
from palmette.measure.links import Links
from palmette.measure.running import run_to_end
from palmette.mpi import launch
from palmette.mpi.abi import measuring_program
from palmette.mpi.install import Installation
from palmette.topology import file as topology_file


class Place(Protocol):
    """Something that runs MPI programs with ranks on chosen hosts."""

    @property
    def description(self) -> str:
        """One line for people: what it is."""
        ...

    @property
    def options(self) -> list[str]:
        """Options of `palmette bench` that name the place."""
        ...

    @property
    def topology_path(self) -> Path | None:
        """The topology.json of the place, None where nothing is known."""
        ...

    @property
    def mpi(self) -> Installation | None:
        """The only MPI that runs there; None: whichever is installed."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where files of jobs must lie; None: anywhere on this machine."""
        ...

    @property
    def clock(self) -> str:
        """shared, or barrier where the hosts' clocks differ."""
        ...

    @property
    def spins(self) -> bool:
        """Whether there is a core for each rank, so that ranks may spin while they wait."""
        ...

    @property
    def links(self) -> Links | None:
        """The counters of its links, and what can load them; None where they can't be read."""
        ...

    def place(self, placement: str, ppn: int | None, ranks: int | None) -> list[str]:
        """Return the host of each rank."""
        ...

    def run(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str], timeout_s: float,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run `argv` with rank i on `hosts[i]` and `env` in the ranks; status 124 at the time limit."""
        ...

    def command(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str]
    ) -> list[str]:
        """Return the command line that does so."""
        ...

    def unlimited(self) -> Any:
        """Return a context in which links have no rate limit. Raises BenchError where there is none."""
        ...


class LocalPlace:
    """Ranks on this machine alone; there is nothing to place and no link."""

    topology_path = None
    links = None
    mpi: Installation | None = None
    folder: Path | None = None
    clock = "shared"

    def __init__(self, ranks: int, directory: Path) -> None:
        self.ranks = ranks
        self.directory = directory
        self.spins = ranks <= len(os.sched_getaffinity(0))

    @property
    def description(self) -> str:
        return f"{self.ranks} local ranks" + (", each bound to a core" if self.spins else "")

    @property
    def options(self) -> list[str]:
        return ["--local", str(self.ranks)]

    def place(self, placement: str, ppn: int | None, ranks: int | None) -> list[str]:
        """Return this machine for each rank."""
        return ["localhost"] * (ranks or self.ranks)

    def run(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str], timeout_s: float,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run `argv` here: ranks bound to cores and polling where each has one; oversubscribed, ranks yield."""
        return run_to_end(self.command(mpi, hosts, argv, env), timeout_s=timeout_s, capture=True, stdin=stdin)

    def command(
        self, mpi: Installation, hosts: Sequence[str], argv: Sequence[str], env: Mapping[str, str]
    ) -> list[str]:
        """Return the command line that runs `argv` here."""
        settings = _BOUND if self.spins else _YIELDING
        job = launch.Job(argv, hosts, self.directory, {**mpi.environment(), **settings[mpi.name], **_APART, **env})
        starter = launch.launcher(mpi.launcher)
        variables = {**mpi.environment(), **starter.environment(job)}
        if self.spins:
            passed = starter.pass_environment(job.environment)
            command = [str(mpi.mpiexec), *_bind_options(mpi), *passed, "-n", str(len(hosts)), *argv]
        else:
            command = starter.command(mpi.mpiexec, job)
        return launch.with_variables(variables, command)

    def unlimited(self) -> Any:
        """Raise BenchError: no rates are set here."""
        raise BenchError("--floor needs a lab: local ranks have no link rates to take off; leave it out or give --lab")


def _bind_options(mpi: Installation) -> list[str]:
    """Return what binds each local rank to a core of its own."""
    if mpi.launcher == "hydra":
        return ["-bind-to", "core"]
    if mpi.launcher == "prrte":
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [*root, "--map-by", "core", "--bind-to", "core"]
    return []


_APART = {"PALMETTE_SITE": "0"}
"""What files say to every job isn't measured: a place has a topology and settings of its own."""
_BOUND: dict[str, dict[str, str]] = {
    "mpich": {},
    "impi": {"I_MPI_PIN": "1", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": "core"},
    "openmpi": {},
}
"""Intel MPI takes the binding of ranks from variables."""

_YIELDING: dict[str, dict[str, str]] = {
    "mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"},
    "impi": {"I_MPI_WAIT_MODE": "1", "I_MPI_PIN": "0"},
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
}
"""On an oversubscribed node, polling without yielding measures the scheduler."""


def program(abi: str) -> Path:
    """Return the benchmark program for an ABI. Raises BenchError when it isn't built."""
    return measuring_program("collbench", abi, BenchError)


def read_topology(path: Path | None) -> dict[str, Any] | None:
    """Return a topology.json as a dictionary, checked. Raises TopologyError."""
    return topology_file.load(path).to_json() if path is not None else None
