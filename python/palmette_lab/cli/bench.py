"""`palmette-lab bench`: the group of measurements on a lab."""

from __future__ import annotations

import click

from palmette.cli.group import SETTINGS, LazyGroup
from palmette_lab.cli.group import BENCH


@click.group(
    "bench",
    cls=LazyGroup,
    table=BENCH,
    epilog="Example: palmette-lab bench allgather --lab 2leaf@50Mbit/s:2node@100Mbit/s:2core",
    context_settings=SETTINGS,
)
def command() -> None:
    """Measure collectives and programs on a lab, and other MPIs beside them.

    `palmette-lab bench allgather` is `palmette-lab bench collectives allgather`.
    """
