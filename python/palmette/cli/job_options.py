"""The options that name a job: a machine, where ranks sit, how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from palmette import _core
from palmette.cli.common import CliError
from palmette.units import plural

Command = TypeVar("Command", bound=Callable[..., Any])


def job_options(function: Command) -> Command:
    """Add --machine, --topology, --placement, --ranks and --root to a command."""
    for option in reversed(
        (
            click.option(
                "--machine", metavar="SPEC", help="A synthetic machine: 2leaf@50Mbit/s:4node@100Mbit/s:2core."
            ),
            click.option("--topology", metavar="FILE", help="A topology.json instead."),
            click.option(
                "--placement",
                default="block",
                show_default=True,
                metavar="FORM",
                help="block, cyclic, random:SEED, hosts=h3,h0,... or a file with one host a line.",
            ),
            click.option("--ranks", type=click.IntRange(1), help="Number of ranks; default: all places."),
            click.option("--root", type=click.IntRange(0), default=0, show_default=True, help="The root rank."),
        )
    ):
        function = option(function)
    return function


def make_job(machine: str | None, topology: str | None, placement: str, ranks: int | None, example: str) -> _core.Job:
    """Return the job that the options name. Raises CliError, and _core.Error with what is wrong in them."""
    if machine is not None and topology is not None:
        raise CliError("--machine and --topology both name a machine; leave one of them out")
    if machine is not None:
        made = _core.Machine.synthetic(machine)
    elif topology is not None:
        made = _core.Machine.from_file(topology)
    else:
        raise CliError(f"no machine given; name one with --machine or --topology, for instance: {example}")
    return _core.Job(made, placement, ranks or 0)


def job_phrase(job: _core.Job, placement: str, collective: str, root: int) -> str:
    """`16 ranks on 8 nodes, 3 leaves, placed random:1, root 3 on h3`."""
    levels = [
        plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1 or level.name == "node"
    ]
    at = f", root {root} on {job.host_of(root)}" if _core.is_rooted(collective) else ""
    return f"{plural(job.size, 'rank')} on {', '.join(levels)}, placed {placement}{at}"
