"""`palmette bench compose`: composed plans against the MPI's own collectives, and their tuning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from palmette import _core
from palmette.bench.settings import parse_sizes, split
from palmette.cli import installations
from palmette.cli.common import CliError, WholeNumber, emit_json, errors, json_option, sizes_option, write_file
from palmette.cli.duration import Seconds, duration
from palmette.cli.place import LineCommand, PlaceOptions, place_options
from palmette.cli.place_errors import one_line_errors
from palmette.compose.auto import ablation
from palmette.compose.bench import (
    COLLECTIVES,
    BenchCase,
    Cell,
    NamedFactoring,
    Settings,
    composition_of,
    job_on,
    measure,
)
from palmette.compose.bench_svg import svg
from palmette.compose.bench_text import cell_json, cell_lines
from palmette.compose.composition import Composition
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.tuning import candidates, choose_seconds
from palmette.measure.places import Place

FASTEST = 5
"""Candidates that tuning shows."""
EXAMPLE = "palmette bench compose broadcast,reduce --sizes 1M -- mpiexec -n 64"


@click.command("compose", cls=LineCommand, epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("compositions", default="broadcast,reduce")
@sizes_option("1M", "Bytes of a block, or of the vector.")
@click.option(
    "--factoring", "texts", multiple=True, metavar="TEXT", help="'method=ring,tree.2 pipeline=16' (repeatable)."
)
@click.option("--tune", is_flag=True, help="Measure what the model finds best, and name the fastest.")
@click.option(
    "--budget", default="1min", show_default=True, callback=duration, metavar="TIME", help="Time limit of tuning."
)
@click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]")
@place_options()
@click.option("--root", type=WholeNumber(0), default=0, show_default=True, help="Root of the collectives.")
@click.option("--seconds", type=Seconds(), default=2.0, show_default=True, help="Time for a composition.")
@click.option("--min-iterations", type=WholeNumber(1), default=5, show_default=True, help="Rounds, at least.")
@click.option("--max-iterations", type=WholeNumber(1), default=200, show_default=True, help="At most.")
@click.option(
    "--timeout", callback=duration, metavar="TIME", help="End a job after this time. [default: by its compositions]"
)
@click.option("--svg", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the times as bars.")
@json_option
def command(
    compositions: str,
    sizes: str,
    texts: tuple[str, ...],
    tune: bool,
    budget: float,
    mpis: str | None,
    where: PlaceOptions,
    root: int,
    seconds: float,
    min_iterations: int,
    max_iterations: int,
    timeout: float | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Measure composed plans against the MPI's own collectives.

    COMPOSITIONS are names of `palmette compose --list`, separated by commas. Without --factoring the four of `palmette
    compose --auto` are measured: direct, hierarchical, striped, pipelined. The output adds metrics that do not depend
    on load: messages, bytes between groups, scratch of a rank, stages.
    """
    names = split(compositions)
    for name in names:
        if name not in COLLECTIVES:
            raise CliError(f"composition '{name}' is unknown: there are {', '.join(COLLECTIVES)}")
    if tune and texts:
        raise CliError("--tune looks for factorings, and --factoring names them; give one of the two")
    with one_line_errors(), _one_line():
        chosen = parse_sizes(split(sizes))
        fixed = tuple(
            NamedFactoring(f"factoring {number}", Factoring.parse(text)) for number, text in enumerate(texts, start=1)
        )
        where = where.checked()
        where.refuse_with_line({"--mpi": mpis})
        local = where.is_local()
        results: list[tuple[str, Cell]] = []
        with where.place(local=local) as place:
            jobs = [(mpi, placement) for placement in where.placements() for mpi in installations.on(place, mpis)]
            cells = len(names) * len(chosen)
            for mpi, placement in jobs:
                asked = _asked(place, placement, where.ppn, where.ranks, names, chosen, root, fixed, tune)
                settings = Settings(seconds, min_iterations, max_iterations, root, timeout_s=timeout)
                if tune:
                    share_s = budget / (len(jobs) * cells)
                    asked, settings = choose_seconds(asked, settings, share_s)
                label = f"{mpi.name} {mpi.version}" + (f", {placement}" if not local else "")
                with errors.status(f"{label}: {sum(len(one.variants) for one in asked)} plans against the MPI"):
                    measured = measure(place, mpi, placement, asked, settings, ppn=where.ppn, ranks=where.ranks)
                results += [(label, cell) for cell in measured]
    if picture is not None:
        write_file(picture, svg(results), "--svg")
    if as_json:
        emit_json([cell_json(cell, label) for label, cell in results])
        return
    for number, (label, cell) in enumerate(results):
        click.echo(("\n" if number else "") + "\n".join(cell_lines(cell, label, FASTEST if tune else None)))
        if tune:
            click.echo(_verdict(cell))
    if picture is not None:
        click.echo(f"wrote {picture}")


def _verdict(cell: Cell) -> str:
    best = cell.best
    assert best.factoring is not None
    if best.ratio is not None and best.ratio.verdict == "slower":
        return f"the MPI is faster than all; the best plan takes {best.ratio.value:.2f} times as long"
    return f"best: {best.factoring.text()}\n  in palmette.h: {best.factoring.runtime_text()}"


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except ComposeError as error:
        raise CliError(str(error)) from error


def _asked(
    place: Place,
    placement: str,
    ppn: int | None,
    ranks: int | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    root: int,
    fixed: tuple[NamedFactoring, ...],
    tune: bool,
) -> list[BenchCase]:
    """What to measure against the MPI: the given factorings, those of --auto, or candidates for tuning."""
    job, _ = job_on(place, placement, ppn, ranks)
    if root >= job.size:
        raise CliError(f"--root {root}: the job has {job.size} ranks only")
    asked: list[BenchCase] = []
    with errors.status("factoring") as status:
        for name in names:
            for size in sizes:
                composition = composition_of(name, job.size, size, root)
                if fixed:
                    variants: tuple[NamedFactoring, ...] = fixed
                elif tune:
                    variants = candidates(composition, job, status.update)
                else:
                    variants = _different(
                        [NamedFactoring(one.name, one.factoring) for one in ablation(composition, job, status.update)]
                    )
                for variant in variants:  # fail before anything is started
                    _core_check(variant, composition, job)
                asked.append(BenchCase(name, size, variants))
    return asked


def _core_check(variant: NamedFactoring, composition: Composition, job: _core.Job) -> None:
    try:
        variant.factoring.plan(composition, job)
    except _core.Error as error:
        raise CliError(f"{composition.name}: {error}") from None


def _different(variants: list[NamedFactoring]) -> tuple[NamedFactoring, ...]:
    """Leave out variants equal to the preceding one: steps of the ablation that changed nothing."""
    kept: list[NamedFactoring] = []
    for variant in variants:
        if all(variant.factoring != other.factoring for other in kept):
            kept.append(variant)
    return tuple(kept)
