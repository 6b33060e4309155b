"""`palmette plan`: make the plan of a collective, show it, verify it, count it, draw it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, json_option
from palmette.plan.choice import Chosen, NothingChosenError, choose
from palmette.plan.contents import size_phrase
from palmette.plan.counts import count_json, count_lines
from palmette.plan.listing import list_json, list_lines
from palmette.plan.stages import stage_lines
from palmette.plan.svg import TooLargeError, svg
from palmette.units import plural

COLLECTIVES = tuple(_core.collectives())
ELEMENT_BYTES = 4
"""Of what reductions combine: no cut of a plan goes through an element."""
EXAMPLE = 'palmette plan gather --machine "3leaf:3+3+2node:2core" --placement cyclic'
MOST_STEPS = 5_000_000
"""A plan of all ranks takes about 100 bytes a step."""


@click.command("plan", epilog=f"Example: {EXAMPLE} --svg plan.svg", context_settings={"max_content_width": 80})
@click.argument("collective", type=click.Choice(COLLECTIVES), required=False)
@click.option("--machine", metavar="SPEC", help="A synthetic machine: 2leaf@50Mbit/s:4node@100Mbit/s:2core.")
@click.option("--topology", metavar="FILE", help="A topology.json instead.")
@click.option(
    "--placement",
    default="block",
    show_default=True,
    metavar="FORM",
    help="block, cyclic, random:SEED, hosts=h3,h0,... or a file with one host a line.",
)
@click.option("--ranks", type=click.IntRange(1), help="Number of ranks; default: all places.")
@click.option("--root", type=click.IntRange(0), default=0, show_default=True, help="The root rank.")
@click.option("--algorithm", metavar="NAME[:KEY=VALUE,...]", help="Default: what the decision table chooses.")
@click.option(
    "--size",
    default="1K",
    show_default=True,
    metavar="BYTES",
    help="Bytes that one rank contributes or gets, or sends to each other; else of the vector.",
)
@click.option("--ordered", is_flag=True, help="The operation isn't commutative: keep the order of ranks.")
@click.option(
    "--shared/--no-shared", default=True, show_default=True, help="Ranks of a node may read each other's memory."
)
@click.option("--rank", type=click.IntRange(0), metavar="RANK", help="Show the steps of one rank only.")
@click.option("--verify", is_flag=True, help="Prove the plan right; status 1 when it is wrong.")
@click.option("--count", "counted", is_flag=True, help="Messages and bytes per level and on the busiest link.")
@click.option("--svg", "picture", metavar="FILE", help="Write a picture: ranks, times, arrows.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@click.option("--list", "listed", is_flag=True, help="List the algorithms, with keys, source and preconditions.")
@json_option
def command(
    collective: str | None,
    machine: str | None,
    topology: str | None,
    placement: str,
    ranks: int | None,
    root: int,
    algorithm: str | None,
    size: str,
    ordered: bool,
    shared: bool,
    rank: int | None,
    verify: bool,
    counted: bool,
    picture: str | None,
    everything: bool,
    listed: bool,
    as_json: bool,
) -> None:
    """Make the plan of a COLLECTIVE and show who sends what to whom, and when.

    COLLECTIVE is gather, scatter, allgather, bcast, reduce, allreduce, reduce_scatter, alltoall, barrier, scan or
    exscan. With --verify, --count or --svg the messages are not listed.
    """
    if listed:
        if as_json:
            emit_json(list_json(collective))
        else:
            click.echo("\n".join(list_lines(collective)))
        return
    if collective is None:
        raise CliError(f"no collective given, it is one of {', '.join(COLLECTIVES)}; for instance: {EXAMPLE}")
    try:
        if collective == "barrier":
            size = "0"
        job = _job(machine, topology, placement, ranks)
        block_bytes = _core.parse_size(size)
        chosen = choose(job, collective, algorithm, root, block_bytes, ordered=ordered, shared_memory=shared)
        asked = _Asked(collective, job, placement, chosen, root, block_bytes, ordered, shared)
        if rank is not None:
            _show_rank(asked, rank, as_json)
            return
        _check_size(asked)
        plan = _core.Plan(job, collective, chosen.algorithm, root, block_bytes, **asked.details)
        complaint = plan.verify() if verify else None
        if picture is not None:
            _draw(plan, picture)
    except _core.Error as error:
        raise CliError(str(error)) from None
    except NothingChosenError as error:
        raise CliError(f"{error}; name one with --algorithm, `palmette plan {collective} --list` shows them") from None
    except TooLargeError as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_as_json(asked, plan, verify, complaint, counted, picture))
    else:
        click.echo("\n".join(_lines(asked, plan, verify, complaint, counted, picture, everything)))
    if complaint is not None:
        click.get_current_context().exit(1)


class _Details(TypedDict):
    ordered: bool
    shared_memory: bool
    element_bytes: int


@dataclass(frozen=True)
class _Asked:
    """The question: which collective on which job, with which algorithm."""

    collective: str
    job: _core.Job
    placement: str
    chosen: Chosen
    root: int
    block_bytes: int
    ordered: bool
    shared: bool

    @property
    def details(self) -> _Details:
        """What the core wants to know besides."""
        element_bytes = ELEMENT_BYTES if _core.is_reduction(self.collective) else 1
        return {"ordered": self.ordered, "shared_memory": self.shared, "element_bytes": element_bytes}


def _job(machine: str | None, topology: str | None, placement: str, ranks: int | None) -> _core.Job:
    if machine is not None and topology is not None:
        raise CliError("--machine and --topology both name a machine; leave one of them out")
    if machine is not None:
        made = _core.Machine.synthetic(machine)
    elif topology is not None:
        made = _core.Machine.from_file(topology)
    else:
        raise CliError(f"no machine given; name one with --machine or --topology, for instance: {EXAMPLE}")
    return _core.Job(made, placement, ranks or 0)


def _check_size(asked: _Asked) -> None:
    """Refuse plans that wouldn't fit in memory; one rank's program is never a problem."""
    p = asked.job.size
    if p <= 1024:
        return
    sample = sorted({asked.root, *(p * i // 7 for i in range(7))})
    steps = [len(_program(asked, rank)) for rank in sample]
    rooted = _core.is_rooted(asked.collective)
    about = max(min(steps) * p, max(steps)) if rooted else sum(steps) / len(steps) * p
    if about > MOST_STEPS:
        raise CliError(
            f"the plan of all {p:,} ranks has about {about:,.0f} steps, too many to hold at once; look at one rank with "
            "--rank, or at fewer ranks with --ranks"
        )


def _program(asked: _Asked, rank: int) -> _core.Program:
    return _core.make_program(
        asked.job, rank, asked.collective, asked.chosen.algorithm, asked.root, asked.block_bytes, **asked.details
    )


def _show_rank(asked: _Asked, rank: int, as_json: bool) -> None:
    program = _program(asked, rank)
    if as_json:
        emit_json(program.to_json())
        return
    position = asked.job.position_of(rank)
    counted_by = "position" if program.order == "topology" else "rank"
    click.echo("\n".join(_head(asked)))
    click.echo(f"rank {rank} on {asked.job.host_of(rank)}, position {position}; blocks are counted by {counted_by}")
    click.echo()
    click.echo(program.text(), nl=False)


def _head(asked: _Asked) -> list[str]:
    job = asked.job
    levels = [
        plural(level.count, level.name) for level in reversed(job.levels) if level.count > 1 or level.name == "node"
    ]
    root = f", root {asked.root} on {job.host_of(asked.root)}" if _core.is_rooted(asked.collective) else ""
    size = size_phrase(asked.collective, asked.block_bytes)
    kept = ", order of ranks kept" if asked.ordered and _core.is_reduction(asked.collective) else ""
    lines = [f"{asked.collective}, algorithm {asked.chosen.algorithm}"]
    if not asked.chosen.reason.startswith("named"):
        lines += click.wrap_text(asked.chosen.reason, width=80).splitlines()
    lines.append(
        f"{plural(job.size, 'rank')} on {', '.join(levels)}, placed {asked.placement}{root}"
        + (f", {size}" if size else "")
        + kept
    )
    return [line for long in lines for line in (click.wrap_text(long, width=80).splitlines() or [""])]


def _draw(plan: _core.Plan, picture: str) -> None:
    text = svg(plan)
    try:
        Path(picture).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"can't write {picture}: {error.strerror}; choose another file with --svg") from None


def _lines(
    asked: _Asked,
    plan: _core.Plan,
    verify: bool,
    complaint: str | None,
    counted: bool,
    picture: str | None,
    everything: bool,
) -> list[str]:
    lines = _head(asked)
    if not (verify or counted or picture):
        lines += ["", *stage_lines(plan, everything)]
    if counted:
        lines += ["", *count_lines(plan)]
    if verify:
        verdict = f"wrong: {complaint}" if complaint is not None else "verified: right, without deadlocks or races"
        lines += ["", *click.wrap_text(verdict, width=80).splitlines()]
    if picture is not None:
        lines += ["", f"wrote {picture}"]
    return lines


def _as_json(
    asked: _Asked, plan: _core.Plan, verify: bool, complaint: str | None, counted: bool, picture: str | None
) -> dict[str, Any]:
    document = plan.to_json()
    document |= asked.details
    document["chosen"] = asked.chosen.reason
    document["job"] = asked.job.to_json()
    if verify:
        document["verified"] = complaint is None
        document["complaint"] = complaint
    if counted:
        document["count"] = count_json(plan)
    if picture is not None:
        document["svg"] = picture
    return document
