"""`palmette plan`: make the plan of a collective, show it, verify it, count it, draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from palmette import _core
from palmette.cli.common import CliError, Whole, emit_json, json_option, write_file
from palmette.cli.job_options import (
    JobOptions,
    algorithm_option,
    head_lines,
    job_options,
    ordered_option,
    planned_as,
    shared_option,
    size_option,
)
from palmette.cli.progress import Working
from palmette.plan.choice import Chosen, NothingChosenError, choose
from palmette.plan.contents import size_phrase
from palmette.plan.counts import count_json, count_lines
from palmette.plan.listing import list_json, list_lines
from palmette.plan.request import Details, about_steps, details_of
from palmette.plan.stages import stage_lines
from palmette.plan.svg import TooLargeError, svg
from palmette.units import plural, text_width

COLLECTIVES = tuple(_core.collectives())
EXAMPLE = 'palmette plan gather --machine "3leaf:3+3+2node:2core" --placement cyclic'
MOST_STEPS = 5_000_000
"""A plan of all ranks takes about 100 bytes a step."""


@click.command("plan", epilog=f"Example: {EXAMPLE} --svg plan.svg", context_settings={"max_content_width": 80})
@click.argument(
    "collective",
    metavar="[COLLECTIVE]",
    required=False,
    callback=lambda _context, _param, name: name and planned_as(name),
)
@job_options
@algorithm_option
@size_option
@ordered_option
@shared_option
@click.option(
    "--rank", type=Whole(0), metavar="RANK", help="Show the steps of one rank only; aggregators follow the ranks."
)
@click.option("--verify", is_flag=True, help="Prove the plan right; status 1 when it is wrong.")
@click.option("--count", "counted", is_flag=True, help="Messages and bytes per level and on the busiest link.")
@click.option("--svg", "picture", metavar="FILE", help="Write a picture: ranks, times, arrows.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@click.option("--list", "listed", is_flag=True, help="List the algorithms, with keys, source and preconditions.")
@json_option
def command(
    collective: str | None,
    where: JobOptions,
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
        job = where.job(EXAMPLE)
        block_bytes = _core.parse_size(size)
        chosen = choose(job, collective, algorithm, where.root, block_bytes, ordered=ordered, shared_memory=shared)
        asked = _Asked(collective, job, where, chosen, block_bytes, ordered, shared)
        if rank is not None:
            _show_rank(asked, rank, as_json)
            return
        _check_size(asked)
        with Working(f"planning {collective} for {plural(job.size, 'rank')}") as working:
            plan = _core.Plan(job, collective, chosen.algorithm, where.root, block_bytes, **asked.details)
            working.now("verifying the plan")
            complaint = plan.verify() if verify else None
            working.now("counting and drawing" if counted or picture else "sorting the messages")
            if picture is not None:
                write_file(picture, svg(plan), "--svg")
            if as_json:
                document = _as_json(asked, plan, verify, complaint, counted, picture)
            else:
                lines = _lines(asked, plan, verify, complaint, counted, picture, everything)
    except (_core.Error, NothingChosenError, TooLargeError) as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(document)
    else:
        click.echo("\n".join(lines))
    if complaint is not None:
        click.get_current_context().exit(1)


@dataclass(frozen=True)
class _Asked:
    """The request: which collective on which job, with which algorithm."""

    collective: str
    job: _core.Job
    where: JobOptions
    chosen: Chosen
    block_bytes: int
    ordered: bool
    shared: bool

    @property
    def details(self) -> Details:
        """The core's further parameters."""
        return details_of(self.collective, ordered=self.ordered, shared_memory=self.shared)


def _check_size(asked: _Asked) -> None:
    """Refuse plans that wouldn't fit in memory; one rank's program is never a problem."""
    about = about_steps(
        asked.job, asked.collective, asked.chosen.algorithm, asked.where.root, asked.block_bytes, asked.details
    )
    if about > MOST_STEPS:
        raise CliError(
            f"the plan of all {asked.job.size:,} ranks has about {about:,.0f} steps, too many to hold at once; show "
            "one rank with --rank, or at fewer ranks with --ranks"
        )


def _show_rank(asked: _Asked, rank: int, as_json: bool) -> None:
    program = _core.make_program(
        asked.job, rank, asked.collective, asked.chosen.algorithm, asked.where.root, asked.block_bytes, **asked.details
    )
    if as_json:
        emit_json(program.to_json())
        return
    if program.service >= 0:
        place = f"service position {rank}, {asked.job.aggregators[program.service].name}"
    else:
        place = f"rank {rank} on {asked.job.host_of(rank)}, position {asked.job.position_of(rank)}"
    counted_by = "position" if program.order == "topology" else "rank"
    click.echo("\n".join(_head(asked)))
    click.echo(f"{place}; blocks are counted by {counted_by}")
    click.echo()
    click.echo(program.text(), nl=False)


def _head(asked: _Asked) -> list[str]:
    size = size_phrase(asked.collective, asked.block_bytes)
    kept = ", order of ranks kept" if asked.ordered and _core.is_reduction(asked.collective) else ""
    described = asked.where.phrase(asked.job, asked.collective)
    return head_lines(asked.collective, asked.chosen, described + (f", {size}" if size else "") + kept)


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
        lines += ["", *click.wrap_text(verdict, width=text_width()).splitlines()]
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
