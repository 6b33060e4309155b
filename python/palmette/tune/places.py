"""Where the tune program runs: at a place of `palmette bench` (a lab, local ranks), or by a user's launcher line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from palmette.lab.running import run_to_end
from palmette.measure.places import Place
from palmette.mpi.abi import SONAMES, Abi, abi_of_launcher, measuring_program, preload_library
from palmette.mpi.install import Installation
from palmette.mpi.launch import identify
from palmette.run import prepare
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
        abi = abi_of_launcher(mpi.launcher)
        assert abi is not None, "every MPI of mpi_install has a launcher of its own"
        self._program, self._preload = program(abi), preload_library(abi)

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
    placement = "as launched"
    hosts: list[str] | None = None

    def __init__(self, words: Sequence[str], topology: Path | None, abi: Abi | None = None) -> None:
        self._words = list(words)
        self.topology_path = topology
        # Unknown; a wrong guess would only affect how ranks wait.
        self.spins = False
        launcher = shutil.which(self._words[0])
        known = identify(Path(launcher)) if launcher is not None else None
        if known is None:
            raise TuneError(
                f"{self._words[0]} is no launcher that palmette knows; write the line as you would before a program: "
                "-- mpiexec -n 64"
            )
        found = abi or abi_of_launcher(known.kind)
        if found is None:
            raise TuneError(f"{self._words[0]} starts programs of any MPI; say --abi mpich, ompi or abi")
        self._abi: Abi = found
        self._program = program(found)
        # A user's program finds its MPI by the RPATH of its compiler; the tune program has none.
        self._libraries = _libraries_of(Path(launcher or self._words[0]), found)

    @property
    def description(self) -> str:
        return " ".join(self._words)

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run the line with the tune program behind it. Raises RunError."""
        given = {"PALMETTE_SITE": "0", **self._libraries, **variables}  # as on other places
        prepared = prepare([*self._words, str(self._program), *arguments], given, os.environ, abi=self._abi)
        assignments = [f"{name}={value}" for name, value in prepared.environment.items()]
        return run_to_end(["env", *assignments, *prepared.command], timeout_s=timeout_s, capture=True)


def _libraries_of(launcher: Path, abi: Abi) -> dict[str, str]:
    """Return LD_LIBRARY_PATH with the MPI library of a launcher's installation; empty where there is none."""
    prefix = launcher.resolve().parent.parent
    for folder in (prefix / "lib", prefix / "lib64"):
        if (folder / SONAMES[abi]).exists() and prefix != Path("/usr"):
            known = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
            return {"LD_LIBRARY_PATH": ":".join(dict.fromkeys([str(folder), *known]))}
    return {}
