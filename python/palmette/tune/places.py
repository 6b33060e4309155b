"""Where the tune program runs: at a place of `palmette bench` (a lab, local ranks), or by a user's launcher line."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from palmette.measure.lines import AS_LAUNCHED, Line
from palmette.measure.places import Place
from palmette.measure.running import run_to_end
from palmette.mpi.abi import measuring_program, preload_library
from palmette.mpi.install import Installation
from palmette.run.preload import NAME as LD_PRELOAD
from palmette.tune.errors import TuneError


class Site(Protocol):
    """Something that runs the tune program on the same ranks again and again."""

    @property
    def description(self) -> str:
        """One line for people."""
        ...

    @property
    def mpi(self) -> str:
        """mpich, openmpi or impi; empty where only the ranks know."""
        ...

    @property
    def placement(self) -> str:
        """How ranks are placed, in a word."""
        ...

    @property
    def hosts(self) -> list[str] | None:
        """The host of each rank; None where only the ranks know."""
        ...

    @property
    def topology_path(self) -> Path | None:
        """The topology.json of the place, where there is one."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where files of jobs must lie; None: anywhere."""
        ...

    @property
    def spins(self) -> bool:
        """Whether there is a core for each rank."""
        ...

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the tune program with PALMETTE_ variables in the ranks; status 124 at the time limit."""
        ...


def program(abi: str) -> Path:
    """Return the tune program for an ABI. Raises TuneError when it isn't built."""
    return measuring_program("tune", abi, TuneError)


class PlaceSite:
    """An MPI and a placement at a place of `palmette bench`."""

    def __init__(
        self, place: Place, mpi: Installation, placement: str, ppn: int | None = None, ranks: int | None = None
    ) -> None:
        self._place, self._mpi, self.placement = place, mpi, placement
        self.hosts: list[str] | None = place.place(placement, ppn, ranks)
        self._program, self._preload = program(mpi.abi), preload_library(mpi.abi)

    @property
    def description(self) -> str:
        return f"{self._place.description}, {self.placement}, {self._mpi.name} {self._mpi.version}"

    @property
    def mpi(self) -> str:
        return self._mpi.name

    @property
    def topology_path(self) -> Path | None:
        return self._place.topology_path

    @property
    def folder(self) -> Path | None:
        return self._place.folder

    @property
    def spins(self) -> bool:
        return self._place.spins

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run by the place."""
        assert self.hosts is not None
        environment = {"LD_PRELOAD": str(self._preload), **variables}
        return self._place.run(self._mpi, self.hosts, [str(self._program), *arguments], environment, timeout_s)


class LineSite:
    """A launcher line of the user's without a program: `mpiexec -n 64 --hostfile hosts`."""

    mpi = ""
    placement = AS_LAUNCHED
    hosts: list[str] | None = None

    def __init__(self, words: Sequence[str], topology: Path | None, abi: str | None = None) -> None:
        self._line = Line.read(words, abi)
        self.topology_path = topology
        # Unknown; a wrong guess would only affect how ranks wait.
        self.spins = False
        self._program, self._preload = program(self._line.abi), preload_library(self._line.abi)

    @property
    def description(self) -> str:
        return self._line.text

    @property
    def folder(self) -> Path:
        return Path.cwd()

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the line with the tune program behind it. Raises BenchError."""
        given = {LD_PRELOAD: str(self._preload), **variables}
        return run_to_end(
            self._line.command([str(self._program), *arguments], given), timeout_s=timeout_s, capture=True
        )
