"""The group of all commands of `palmette`."""

from __future__ import annotations

import click

from palmette.cli.group import SETTINGS, LazyGroup
from palmette.cli.table import PALMETTE


@click.group(
    "palmette",
    cls=LazyGroup,
    table=PALMETTE,
    epilog="Example: palmette run --topology topology.json --report mpiexec -n 64 ./app",
    context_settings=SETTINGS,
)
@click.version_option(None, "-V", "--version", package_name="palmette", prog_name="palmette")
def cli() -> None:
    """Faster collectives for the MPI programs that you have.

    Palmette finds out how a cluster is wired, plans each collective to fit it, and runs the plan under a program that
    nobody recompiles: palmette run mpiexec -n 64 ./app

    Exit status: 0 success, 1 a negative result, 2 bad input, 70 a fault of palmette's own, 130 interrupted; `run` ends
    with the program's. docs/reference/command-line.md has the table.
    """
