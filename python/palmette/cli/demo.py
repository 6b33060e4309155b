"""`palmette demo`: the demonstration of palmette-lab, which is a package of its own and comes along."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

from palmette.cli.common import CliError


@click.command(
    "demo",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: palmette demo --folder first-look",
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS]")
def command(options: tuple[str, ...]) -> None:
    """Run a demonstration on this machine: it is palmette-lab demo.

    \b
    --folder FOLDER  where topology, picture, samples and page go: demo
    --mpi NAME       mpich, openmpi or impi
    --local          local ranks, also where a cluster could be emulated
    --profile        record a small program, and show where its time goes
    --json           print the result as JSON

    Emulates a cluster of 8 hosts behind 3 leaf switches, writes down how it is wired, measures collectives with and
    without palmette on scattered ranks, and leaves a page. Needs no root where users may make namespaces.
    """  # noqa: D301  the mark keeps click from filling the lines
    if find_spec("palmette_lab") is None:
        raise CliError(
            "this installation has no palmette-lab, which brings the demonstration; install palmette's wheel"
        )
    sys.stdout.flush()
    # Not -m: the present folder would come first where modules are looked for.
    code = "import sys; sys.path[:] = filter(None, sys.path); from palmette_lab.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "demo", *options]
    os.execv(words[0], words)  # noqa: S606 - the terminal and its signals are the demonstration's
