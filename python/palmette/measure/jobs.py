"""How the program `calibrate` is started: on a lab, as local ranks, or by a launcher's line of the user's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from palmette.lab.running import terminations_raised
from palmette.measure.errors import CalibrateError
from palmette.measure.places import LocalPlace, Place
from palmette.measure.session import Session
from palmette.mpi.abi import ABIS, SONAMES, Abi, abi_of_launcher, measuring_program
from palmette.mpi.errors import RunError
from palmette.mpi.install import Installation
from palmette.mpi.launch import identify
from palmette.run.command_line import read_command_line
from palmette.run.launcher_options import LauncherOptions

PROGRAM = "calibrate"


@dataclass(frozen=True)
class JobCommand:
    """A command line that runs the program, and the environment for it (None: this process's).

    `shares_processors`: the ranks share processors that they'd have for themselves on a real machine, so that only
    one pair may be busy.
    """

    words: list[str]
    description: str
    shares_processors: bool
    environment: dict[str, str] | None = field(default=None, repr=False)


def program(abi: Abi, name: str = PROGRAM) -> Path:
    """Return the program for an ABI. Raises CalibrateError when it isn't built."""
    return measuring_program(name, abi, CalibrateError)


def on_place(place: Place, mpi: Installation, placement: str, ppn: int | None, ranks: int | None) -> JobCommand:
    """Return the command for a lab or local ranks. Raises CalibrateError, LabError, PlacementError."""
    abi = abi_of_launcher(mpi.launcher)
    assert abi is not None, "every MPI of mpi_install has a launcher of its own"
    hosts = place.place(placement, ppn, ranks)
    words = place.command(mpi, hosts, [str(program(abi))], {})
    shares = not isinstance(place, LocalPlace) or not place.spins
    return JobCommand(words, f"{place.description}, {mpi.name} {mpi.version}", shares)


def by_launcher(
    words: Sequence[str], abi: str | None, environment: Mapping[str, str], name: str = PROGRAM
) -> JobCommand:
    """Return the command for a launcher's line without a program: `mpiexec -n 64 -hosts ...`. Raises CalibrateError."""
    path = shutil.which(words[0], path=environment.get("PATH"))
    found = identify(Path(path)) if path is not None else None
    if path is None or found is None:
        raise CalibrateError(
            f"{words[0]}: {'no such program' if path is None else 'no launcher that palmette knows'}; give the line"
            " that starts your jobs, without the program: mpiexec -n 64"
        )
    chosen = next((known for known in ABIS if known == abi), None) or abi_of_launcher(found.kind)
    if chosen is None:
        raise CalibrateError(f"{words[0]} starts programs of any MPI; say which with --abi mpich, ompi or abi")
    ours = str(program(chosen, name))
    try:
        line = read_command_line(found.kind, [*words, ours], LauncherOptions(found.kind, Path(path), environment))
    except RunError as error:
        raise CalibrateError(str(error)) from None
    if len(line.parts) != 1 or line.parts[0].program != ours:
        raise CalibrateError(
            f"the line names the program {line.parts[0].program}; leave it out: a program of palmette's stands in its"
            " place"
        )
    return JobCommand([*words, ours], " ".join(words), False, _with_library(Path(path), chosen, environment))


def _with_library(launcher: Path, abi: Abi, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the launcher's own MPI at the end of LD_LIBRARY_PATH: a user's choice goes first."""
    for folder in ("lib", "lib64"):
        place = launcher.resolve().parent.parent / folder
        if (place / SONAMES[abi]).exists():
            paths = [*filter(None, environment.get("LD_LIBRARY_PATH", "").split(":")), str(place)]
            return {**environment, "LD_LIBRARY_PATH": ":".join(dict.fromkeys(paths))}
    return dict(environment)


@contextmanager
def running(command: JobCommand) -> Iterator[Session]:
    """Run the job for as long as the context lasts; Ctrl-C and SIGTERM end it, too. Raises CalibrateError."""
    with terminations_raised(), Session(command.words, command.environment) as session:
        yield session
