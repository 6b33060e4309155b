"""The options that name a job and what is planned on it: a machine, where ranks sit, the size, the algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from palmette import _core
from palmette.cli.common import CliError, Whole
from palmette.plan.choice import Chosen
from palmette.units import plural

Command = TypeVar("Command", bound=Callable[..., Any])

PLACEMENT_FORMS = "block, cyclic, random:SEED, hosts=h3,h0,... or a file with one host a line."

machine_option = click.option(
    "--machine", metavar="SPEC", help="A synthetic machine: 2leaf@50Mbit/s:4node@100Mbit/s:2core."
)
topology_option = click.option("--topology", metavar="FILE", help="A topology.json instead.")
ranks_option = click.option("--ranks", type=Whole(1), help="Number of ranks; default: all places.")
root_option = click.option("--root", type=Whole(0), default=0, show_default=True, help="The root rank.")
algorithm_option = click.option(
    "--algorithm", metavar="NAME[:KEY=VALUE,...]", help="Default: what the decision table chooses."
)
size_option = click.option(
    "--size",
    default="1K",
    show_default=True,
    metavar="BYTES",
    help="Bytes that one rank contributes or gets, or sends to each other; else of the vector.",
)
ordered_option = click.option(
    "--ordered", is_flag=True, help="The operation isn't commutative: keep the order of ranks."
)
shared_option = click.option(
    "--shared/--no-shared", default=True, show_default=True, help="Ranks of a node may read each other's memory."
)


OTHER_FORMS = ("reduce_scatter_block", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw")
"""MPI functions that are planned as another collective, with blocks of equal length."""


def planned_as(name: str) -> str:
    """Return the collective that `name` is planned as; reported on standard error where it differs. Raises CliError."""
    planned = _core.collectives()
    if name in planned:
        return name
    if name in OTHER_FORMS:
        collective = _core.collective_of(name)
        click.echo(f"{name}: as {collective}, all blocks of equal length", err=True)
        return collective
    blocking = name.removeprefix("i")
    if blocking in planned or blocking in OTHER_FORMS:
        raise CliError(f"'{name}' has the plans of {blocking}; ask for {blocking}")
    raise CliError(f"'{name}' is no collective; there are {', '.join([*planned, *OTHER_FORMS])}")


def collective_argument(function: Command) -> Command:
    """Add the argument COLLECTIVE: the name of one that plans are made for, or of another form of it."""
    return click.argument("collective", metavar="COLLECTIVE", callback=lambda _context, _param, name: planned_as(name))(
        function
    )


def placement_option(help_text: str = PLACEMENT_FORMS) -> Callable[[Command], Command]:
    """Return the option --placement."""
    return click.option("--placement", default="block", show_default=True, metavar="FORM", help=help_text)


@dataclass(frozen=True)
class JobOptions:
    """A job as the command line defines it."""

    machine: str | None
    topology: str | None
    placement: str
    ranks: int | None
    root: int

    def job(self, example: str) -> _core.Job:
        """Return the job. Raises CliError, with `example` where no machine is named, and _core.Error."""
        return make_job(self.machine, self.topology, self.placement, self.ranks, example)

    def phrase(self, job: _core.Job, collective: str) -> str:
        """`16 ranks on 8 nodes, 3 leaves, placed random:1, root 3 on h3`."""
        levels = [
            plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1 or level.name == "node"
        ]
        at = f", root {self.root} on {job.host_of(self.root)}" if _core.is_rooted(collective) else ""
        return f"{plural(job.size, 'rank')} on {', '.join(levels)}, placed {self.placement}{at}"


def job_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --machine, --topology, --placement, --ranks and --root to a command, whose parameter `where` they become."""

    @wraps(function)
    def command(
        *, machine: str | None, topology: str | None, placement: str, ranks: int | None, root: int, **others: Any
    ) -> None:
        function(where=JobOptions(machine, topology, placement, ranks, root), **others)

    for option in (root_option, ranks_option, placement_option(), topology_option, machine_option):
        command = option(command)
    return command


def make_machine(machine: str | None, topology: str | None) -> _core.Machine | None:
    """Return the machine that --machine or --topology names, None where neither is given.

    Raises CliError for both of them, and _core.Error with what is wrong in one.
    """
    if machine is not None and topology is not None:
        raise CliError("--machine and --topology both name a machine; leave one of them out")
    if machine is not None:
        return _core.Machine.synthetic(machine)
    return _core.Machine.from_file(topology) if topology is not None else None


def make_job(machine: str | None, topology: str | None, placement: str, ranks: int | None, example: str) -> _core.Job:
    """Return the job that the options name. Raises CliError, and _core.Error with what is wrong in them."""
    made = make_machine(machine, topology)
    if made is None:
        raise CliError(f"no machine given; name one with --machine or --topology, for instance: {example}")
    return _core.Job(made, placement, ranks or 0)


def head_lines(collective: str, chosen: Chosen, *facts: str) -> list[str]:
    """Return what is planned, why with that algorithm where it wasn't named, and `facts`, in 80 columns."""
    reason = [] if chosen.reason.startswith("named") else [chosen.reason]
    lines = [f"{collective}, algorithm {chosen.algorithm}", *reason, *facts]
    return [part for line in lines for part in click.wrap_text(line, width=80).splitlines()]
