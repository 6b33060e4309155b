"""`palmette bench`: collectives under the MPI alone and with palmette."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from palmette import _core
from palmette.bench.compare import compare_runs, differences
from palmette.bench.evaluate import Row, evaluate
from palmette.bench.memory import MEMORIES, mpis_that_need_copies
from palmette.bench.results import Job, Run
from palmette.bench.rivals import parse_rival
from palmette.bench.runner import measure
from palmette.bench.sets import SETS, outcomes_of
from palmette.bench.settings import Settings, expand_collectives, parse_sizes, split
from palmette.bench.store import DEFAULT_PATH, Store, open_store
from palmette.bench.targets import Outcome
from palmette.bench.text import change_table
from palmette.bench.traffic import Traffic
from palmette.bench.variants import PRESETS, parse_variant
from palmette.cli import installations
from palmette.cli.bench_place import DEFAULT_LAB as DEFAULT_LAB
from palmette.cli.bench_place import LineCommand, Where, place_options
from palmette.cli.bench_plan import RunPlan, plan_run, report_left_out, write_load
from palmette.cli.bench_progress import BenchProgress
from palmette.cli.bench_show import show_run as show_run
from palmette.cli.common import CliError, Whole, assignment, console, emit_json, errors, json_option, sizes_option
from palmette.cli.duration import Seconds, duration
from palmette.cli.group import WithSubcommands
from palmette.lab import LabError
from palmette.measure.errors import BenchError
from palmette.measure.places import Place
from palmette.mpi import install as mpi_install
from palmette.mpi.launch import LaunchError
from palmette.report.page import write_page
from palmette.run import RunError
from palmette.topology.file import TopologyError
from palmette.topology.placement import PlacementError
from palmette.units import plural


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert the errors of a benchmark's layers to CliError."""
    try:
        yield
    except (
        BenchError,
        LabError,
        LaunchError,
        PlacementError,
        RunError,
        TopologyError,
        mpi_install.MpiNotFoundError,
        _core.Error,
    ) as error:
        raise CliError(str(error)) from error


_VARIANT_HELP = f"Palmette so set, too: {', '.join(PRESETS)}, or NAME:K=V,..."


class BenchCommand(LineCommand, WithSubcommands):
    """Takes a launcher's line, and lists the commands of two words."""


@click.command(
    cls=BenchCommand,
    context_settings={"max_content_width": 80},
    epilog="Example: palmette bench allgather --sizes 64K,256K --topology topology.json -- mpiexec -n 64",
)
@click.argument("collectives", default="gather,scatter,allgather")
@click.option(
    "--set",
    "set_name",
    type=click.Choice(list(SETS)),
    metavar="NAME",
    help=f"Collectives, sizes, place and targets by one name: {', '.join(SETS)}.",
)
@sizes_option("64,1K,16K,64K,256K", "Bytes a block, powers of 1024.")
@click.option("--placement", "placements", help="Placements, separated by commas. [default: block,cyclic,random:1]")
@click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]")
@place_options(spine_delay=True)
@click.option("--ppn", type=Whole(1), help="Ranks a host. [default: the machine's slots]")
@click.option("--ranks", type=Whole(1), help="Ranks of the job. [default: all slots]")
@click.option("--root", type=Whole(0), default=0, show_default=True, help="Root of the collectives.")
@click.option("--env", "assignments", multiple=True, metavar="K=V", help="Set a variable in the ranks (repeatable).")
@click.option("--repeat", type=Whole(1), default=1, show_default=True, help="Jobs for each MPI and placement.")
@click.option("--seconds", type=Seconds(), default=2.0, show_default=True, help="Time per cell.")
@click.option("--min-iterations", type=Whole(1), default=8, show_default=True, help="Pairs per cell, at least.")
@click.option("--max-iterations", type=Whole(1), default=1000, show_default=True, help="At most.")
@click.option("--floor", is_flag=True, help="Also measure with the lab's rate limits off: the lower bound.")
@click.option("--pass-through", is_flag=True, help="Also measure the overhead of calls left to the MPI.")
@click.option("--side-by-side", is_flag=True, help="Compare the MPIs side by side, against the fastest.")
@click.option("--rival", "rivals", multiple=True, metavar="NAME", help="And mpich-topology, or NAME:MPI[:K=V,...].")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help=_VARIANT_HELP)
@click.option("--memory", type=click.Choice(MEMORIES), default="host", help="Where buffers lie. [default: host]")
@click.option("--traffic", metavar="KIND", help="Also measure under load: alltoall[:half|:all][:SIZE].")
@click.option(
    "--write-load",
    "write_load_to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write topology.json with the traffic's load of each link.",
)
@click.option("--budget", callback=duration, metavar="TIME", help="Fit everything in this time: 900s, 15min, 2h.")
@click.option("--resume", is_flag=True, help="Resume the last run of the same settings and commit.")
@click.option("--no-preload", is_flag=True, help="Compare the MPI with itself: the noise level.")
@click.option("--timeout", callback=duration, metavar="TIME", help="End a job after this time. [default: by its cells]")
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PATH,
    show_default=True,
    help="Where raw samples go.",
)
@click.option(
    "--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the HTML page, too."
)
@click.option("--fail-if-slower", is_flag=True, help="Exit with 1 when a trusted cell is slower by more than 5 %.")
@click.option("--fail-if-missed", is_flag=True, help="Exit with 1 unless every target of the set is met.")
@click.option("--fail-if-any-slower", is_flag=True, help="The same for all cells, trusted or not.")
@click.option(
    "--compare", nargs=2, metavar="RUN1 RUN2", help="Measure nothing: compare stored runs (5 12, last~1 last)."
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    collectives: str,
    set_name: str | None,
    sizes: str,
    placements: str | None,
    mpis: str | None,
    where: Where,
    ppn: int | None,
    ranks: int | None,
    root: int,
    assignments: tuple[str, ...],
    repeat: int,
    seconds: float,
    min_iterations: int,
    max_iterations: int,
    floor: bool,
    pass_through: bool,
    side_by_side: bool,
    rivals: tuple[str, ...],
    variants: tuple[str, ...],
    memory: str,
    traffic: str | None,
    write_load_to: Path | None,
    budget: float | None,
    resume: bool,
    no_preload: bool,
    timeout: float | None,
    store: Path,
    page: Path | None,
    fail_if_slower: bool,
    fail_if_missed: bool,
    fail_if_any_slower: bool,
    compare: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """Measure collectives under the MPI alone and with palmette.

    COLLECTIVES are separated by commas; all, blocking and nonblocking stand for several. Calls with and without
    palmette alternate in one job; results are checked; all ranks start at a common time. Where: behind -- the line that
    starts your jobs, without a program; a lab; or local ranks. A set defines all options and its targets; options that
    are given override it. docs/guide/bench.md describes the verdicts.
    """
    if compare is not None:
        _compare(store, *compare, as_json=as_json)
        return
    named_set = SETS[set_name] if set_name else None
    where = where.completed(named_set)
    where.refuse_with_line(
        {"--placement": placements, "--mpi": mpis, "--ppn": ppn, "--ranks": ranks, "--floor": floor or None}
    )
    local = where.is_local()
    values: dict[str, Any] = {
        "collectives": expand_collectives(split(collectives)),
        "placements": where.placements(placements or ("block" if local else "block,cyclic,random:1")),
        "ppn": ppn,
        "ranks": ranks,
        "root": root,
        "repeat": repeat,
        "seconds": seconds,
        "min_pairs": min_iterations,
        "max_pairs": max_iterations,
        "env": dict(map(assignment, assignments)),
        "floor": floor,
        "preload": not no_preload,
        "pass_through": pass_through,
        "timeout_s": timeout,
        "named_set": set_name,
        "budget_s": budget,
        "memory": memory,
    }
    with one_line_errors():
        values["rivals"] = tuple(map(parse_rival, rivals))
        values["variants"] = tuple(map(parse_variant, variants))
        values["traffic"] = Traffic.parse(traffic).text if traffic is not None else None
        values["sizes"] = parse_sizes(split(sizes))
        # That of a launcher line is known once its first job has run.
        values["mpis"] = ("mpich",) if where.line else _mpis(mpis or ("all" if named_set else None))
        if named_set is not None:
            values |= {name: value for name, value in named_set.settings.items() if not _is_given(context, name)}
            if not rivals:  # the set's own, as far as their MPIs are there
                values["rivals"] = tuple(rival for rival in values["rivals"] if rival.mpi in values["mpis"])
        settings = Settings(**values)
        if local and settings.placements != ("block",):
            raise CliError(
                "--placement has no meaning for local ranks, which share one host; leave it out or give --lab"
            )
        if write_load_to is not None and settings.traffic is None:
            raise CliError(
                "--write-load has nothing to write without --traffic; give it, as in --traffic alltoall:half"
            )
        with where.place(local=local) as place, open_store(store, create=True) as kept:
            if place.mpi is not None:
                settings = replace(settings, mpis=(place.mpi.name,), clock=place.clock)
            settings = _with_copies(settings, place)
            plan = plan_run(settings, place, kept, resume=resume)
            if plan.before is not None and not plan.jobs:
                run = plan.before
            else:
                run = run_with_progress(settings, place, kept, plan)
            report_left_out(plan)
        rows = evaluate(run)
        if page is not None:
            write_page(page, run, rows)
        if write_load_to is not None:
            write_load(write_load_to, run)
    side_by_side = side_by_side or bool(named_set and named_set.side_by_side)
    show_run(run, rows, store, page, as_json=as_json, side_by_side=side_by_side)
    plain = [row for row in rows if not row.is_variant]
    # What a real cluster takes is no matter of an emulation that could be too slow.
    sure = [row for row in plain if row.trusted or where.line]
    counted = plain if fail_if_any_slower else sure if fail_if_slower else []
    _set_status(run, counted, outcomes_of(run) if fail_if_missed else [])


def _with_copies(settings: Settings, place: Place) -> Settings:
    """Find out which MPIs can read the buffers. Raises BenchError where there is no such memory."""
    if settings.memory == "host":
        return settings
    hosts = place.place(settings.placements[0], settings.ppn, settings.ranks)
    names = dict.fromkeys((*settings.mpis, *(rival.mpi for rival in settings.rivals)))
    copies = mpis_that_need_copies(settings.memory, list(names), place, hosts, settings.env)
    return replace(settings, copies=copies)


_PARAMETERS = {
    "min_pairs": "min_iterations",
    "max_pairs": "max_iterations",
    "preload": "no_preload",
    "env": "assignments",
    "budget_s": "budget",
}
"""Fields of Settings whose option has another name."""


def _is_given(context: click.Context, field: str) -> bool:
    """Whether a field of Settings was given on the command line."""
    source = context.get_parameter_source(_PARAMETERS.get(field, field))
    return source is click.core.ParameterSource.COMMANDLINE


def run_with_progress(
    settings: Settings,
    place: Place,
    store: Store | None,
    plan: RunPlan | None = None,
) -> Run:
    """Measure with a progress display on standard error; each job is stored as it ends. `plan`: do this."""
    kept = 0

    def keep(run: Run, job: Job) -> None:
        nonlocal kept
        if store is not None:
            store.add(run, job)
            kept += 1

    with BenchProgress(errors, settings, plan.jobs if plan else None) as progress:
        if plan is None:
            return measure(settings, place, progress, keep)
        try:
            return measure(settings, place, progress, keep, jobs=plan.jobs, run=plan.before, keeper=plan.keeper)
        except KeyboardInterrupt:
            if kept or plan.before is not None:
                told = f"{plural(kept, 'job')} stored; the same command with --resume goes on from there"
            else:
                told = "no job had ended, so nothing is stored; --budget and fewer cells make shorter ones"
            errors.print(f"palmette bench: {told}", markup=False)
            raise


def _compare(store: Path, first: str, second: str, *, as_json: bool) -> None:
    with one_line_errors(), open_store(store, create=False) as kept:
        before, after = kept.load(first), kept.load(second)
        changes = compare_runs(before, after)
    notes = differences(before, after)
    if as_json:
        emit_json({"runs": [before.id, after.id], "differences": notes, "cells": [one.to_json() for one in changes]})
        return
    for run in (before, after):
        commit = run.machine.get("commit") or "unknown"
        console.print(f"run {run.id}: {run.started}, palmette {run.machine['palmette']}, commit {commit}", markup=False)
    for note in notes:
        console.print(f"differs: {note}", markup=False)
    console.print()
    console.print(change_table(changes, before, after))
    console.print(
        "\nratio: time with palmette, later / earlier; control: the same of the MPI alone; ? where that changed"
    )


def _mpis(text: str | None) -> tuple[str, ...]:
    if text is not None and text != "all":
        return split(text)
    return tuple(installation.name for installation in installations.chosen(text))


def _set_status(run: Run, counted: Sequence[Row], wanted: Sequence[Outcome]) -> None:
    """Exit with 1 when a job failed, one of the cells that count is slower, or a target that counts is missed."""
    missed = [outcome for outcome in wanted if outcome.answer != "met"]
    slower = [row for row in counted if row.ratio.verdict == "slower"]
    failed = [job for job in run.jobs if job.error]
    if failed:
        raise CliError(
            f"{len(failed)} of {len(run.jobs)} jobs failed, see above; the first: {failed[0].error}", status=1
        )
    if slower:
        first = slower[0]
        many = f"{plural(len(slower), 'cell')} {'is' if len(slower) == 1 else 'are'} slower"
        raise CliError(
            f"{many}, the first: {first.mpi} {first.placement} {first.collective} {first.size_bytes}; see the table",
            status=1,
        )
    if missed:
        raise CliError(
            f"{len(missed)} of {len(wanted)} targets are not met, the first: {missed[0].target.text}; see the table",
            status=1,
        )
