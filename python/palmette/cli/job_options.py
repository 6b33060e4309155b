"""The options that name a job and what is planned on it: a machine, where ranks sit, the size, the algorithm."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from palmette import _core
from palmette.cli.common import CliError, WholeNumber
from palmette.cli.level_names import levels_of, note_levels
from palmette.plan.choice import AlgorithmChoice
from palmette.present.words import wrapped
from palmette.topology.file import another_kind
from palmette.units import plural

Command = TypeVar("Command", bound=Callable[..., Any])

PLACEMENT_FORMS = "block, cyclic, random:SEED, hosts=h3,h0,... or a file with one host a line."

machine_option = click.option(
    "--machine", metavar="SPEC", help="A synthetic machine: 2leaf@50Mbit/s:4node@100Mbit/s:2core."
)
topology_option = click.option("--topology", metavar="FILE", help="A topology.json instead.")
ranks_option = click.option("--ranks", type=WholeNumber(1), help="Number of ranks; default: all places.")
ppn_option = click.option(
    "--ppn", type=WholeNumber(1), metavar="N", help="Places a host, where the topology has hosts only. [default: 1]"
)
root_option = click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="The root rank.")
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
    name = name.removeprefix("MPI_").lower() if name.startswith("MPI_") else name
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
    ppn: int | None = None

    def job(self, example: str) -> _core.Job:
        """Return the job. Raises CliError, with `example` where no machine is named, and _core.Error."""
        return make_job(self.machine, self.topology, self.placement, self.ranks, example, self.ppn)

    def phrase(self, job: _core.Job, collective: str) -> str:
        """`16 ranks on 8 nodes, 3 leaves, placed random:1, root 3 on h3`."""
        levels = [
            plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1 or level.name == "node"
        ]
        at = f", root {self.root} on {job.host_of(self.root)}" if _core.is_rooted(collective) else ""
        return f"{plural(job.size, 'rank')} on {', '.join(levels)}, placed {self.placement}{at}"


def job_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --machine, --topology, --placement, --ppn, --ranks and --root to a command: its parameter `where`."""

    @wraps(function)
    def command(
        *, machine: str | None, topology: str | None, placement: str, ppn: int | None, ranks: int | None, root: int,
        **others: Any,
    ) -> None:  # fmt: skip
        function(where=JobOptions(machine, topology, placement, ranks, root, ppn), **others)

    for option in (root_option, ranks_option, ppn_option, placement_option(), topology_option, machine_option):
        command = option(command)
    return command


def make_machine(machine: str | None, topology: str | None, ppn: int | None = None) -> _core.Machine | None:
    """Return the machine that --machine or --topology names, None where neither is given.

    Raises CliError for both of them, and _core.Error with what is wrong in one.
    """
    if machine is not None and topology is not None:
        raise CliError("--machine and --topology both name a machine; leave one of them out")
    if machine is not None:
        if os.path.isfile(machine):  # noqa: PTH113 - a word of any length
            raise CliError(f"--machine {machine}: this is a file; say --topology {shlex.quote(machine)}")
        made = _core.Machine.synthetic(machine)
        note_levels(machine)
    elif topology is not None:
        if levels_of(topology) and not os.path.exists(topology):  # noqa: PTH110
            raise CliError(f"--topology {topology}: no such file; a machine's synthetic form is told with --machine")
        try:
            made = _core.Machine.from_file(topology)
        except _core.Error as error:
            if "line 1, column 1: " in str(error):
                raise CliError(another_kind(topology)) from None
            raise
    else:
        return None
    return made if ppn is None else with_places(made, ppn)


def with_places(machine: _core.Machine, ppn: int) -> _core.Machine:
    """Return the machine with `ppn` places on each host of which it knows none. Raises CliError where it knows all."""
    document = machine.to_json()
    bare = [host for host in _hosts_of(document["tree"]) if "inside" not in host and host.get("slots", 1) == 1]
    if not bare:
        places = sorted(set(machine.slots))
        known = f"{places[0]}" if len(places) == 1 else f"{places[0]} to {places[-1]}"
        raise CliError(f"--ppn {ppn} is for hosts whose inside is unknown; these have {known} places: leave it out")
    for host in bare:
        host["slots"] = ppn
    return _core.Machine.from_json(document)


def _hosts_of(tree: dict[str, Any]) -> list[dict[str, Any]]:
    groups, hosts = [tree], []
    while groups:
        group = groups.pop()
        if group.get("level") == "node":
            hosts.append(group)
        else:
            groups += group.get("children", ())
    return hosts


def job_on(machine: _core.Machine, placement: str, ranks: int | None) -> _core.Job:
    """Return the job of so many ranks. Raises _core.Error, CliError where ranks don't fit for want of places."""
    try:
        return _core.Job(machine, placement, ranks or 0)
    except _core.Error as error:
        if "don't fit" in str(error) and set(machine.slots) == {1}:
            raise CliError(f"{error}, one for each host, as no inside of hosts is known; add --ppn N") from None
        raise


def make_job(
    machine: str | None, topology: str | None, placement: str, ranks: int | None, example: str, ppn: int | None = None
) -> _core.Job:
    """Return the job that the options name. Raises CliError, and _core.Error with what is wrong in them."""
    made = make_machine(machine, topology, ppn)
    if made is None:
        raise CliError(f"no machine given; name one with --machine or --topology, for instance: {example}")
    return job_on(made, placement, ranks)


def head_lines(collective: str, chosen: AlgorithmChoice, *facts: str) -> list[str]:
    """Return what is planned, why with that algorithm where it wasn't named, and `facts`, in 80 columns."""
    reason = [] if chosen.reason.startswith("named") else [chosen.reason]
    lines = [f"{collective}, algorithm {chosen.algorithm}", *reason, *facts]
    return [part for line in lines for part in wrapped(line, rest="")]
