"""The errors of a benchmark's layers, in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from palmette import _core
from palmette.cli.common import CliError
from palmette.measure.errors import BenchError, PlaceError
from palmette.mpi import install as mpi_install
from palmette.mpi.launch import LaunchError
from palmette.run import RunError
from palmette.topology.file import TopologyError
from palmette.topology.placement import PlacementError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert the errors of a benchmark's layers to CliError."""
    try:
        yield
    except (
        BenchError,
        PlaceError,
        LaunchError,
        PlacementError,
        RunError,
        TopologyError,
        mpi_install.MpiNotFoundError,
        _core.Error,
    ) as error:
        raise CliError(str(error)) from error
