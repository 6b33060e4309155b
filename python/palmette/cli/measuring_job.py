"""The job that `palmette calibrate` and `discover --from measurement` measure in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from palmette.cli import installations
from palmette.cli.common import CliError
from palmette.cli.place import EXAMPLE_LINE, PlaceOptions
from palmette.measure.errors import BenchError, CalibrateError, PlaceError
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
        BenchError, CalibrateError, PlaceError, LaunchError, PlacementError, TopologyError,
        mpi_install.MpiNotFoundError,
    ) as error:  # fmt: skip
        raise CliError(str(error)) from error


@dataclass(frozen=True)
class JobRequest:
    """The job as the command line defines it."""

    where: PlaceOptions
    mpi: str | None = None

    @contextmanager
    def job(self) -> Iterator[tuple[JobCommand, Path | None]]:
        """Return how to start the job, and the topology.json of its place if it has one.

        Raises CliError, and what `one_line_errors` takes.
        """
        where = self.where
        if not where.named:
            raise CliError(f"say where to run: the line that starts your jobs (-- {EXAMPLE_LINE}){self._places()}")
        if not where.line and where.abi is not None:
            raise CliError(f"--abi belongs to a launcher line (-- {EXAMPLE_LINE}); leave it out")
        where = where.checked()
        if where.line:
            where.refuse_with_line({"--mpi": self.mpi})
            yield by_launcher(where.line, where.abi), None
            return
        mpi = self._mpi()
        with where.place(local=where.local_ranks is not None) as place:
            placement = (where.elsewhere.placement if where.elsewhere else None) or "block"
            yield on_place(place, mpi, placement, where.ppn, where.ranks), place.topology_path

    def _places(self) -> str:
        """The other places that the command accepts, as text."""
        known = {name for option in click.get_current_context().command.params for name in option.opts}
        hints = ("--lab NAME|SPEC", "--local RANKS")
        places = [place for place in hints if place.split(" ")[0] in known]
        if not places:
            return ""
        return "".join(f", {place}" for place in places[:-1]) + f" or {places[-1]}"

    def _mpi(self) -> mpi_install.Installation:
        named = self.mpi or (self.where.elsewhere.mpi if self.where.elsewhere else None)
        if named is not None:
            return mpi_install.find(named)
        return installations.chosen(None)[0]
