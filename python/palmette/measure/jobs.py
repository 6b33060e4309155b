"""How the program `calibrate` is started: on a lab, as local ranks, or by a launcher's line of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from palmette.measure.errors import CalibrateError
from palmette.measure.lines import Line
from palmette.measure.places import LocalPlace, Place
from palmette.measure.running import terminations_raised
from palmette.measure.session import Session
from palmette.mpi.abi import Abi, measuring_program
from palmette.mpi.install import Installation

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
    hosts = place.place(placement, ppn, ranks)
    words = place.command(mpi, hosts, [str(program(mpi.abi))], {})
    shares = not isinstance(place, LocalPlace) or not place.spins
    return JobCommand(words, f"{place.description}, {mpi.name} {mpi.version}", shares)


def by_launcher(words: Sequence[str], abi: str | None, name: str = PROGRAM) -> JobCommand:
    """Return the command for a launcher's line without a program: `mpiexec -n 64 -hosts ...`. Raises BenchError."""
    line = Line.read(words, abi)
    return JobCommand(line.command([line.program(name)]), line.text, False)


@contextmanager
def running(command: JobCommand) -> Iterator[Session]:
    """Run the job for as long as the context lasts; Ctrl-C and SIGTERM end it, too. Raises CalibrateError."""
    with terminations_raised(), Session(command.words, command.environment) as session:
        yield session
