"""`palmette plan`: make the plan of a collective, show it, verify it, count it, draw it; and views of its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from palmette import _core
from palmette.cli.common import (
    CliError,
    SectionedCommand,
    SingleNameOption,
    WholeNumber,
    emit_json,
    json_option,
    write_file,
)
from palmette.cli.job_options import (
    JobOptions,
    head_lines,
    job_options,
    ordered_option,
    planned_as,
    shared_option,
)
from palmette.cli.progress import ActivityLine
from palmette.plan.choice import AlgorithmChoice, NothingChosenError, choose
from palmette.plan.contents import size_phrase
from palmette.plan.counts import count_json, count_lines
from palmette.plan.listing import list_json, list_lines
from palmette.plan.request import Details, about_steps, details_of
from palmette.plan.stages import stage_lines
from palmette.plan.svg import TooLargeError, svg
from palmette.present.words import wrapped
from palmette.units import plural

COLLECTIVES = tuple(_core.collectives())
COMMON = "gather,scatter,allgather,bcast,reduce,allreduce"
EXAMPLE = 'palmette plan gather --machine "3leaf:3+3+2node:2core" --placement cyclic'
_RATED = '--machine "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"'
EXAMPLES = {
    "plan": EXAMPLE,
    "predict": f"palmette plan gather,bcast --predict {_RATED} --size 1K,64K",
    "bound": f"palmette plan allreduce --bound {_RATED} --size 256K",
    "flow": f"palmette plan gather --flow {_RATED} --placement cyclic --size 64K",
}
MOST_STEPS = 5_000_000
"""A plan of all ranks takes about 100 bytes a step."""


_HELP = """Plan a collective and show it: who sends what to whom, and when.

COLLECTIVE is gather, scatter, allgather, bcast, reduce, allreduce, reduce_scatter, alltoall, barrier, scan or
exscan; reduce_scatter_block and the v and w forms stand for these, with blocks of equal length. With --verify,
--count or --svg the messages are not listed. Three more views:

--predict: the time of each algorithm by size, and the share of each level; several COLLECTIVES, separated by commas,
or `all`. Each plan is simulated with the costs of the topology; missing ones are assumed, as the last lines say. The
fastest has a star, what the built-in table takes a `>`.

--bound: the time that no plan and no library can go below, and what sets it.

--flow: the plan on the links of the machine, shared by max-min fairness, without and with other traffic.
"""
SECTIONS = {
    "Views": ("predict", "bound", "flow"),
    "The plan itself": ("rank", "verify", "counted", "everything", "listed"),
    "With --bound": ("in_network", "ports_given", "at_once", "edges_of"),
    "With --flow": ("traffic", "seed", "exact", "over_time"),
}
"""Options below headings of their own; the others are for all views."""


@click.command(
    "plan", cls=SectionedCommand, sections=SECTIONS, help=_HELP, epilog=f"Example: {EXAMPLE} --svg plan.svg",
    context_settings={"max_content_width": 80},
)  # fmt: skip
@click.argument("collective", metavar="[COLLECTIVE]", required=False)
@job_options
@click.option(
    "--algorithm", "algorithms", multiple=True, metavar="NAME[:KEY=VALUE,...]",
    help="Default: what the decision table chooses. Repeatable with --predict.",
)  # fmt: skip
@click.option(
    "--size", "--sizes", "sizes", cls=SingleNameOption, metavar="BYTES",
    help="Bytes that one rank contributes or gets, or sends to each other; else of the vector. "
    "Several with --predict and --bound: 1K,64K.  [default: 1K]",
)  # fmt: skip
@ordered_option
@shared_option
@click.option("--svg", "picture", metavar="FILE", help="Draw the plan; time over size; or how full each link is.")
@click.option("--predict", is_flag=True, help="Predict the time of each algorithm, by size.")
@click.option("--bound", is_flag=True, help="Show the lower bound of the time.")
@click.option("--flow", is_flag=True, help="Simulate the plan on the machine's links.")
@click.option(
    "--rank", type=WholeNumber(0), metavar="RANK", help="Show the steps of one rank only; aggregators follow the ranks."
)
@click.option("--verify", is_flag=True, help="Prove the plan right; status 1 when it is wrong.")
@click.option("--count", "counted", is_flag=True, help="Messages and bytes per level and on the busiest link.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@click.option("--list", "listed", is_flag=True, help="List the algorithms, with keys, source and preconditions.")
@click.option(
    "--in-network", is_flag=True, help="Switches reduce and multicast: show this bound, the other one below it."
)
@click.option(
    "--ports", "ports_given", multiple=True, metavar="LEVEL=K",
    help="The edge of each group of LEVEL is K ports, each rank bound to one of them.",
)  # fmt: skip
@click.option(
    "--at-once", type=WholeNumber(1), metavar="K",
    help="Messages that a rank has in flight at once; default: derived from overheads.",
)  # fmt: skip
@click.option("--edges", "edges_of", metavar="LEVEL", help="Show every edge of LEVEL.")
@click.option(
    "--traffic", metavar="PATTERN",
    help="Also under alltoall[:half|SHARE][:SIZE][@RATE]: an all-to-all of half of the processes of each group of the "
    "outermost level, in messages of SIZE, each process at RATE or as fast as links allow.",
)  # fmt: skip
@click.option(
    "--seed", type=WholeNumber(0), default=1, show_default=True, help="Of the choice and order of background traffic."
)
@click.option("--exact", is_flag=True, help="Follow every change of rates in large plans too, however small.")
@click.option("--over-time", is_flag=True, help="With --json: the bytes that each link carried in each interval, too.")
@json_option
def command(
    collective: str | None, where: JobOptions, algorithms: tuple[str, ...], sizes: str | None,
    ordered: bool, shared: bool, picture: str | None, predict: bool, bound: bool, flow: bool, as_json: bool,
    **own: Any,
) -> None:  # fmt: skip
    """Show the view that is asked for; the help text is above."""
    view = _view(click.get_current_context(), predict=predict, bound=bound, flow=flow)
    example = EXAMPLES[view]
    if view == "predict":
        from palmette.cli import plan_predict

        plan_predict.show(
            _job(where, example), where, collective or COMMON, sizes or plan_predict.DEFAULT_SIZES, algorithms,
            shared=shared, picture=picture, as_json=as_json,
        )  # fmt: skip
        return
    planned = planned_as(collective) if collective is not None else None
    if own["listed"]:
        if as_json:
            emit_json(list_json(planned))
        else:
            click.echo("\n".join(list_lines(planned)))
        return
    if planned is None:
        raise CliError(f"no collective given, it is one of {', '.join(COLLECTIVES)}; for instance: {example}")
    if len(algorithms) > 1:
        raise CliError("--algorithm: several are for --predict; give one")
    algorithm = algorithms[0] if algorithms else None
    size = "0" if planned == "barrier" and view == "plan" else sizes or "1K"
    if view == "bound":
        from palmette.cli import plan_bound

        plan_bound.show(
            _job(where, example), where, planned, size, shared=shared, as_json=as_json,
            **{name: own[name] for name in SECTIONS["With --bound"]},
        )  # fmt: skip
        return
    if view == "flow":
        from palmette.cli import plan_flow

        plan_flow.show(
            _job(where, example), where, planned, algorithm, size, ordered=ordered, shared=shared, picture=picture,
            as_json=as_json, **{name: own[name] for name in SECTIONS["With --flow"]},
        )  # fmt: skip
        return
    names = SECTIONS["The plan itself"]
    _show(
        planned, where, algorithm, size, ordered=ordered, shared=shared, picture=picture, as_json=as_json,
        **{name: own[name] for name in names if name != "listed"},
    )  # fmt: skip


def _view(context: click.Context, **views: bool) -> str:
    """Return the view that is asked for. Raises CliError for two of them, and for options of another one."""
    asked = [name for name, wanted in views.items() if wanted]
    if len(asked) > 1:
        raise CliError(f"--{asked[0]} and --{asked[1]} are two views; give one of them")
    view = asked[0] if asked else "plan"
    taken = {"plan": "The plan itself", "bound": "With --bound", "flow": "With --flow"}.get(view, "")
    refused = {name: title for title, names in SECTIONS.items() if title not in ("Views", taken) for name in names}
    if view == "predict":
        refused["ordered"] = "The plan itself"
    if view == "bound":
        refused |= {"ordered": "The plan itself", "algorithms": "The plan itself", "picture": "The plan itself"}
    for option in context.command.params:
        title = refused.get(option.name or "")
        if title and context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE:
            whose = title.removeprefix("With ") if title.startswith("With") else "the plan itself"
            raise CliError(f"{option.opts[0]} is for {whose}" + (f", not for --{view}" if view != "plan" else ""))
    return view


def _job(where: JobOptions, example: str) -> _core.Job:
    try:
        return where.job(example)
    except _core.Error as error:
        raise CliError(str(error)) from None


def _show(
    collective: str, where: JobOptions, algorithm: str | None, size: str, *, ordered: bool, shared: bool,
    rank: int | None, verify: bool, counted: bool, picture: str | None, everything: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make the plan, and print, verify, count, draw it. Raises CliError."""
    try:
        job = where.job(EXAMPLE)
        block_bytes = _core.parse_size(size)
        chosen = choose(job, collective, algorithm, where.root, block_bytes, ordered=ordered, shared_memory=shared)
        asked = _Request(collective, job, where, chosen, block_bytes, ordered, shared)
        if rank is not None:
            _show_rank(asked, rank, as_json)
            return
        _check_size(asked)
        with ActivityLine(f"planning {collective} for {plural(job.size, 'rank')}") as working:
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
class _Request:
    """The request: which collective on which job, with which algorithm."""

    collective: str
    job: _core.Job
    where: JobOptions
    chosen: AlgorithmChoice
    block_bytes: int
    ordered: bool
    shared: bool

    @property
    def details(self) -> Details:
        """The core's further parameters."""
        return details_of(self.collective, ordered=self.ordered, shared_memory=self.shared)


def _check_size(asked: _Request) -> None:
    """Refuse plans that wouldn't fit in memory; one rank's program is never a problem."""
    about = about_steps(
        asked.job, asked.collective, asked.chosen.algorithm, asked.where.root, asked.block_bytes, asked.details
    )
    if about > MOST_STEPS:
        raise CliError(
            f"the plan of all {asked.job.size:,} ranks has about {about:,.0f} steps, too many to hold at once; show "
            "one rank with --rank, or at fewer ranks with --ranks"
        )


def _show_rank(asked: _Request, rank: int, as_json: bool) -> None:
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


def _head(asked: _Request) -> list[str]:
    size = size_phrase(asked.collective, asked.block_bytes)
    kept = ", order of ranks kept" if asked.ordered and _core.is_reduction(asked.collective) else ""
    described = asked.where.phrase(asked.job, asked.collective)
    return head_lines(asked.collective, asked.chosen, described + (f", {size}" if size else "") + kept)


def _lines(
    asked: _Request,
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
        lines += ["", *wrapped(verdict, rest="")]
    if picture is not None:
        lines += ["", f"wrote {picture}"]
    return lines


def _as_json(
    asked: _Request, plan: _core.Plan, verify: bool, complaint: str | None, counted: bool, picture: str | None
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
