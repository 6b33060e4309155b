"""`palmette flow`: play a plan over the links of a machine, quiet and under other traffic."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from palmette import _core
from palmette.cli.common import CliError, emit_json, json_option, make_console
from palmette.cli.job_options import job_options, job_phrase, make_job
from palmette.flow.summary import Played, both_json, lines
from palmette.flow.svg import svg
from palmette.plan.choice import Chosen, NothingChosenError, choose
from palmette.plan.contents import size_phrase

EXAMPLE = 'palmette flow gather --machine "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core" --placement cyclic --size 64K'
ELEMENT_BYTES = 4
MOST_STEPS = 20_000_000
"""A plan of all ranks with its simulation takes about 250 bytes a step."""

Progress = Callable[[int, int], None]


@click.command("flow", epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("collective", type=click.Choice(tuple(_core.collectives())))
@job_options
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
@click.option(
    "--traffic",
    metavar="PATTERN",
    help="Beside it, play it under alltoall[:half|SHARE][:SIZE][@RATE]: an all-to-all of half of the processes of each "
    "group of the outermost level, in messages of SIZE, each process at RATE or as fast as links go.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Of the choice and order of background traffic.",
)
@click.option("--exact", is_flag=True, help="Follow every change of rates in large plans too, however small.")
@click.option("--svg", "picture", metavar="FILE", help="Write a picture: how full each link is over time.")
@json_option
def command(
    collective: str,
    machine: str | None,
    topology: str | None,
    placement: str,
    ranks: int | None,
    root: int,
    algorithm: str | None,
    size: str,
    ordered: bool,
    shared: bool,
    traffic: str | None,
    seed: int,
    exact: bool,
    picture: str | None,
    as_json: bool,
) -> None:
    """Play the plan of a COLLECTIVE over the links of a machine and tell how long it takes.

    Messages share links fairly, and ranks do one thing at a time. COLLECTIVE is gather, scatter, allgather, bcast,
    reduce, allreduce, reduce_scatter, alltoall, barrier, scan or exscan.
    """
    try:
        if traffic is not None:
            _core.parse_traffic(traffic)
        job = make_job(machine, topology, placement, ranks, EXAMPLE)
        block_bytes = 0 if collective == "barrier" else _core.parse_size(size)
        chosen = choose(job, collective, algorithm, root, block_bytes, ordered=ordered, shared_memory=shared)
        plan = _plan(job, collective, chosen, root, block_bytes, ordered, shared)
        bound = _core.bound(job, collective, block_bytes, root)
        quiet = _play("quiet", plan, bound, "", seed, exact)
        loaded = _play("loaded", plan, bound, traffic, seed, exact) if traffic not in (None, "", "none") else None
        where = job_phrase(job, placement, collective, root)
    except _core.Error as error:
        raise CliError(str(error)) from None
    except NothingChosenError as error:
        raise CliError(f"{error}; name one with --algorithm, `palmette plan {collective} --list` shows them") from None
    phrase = size_phrase(collective, block_bytes)
    if picture is not None:
        under = f"  ·  loaded: {traffic}" if loaded is not None else ""
        subtitle = "  ·  ".join(part for part in (where, phrase) if part) + under
        _write(picture, svg(quiet, loaded, f"{collective} {chosen.algorithm}", subtitle))
    if as_json:
        document = {
            "collective": collective,
            "algorithm": chosen.algorithm,
            "chosen": chosen.reason,
            "size_bytes": block_bytes,
            "ranks": job.size,
            "placement": placement,
            "root": root if _core.is_rooted(collective) else None,
            "traffic": traffic,
            "seed": seed,
            **both_json(quiet, loaded),
        }
        if picture is not None:
            document["svg"] = picture
        emit_json(document)
        return
    head = [f"{collective}, algorithm {chosen.algorithm}"]
    if not chosen.reason.startswith("named"):
        head.append(chosen.reason)
    head.append(where + (f", {phrase}" if phrase else ""))
    if loaded is not None:
        head.append(f"loaded: {traffic}")
    text = [part for line in head for part in click.wrap_text(line, width=80).splitlines()]
    text += ["", *lines(quiet, loaded)]
    if picture is not None:
        text += ["", f"wrote {picture}"]
    click.echo("\n".join(text))


def _plan(
    job: _core.Job, collective: str, chosen: Chosen, root: int, block_bytes: int, ordered: bool, shared: bool
) -> _core.Plan:
    element_bytes = ELEMENT_BYTES if _core.is_reduction(collective) else 1
    if job.size > 1024:
        sample = sorted({root, *(job.size * i // 7 for i in range(7))})
        steps = [
            len(
                _core.make_program(
                    job, rank, collective, chosen.algorithm, root, block_bytes,
                    ordered=ordered, shared_memory=shared, element_bytes=element_bytes,
                )
            )
            for rank in sample
        ]  # fmt: skip
        rooted = _core.is_rooted(collective)
        about = max(min(steps) * job.size, max(steps)) if rooted else sum(steps) / len(steps) * job.size
        if about > MOST_STEPS:
            raise CliError(
                f"the plan of all {job.size:,} ranks has about {about:,.0f} steps, too many to hold at once; play fewer "
                "ranks with --ranks, or another algorithm with --algorithm"
            )
    return _core.Plan(
        job, collective, chosen.algorithm, root, block_bytes,
        ordered=ordered, shared_memory=shared, element_bytes=element_bytes,
    )  # fmt: skip


def _play(label: str, plan: _core.Plan, bound: _core.Bound, traffic: str | None, seed: int, exact: bool) -> Played:
    with _progress(label) as progress:
        result = _core.flow(plan, traffic=traffic or "", seed=seed, tolerance=0.0 if exact else -1.0, progress=progress)
    return Played(label, plan, result, bound)


@contextmanager
def _progress(label: str) -> Iterator[Progress | None]:
    """A bar over messages on a terminal; elsewhere a line for every tenth of many messages."""
    if sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,}/{task.total:,} messages"),
        )
        with Progress(*columns, TimeElapsedColumn(), console=make_console(stderr=True), transient=True) as bars:
            task = bars.add_task(label, total=1)
            yield lambda done, total: bars.update(task, completed=done, total=total)
        return
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if total and done * 10 // total > told:
            told = done * 10 // total
            click.echo(f"palmette flow: {label}, {done:,} of {total:,} messages", err=True)

    yield tell


def _write(picture: str, text: str) -> None:
    try:
        Path(picture).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"can't write {picture}: {error.strerror}; choose another file with --svg") from None
