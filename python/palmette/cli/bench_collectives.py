"""`palmette bench collectives`: collectives under the MPI alone and with palmette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from palmette.bench.evaluate import Row, evaluate
from palmette.bench.memory import MEMORIES, mpis_that_need_copies
from palmette.bench.results import Job, Run
from palmette.bench.runner import measure
from palmette.bench.settings import Settings, expand_collectives, parse_sizes, split
from palmette.bench.store import DEFAULT_PATH, Store, open_store
from palmette.bench.targets import Outcome
from palmette.bench.variants import PRESETS, parse_variant
from palmette.bench_page.page import write_page
from palmette.cli import installations
from palmette.cli.bench_plan import RunPlan, plan_run, report_left_out, write_load
from palmette.cli.bench_progress import BenchProgress
from palmette.cli.bench_show import show_run
from palmette.cli.common import CliError, WholeNumber, assignment, errors, json_option, sizes_option
from palmette.cli.duration import Seconds, duration
from palmette.cli.place import LineCommand, PlaceOptions, place_options
from palmette.cli.place_errors import one_line_errors
from palmette.measure.places import Place
from palmette.units import plural

SECTIONS = {
    "Where": ("local_ranks", "topology", "abi", "mpis"),
    "How long": ("seconds", "min_iterations", "max_iterations", "budget", "resume", "timeout"),
    "Results": ("store", "page", "fail_if_slower", "as_json"),
}
"""What the options are for, in the help."""
VARIANT_HELP = f"Palmette so set, too: {', '.join(PRESETS)}, or NAME:K=V,..."

_Command = Callable[..., Any]
_FILE = click.Path(path_type=Path, dir_okay=False)


def basic_options(function: _Command) -> _Command:
    """Add what a measurement of collectives takes on every place, but for the place itself and --json."""
    for option in reversed(_BASIC):
        function = option(function)
    return function


_BASIC: tuple[Callable[[_Command], _Command], ...] = (
    click.argument("collectives", default="gather,scatter,allgather"),
    sizes_option("64,1K,16K,64K,256K", "Bytes a block, powers of 1024."),
    click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]"),
    click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="Root of the collectives."),
    click.option(
        "--env", "assignments", multiple=True, metavar="K=V", help="Set a variable in the ranks (repeatable)."
    ),
    click.option("--seconds", type=Seconds(), default=2.0, show_default=True, help="Time per cell."),
    click.option(
        "--min-iterations", type=WholeNumber(1), default=8, show_default=True, help="Pairs per cell, at least."
    ),
    click.option("--max-iterations", type=WholeNumber(1), default=1000, show_default=True, help="At most."),
    click.option("--variant", "variants", multiple=True, metavar="NAME", help=VARIANT_HELP),
    click.option("--memory", type=click.Choice(MEMORIES), default="host", help="Where buffers lie. [default: host]"),
    click.option("--budget", callback=duration, metavar="TIME", help="Fit everything in this time: 900s, 15min, 2h."),
    click.option("--resume", is_flag=True, help="Resume the last run of the same settings and commit."),
    click.option(
        "--timeout", callback=duration, metavar="TIME", help="End a job after this time. [default: by its cells]"
    ),
    click.option("--store", type=_FILE, default=DEFAULT_PATH, show_default=True, help="Where raw samples go."),
    click.option("--page", type=_FILE, metavar="FILE", help="Write the HTML page, too."),
    click.option("--fail-if-slower", is_flag=True, help="Exit with 1 when a trusted cell is slower by more than 5 %."),
)


def basic_values(
    *, collectives: str, sizes: str, mpis: str | None, root: int, assignments: tuple[str, ...], seconds: float,
    min_iterations: int, max_iterations: int, variants: tuple[str, ...], memory: str, budget: float | None,
    timeout: float | None, line: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return fields of Settings. Raises BenchError, CliError."""
    return {
        "collectives": expand_collectives(split(collectives)),
        "sizes": parse_sizes(split(sizes)),
        # A launcher line's is known once its first job has run.
        "mpis": ("mpich",) if line else _mpis(mpis),
        "root": root,
        "env": dict(map(assignment, assignments)),
        "seconds": seconds,
        "min_pairs": min_iterations,
        "max_pairs": max_iterations,
        "variants": tuple(map(parse_variant, variants)),
        "memory": memory,
        "budget_s": budget,
        "timeout_s": timeout,
    }


def _none(_run: Run) -> list[Outcome]:
    return []


@dataclass(frozen=True)
class ResultOptions:
    """What is done with a run once it is measured. `outcomes`: those of its targets; they count where `must_meet`."""

    store: Path
    page: Path | None
    as_json: bool
    resume: bool = False
    side_by_side: bool = False
    write_load: Path | None = None
    fail_if_slower: bool = False
    fail_if_any_slower: bool = False
    outcomes: Callable[[Run], list[Outcome]] = _none
    must_meet: bool = False


@click.command(
    "collectives",
    cls=LineCommand,
    sections=SECTIONS,
    context_settings={"max_content_width": 80},
    epilog="Example: palmette bench allgather --sizes 64K,256K --topology topology.json -- mpiexec -n 64",
)
@basic_options
@place_options()
@json_option
def command(
    where: PlaceOptions, mpis: str | None, store: Path, page: Path | None, resume: bool, fail_if_slower: bool,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Measure collectives under the MPI alone and with palmette.

    COLLECTIVES are separated by commas; all, blocking and nonblocking stand for several. Calls with and without
    palmette alternate in one job; results are checked; all ranks start at a common time. Where: behind -- the line that
    starts your jobs, without a program; or local ranks. docs/guide/bench.md describes the verdicts.
    """
    where = where.checked()
    where.refuse_with_line({"--mpi": mpis})
    local = where.is_local()
    with one_line_errors():
        values = basic_values(mpis=mpis, line=bool(where.line), **given)
        settings = Settings(**values, placements=where.placements(), ppn=where.ppn, ranks=where.ranks)
    show = ResultOptions(store, page, as_json, resume=resume, fail_if_slower=fail_if_slower)
    measure_and_show(settings, where, show, local=local)


def measure_and_show(settings: Settings, where: PlaceOptions, show: ResultOptions, *, local: bool) -> None:
    """Measure at the place, print the tables, write what is asked for. Raises CliError: status 1 for failed jobs, and
    for slower cells and missed targets that count.
    """
    with one_line_errors():
        with where.place(local=local) as place, open_store(show.store, create=True) as kept:
            if place.mpi is not None:
                settings = replace(settings, mpis=(place.mpi.name,), clock=place.clock)
            settings = _with_copies(settings, place)
            plan = plan_run(settings, place, kept, resume=show.resume)
            if plan.before is not None and not plan.jobs:
                run = plan.before
            else:
                run = run_with_progress(settings, place, kept, plan)
            report_left_out(plan)
        rows = evaluate(run)
        outcomes = show.outcomes(run)
        if show.page is not None:
            write_page(show.page, run, rows, outcomes)
        if show.write_load is not None:
            write_load(show.write_load, run)
    show_run(run, rows, show.store, show.page, as_json=show.as_json, side_by_side=show.side_by_side, outcomes=outcomes)
    plain = [row for row in rows if not row.is_variant]
    # What a real cluster takes is no matter of an emulation that could be too slow.
    sure = [row for row in plain if row.trusted or where.line]
    counted = plain if show.fail_if_any_slower else sure if show.fail_if_slower else []
    _set_status(run, counted, outcomes if show.must_meet else [])


def _with_copies(settings: Settings, place: Place) -> Settings:
    """Find out which MPIs can read the buffers. Raises BenchError where there is no such memory."""
    if settings.memory == "host":
        return settings
    hosts = place.place(settings.placements[0], settings.ppn, settings.ranks)
    names = dict.fromkeys((*settings.mpis, *(rival.mpi for rival in settings.rivals)))
    copies = mpis_that_need_copies(settings.memory, list(names), place, hosts, settings.env)
    return replace(settings, copies=copies)


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
