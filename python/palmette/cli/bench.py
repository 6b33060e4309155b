"""`palmette bench`: the group of measurements."""

from __future__ import annotations

import click

from palmette.cli.group import SETTINGS, LazyGroup
from palmette.cli.table import BENCH


@click.group(
    "bench",
    cls=LazyGroup,
    table=BENCH,
    epilog="Example: palmette bench allgather --sizes 64K,256K --topology topology.json -- mpiexec -n 64",
    context_settings=SETTINGS,
)
def command() -> None:
    """Measure collectives and programs with and without palmette.

    `palmette bench allgather` is `palmette bench collectives allgather`.
    """
