"""Where a measuring job runs: a lab, local ranks, or a launcher line of the user's. For `palmette calibrate` and
`discover --from measurement`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from palmette.cli import installations
from palmette.cli.bench_place import Where
from palmette.cli.common import CliError
from palmette.lab import LabError
from palmette.measure.errors import BenchError, CalibrateError
from palmette.measure.jobs import JobCommand, by_launcher, on_place
from palmette.mpi import install as mpi_install
from palmette.mpi.launch import LaunchError
from palmette.topology.file import TopologyError
from palmette.topology.placement import PlacementError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert the errors of a measurement's layers to CliError."""
    try:
        yield
    except (
        BenchError, CalibrateError, LabError, LaunchError, PlacementError, TopologyError, mpi_install.MpiNotFoundError,
    ) as error:  # fmt: skip
        raise CliError(str(error)) from error


@dataclass(frozen=True)
class Asked:
    """The job as the command line defines it."""

    where: Where
    command_line: Sequence[str]
    mpi: str | None = None
    abi: str | None = None
    placement: str = "block"
    ppn: int | None = None
    ranks: int | None = None

    @contextmanager
    def job(self) -> Iterator[tuple[JobCommand, Path | None]]:
        """Return how to start the job, and the topology.json of its place if it has one.

        Raises CliError, and what `one_line_errors` takes.
        """
        if self.command_line:
            if self._names_place():
                raise CliError(
                    f"{self.command_line[0]} and a lab or local ranks are two places to run; give one of them"
                )
            yield by_launcher(self.command_line, self.abi, os.environ), None
            return
        if not self._names_place():
            raise CliError(
                "say where to run: the line that starts your jobs without a program (mpiexec -n 64)" + self._places()
            )
        mpi = self._mpi()
        with self.where.completed(None).place(local=self.where.local_ranks is not None) as place:
            yield on_place(place, mpi, self.placement, self.ppn, self.ranks), place.topology_path

    def _places(self) -> str:
        """The other places that the command accepts, as text."""
        known = {name for option in click.get_current_context().command.params for name in option.opts}
        hints = ("--lab-name NAME", "--lab SPEC", "--local RANKS")
        places = [place for place in hints if place.split(" ")[0] in known]
        return "".join(f", {place}" for place in places[:-1]) + f" or {places[-1]}"

    def _names_place(self) -> bool:
        return any(value is not None for value in (self.where.lab_spec, self.where.lab_name, self.where.local_ranks))

    def _mpi(self) -> mpi_install.Installation:
        if self.mpi is not None:
            return mpi_install.find(self.mpi)
        return installations.chosen(None)[0]
