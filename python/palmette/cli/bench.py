"""`palmette bench`: collectives under the MPI alone and with palmette."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from palmette import _core, mpi_install
from palmette.bench.compare import compare_runs, differences
from palmette.bench.errors import BenchError
from palmette.bench.evaluate import Row, evaluate
from palmette.bench.places import LabPlace, LocalPlace, Place, free_lab_name
from palmette.bench.results import Job, Run
from palmette.bench.runner import measure
from palmette.bench.settings import Settings, parse_sizes, split, split_placements
from palmette.bench.store import DEFAULT_PATH, Store, open_store
from palmette.bench.text import change_table, summary_lines, tables
from palmette.cli.bench_progress import Progress
from palmette.cli.common import CliError, console, emit_json, errors, json_option
from palmette.lab import Lab, LabError
from palmette.lab.namespaces import check_can_build
from palmette.lab.spec import parse_duration
from palmette.launch import LaunchError
from palmette.placement import PlacementError
from palmette.report.page import write_page
from palmette.run import RunError
from palmette.topology_file import TopologyError

DEFAULT_LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
DEFAULT_LOCAL_RANKS = 4


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn the errors of all that a benchmark stands on into the command line's."""
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


def _delay(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    with one_line_errors():
        return parse_duration(value)


@click.command(
    context_settings={"max_content_width": 80},
    epilog="Example: palmette bench allgather --sizes 64K,256K --placement random:1 --mpi mpich,openmpi",
)
@click.argument("collectives", default="gather,scatter,allgather")
@click.option("--sizes", default="64,1K,16K,64K,256K", show_default=True, help="Bytes a block, powers of 1024.")
@click.option("--placement", "placements", help="Placements, separated by commas. [default: block,cyclic,random:1]")
@click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]")
@click.option(
    "--lab", "lab_spec", metavar="SPEC", help=f"Build this emulated cluster. [default as root: {DEFAULT_LAB}]"
)
@click.option("--lab-name", metavar="NAME", help="Use the lab of that name that is up.")
@click.option("--spine-delay", callback=_delay, metavar="TIME", help="The lab's top switch holds each frame: 5ms.")
@click.option("-n", "--local", "local_ranks", type=click.IntRange(1), help="No lab: this many local ranks.")
@click.option("--ppn", type=click.IntRange(1), help="Ranks a host. [default: the machine's slots]")
@click.option("--ranks", type=click.IntRange(1), help="Ranks of the job. [default: all slots]")
@click.option("--root", type=click.IntRange(0), default=0, show_default=True, help="Root of the collectives.")
@click.option("--env", "assignments", multiple=True, metavar="K=V", help="Set a variable in the ranks (repeatable).")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Jobs for each MPI and placement.")
@click.option("--seconds", type=click.FloatRange(0), default=2.0, show_default=True, help="Time a cell.")
@click.option("--min-iterations", type=click.IntRange(1), default=8, show_default=True, help="Pairs a cell, at least.")
@click.option("--max-iterations", type=click.IntRange(1), default=1000, show_default=True, help="At most.")
@click.option("--floor", is_flag=True, help="Measure with the lab's rates off, too: what the links don't set.")
@click.option("--no-preload", is_flag=True, help="Compare the MPI with itself: what the noise makes of it.")
@click.option("--timeout", callback=_delay, metavar="TIME", help="End a job after this time. [default: by its cells]")
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
@click.option("--fail-if-any-slower", is_flag=True, help="The same for all cells, trusted or not.")
@click.option(
    "--compare", nargs=2, metavar="RUN1 RUN2", help="Measure nothing: compare stored runs (5 12, last~1 last)."
)
@json_option
def command(
    collectives: str,
    sizes: str,
    placements: str | None,
    mpis: str | None,
    lab_spec: str | None,
    lab_name: str | None,
    spine_delay: float | None,
    local_ranks: int | None,
    ppn: int | None,
    ranks: int | None,
    root: int,
    assignments: tuple[str, ...],
    repeat: int,
    seconds: float,
    min_iterations: int,
    max_iterations: int,
    floor: bool,
    no_preload: bool,
    timeout: float | None,
    store: Path,
    page: Path | None,
    fail_if_slower: bool,
    fail_if_any_slower: bool,
    compare: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """Measure collectives under the MPI alone and with palmette.

    COLLECTIVES are separated by commas. Both are called in turns in one job; results are checked; all ranks start at a
    common time. docs/guide/bench.md says how verdicts come about.
    """
    if compare is not None:
        _compare(store, *compare, as_json=as_json)
        return
    local = _is_local(lab_spec, lab_name, local_ranks)
    with one_line_errors():
        settings = Settings(
            collectives=split(collectives),
            sizes=parse_sizes(split(sizes)),
            placements=split_placements(placements or ("block" if local else "block,cyclic,random:1")),
            mpis=_mpis(mpis),
            ppn=ppn,
            ranks=ranks,
            root=root,
            repeat=repeat,
            seconds=seconds,
            min_pairs=min_iterations,
            max_pairs=max_iterations,
            env=dict(map(_assignment, assignments)),
            floor=floor,
            preload=not no_preload,
            timeout_s=timeout,
        )
        if local and settings.placements != ("block",):
            raise CliError(
                "--placement has no meaning for local ranks, which share one host; leave it out or give --lab"
            )
        with (
            _place(local, lab_spec, lab_name, spine_delay, local_ranks) as place,
            open_store(store, create=True) as kept,
        ):
            run = run_with_progress(settings, place, kept)
        rows = evaluate(run)
        if page is not None:
            write_page(page, run, rows)
    show_run(run, rows, store, page, as_json=as_json)
    counted = rows if fail_if_any_slower else [row for row in rows if row.trusted] if fail_if_slower else []
    _set_status(run, counted)


def run_with_progress(settings: Settings, place: Place, store: Store | None) -> Run:
    """Measure with a progress display on standard error; each job is stored as it ends."""

    def keep(run: Run, job: Job) -> None:
        if store is not None:
            store.add(run, job)

    with Progress(errors, settings) as progress:
        return measure(settings, place, progress, keep)


def show_run(run: Run, rows: Sequence[Row], store: Path, page: Path | None, *, as_json: bool) -> None:
    """Print the tables, or the JSON."""
    if as_json:
        emit_json(
            {
                "run": run.id,
                "store": str(store),
                "page": str(page) if page else None,
                "started": run.started,
                "place": run.place,
                "machine": run.machine,
                "settings": run.settings,
                "jobs": [
                    {
                        "mpi": job.mpi,
                        "mpi_version": job.mpi_version,
                        "placement": job.placement,
                        "repeat": job.repeat,
                        "kind": job.kind,
                        "seconds": job.seconds,
                        "error": job.error,
                    }
                    for job in run.jobs
                ],
                "cells": [row.to_json() for row in rows],
            }
        )
        return
    console.print(
        f"{run.place}; {run.machine['cpu']}, {run.machine['cores']} cores; palmette {run.machine['palmette']}"
    )
    for table in tables(rows):
        console.print()
        console.print(table)
    console.print()
    for line in summary_lines(run, rows):
        console.print(line, markup=False)
    console.print(f"run {run.id} in {store}" + (f"; page: {page}" if page else ""), markup=False)


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


def _is_local(lab_spec: str | None, lab_name: str | None, local_ranks: int | None) -> bool:
    """Whether to run local ranks. Raises CliError when more than one place is named."""
    named = [
        name
        for name, value in (("--lab", lab_spec), ("--lab-name", lab_name), ("--local", local_ranks))
        if value is not None
    ]
    if len(named) > 1:
        raise CliError(f"{' and '.join(named)} name different places to run; give one of them")
    if named:
        return local_ranks is not None
    try:
        check_can_build()
    except LabError as error:
        errors.print(f"palmette bench: no lab ({error}); {DEFAULT_LOCAL_RANKS} local ranks", markup=False)
        return True
    return False


@contextmanager
def _place(
    local: bool, lab_spec: str | None, lab_name: str | None, spine_delay: float | None, local_ranks: int | None
) -> Iterator[Place]:
    if local:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="palmette-bench-") as folder:
            yield LocalPlace(local_ranks or DEFAULT_LOCAL_RANKS, Path(folder))
    elif lab_name is not None:
        if spine_delay is not None:
            raise CliError("--spine-delay is set when a lab is made; leave it out with --lab-name")
        yield LabPlace(Lab.attach(lab_name))
    else:
        # A name of its own: somebody's lab may be up.
        with Lab.up(lab_spec or DEFAULT_LAB, name=free_lab_name("bench"), spine_delay_s=spine_delay) as lab:
            yield LabPlace(lab)


def _mpis(text: str | None) -> tuple[str, ...]:
    if text is not None and text != "all":
        return split(text)
    found = tuple(installation.name for installation in mpi_install.find_all())
    if not found:
        raise CliError("no MPI is installed; run `make build`, or set PALMETTE_MPI_MPICH to the prefix of one")
    return found if text == "all" else found[:1]


def _set_status(run: Run, counted: Sequence[Row]) -> None:
    """Exit with 1 when a job failed, or one of the cells that count is slower."""
    slower = [row for row in counted if row.ratio.verdict == "slower"]
    failed = [job for job in run.jobs if job.error]
    if failed:
        raise CliError(
            f"{len(failed)} of {len(run.jobs)} jobs failed, see above; the first: {failed[0].error}", status=1
        )
    if slower:
        first = slower[0]
        raise CliError(
            f"{len(slower)} cells are slower, the first: {first.mpi} {first.placement} {first.collective}"
            f" {first.size_bytes}; see the table",
            status=1,
        )


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CliError(f"--env {text}: expected NAME=VALUE")
    return name, value
