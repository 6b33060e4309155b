"""`palmette bench pattern`: rates of patterns of messages between groups of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from palmette.bench.settings import parse_sizes, split
from palmette.cli import installations
from palmette.cli.common import CliError, WholeNumber, emit_json, errors, json_option, sizes_option, write_file
from palmette.cli.duration import Seconds, duration
from palmette.cli.place import LineCommand, PlaceOptions, place_options
from palmette.cli.place_errors import one_line_errors
from palmette.measure.places import Place
from palmette.patterns.errors import PatternError
from palmette.patterns.form import Form, parse
from palmette.patterns.measure import PatternRunner, Runner, Settings, measure
from palmette.patterns.rates import PatternResult
from palmette.patterns.seats import Seats
from palmette.patterns.svg import svg
from palmette.patterns.text import csv_text, table_lines, to_json

EXAMPLE = "palmette bench pattern rail dense:width=2 --topology topology.json -- mpiexec -n 64"


@click.command("pattern", cls=LineCommand, epilog=f"Example: {EXAMPLE}", context_settings={"max_content_width": 80})
@click.argument("patterns", nargs=-1, metavar="PATTERN...")
@sizes_option("1M", "Bytes a message, powers of 1024.")
@click.option("--mpi", "mpis", help="mpich, openmpi, impi, or `all`. [default: the first that is installed]")
@place_options()
@click.option("--seconds", type=Seconds(), default=2.0, show_default=True, help="Time a pattern.")
@click.option("--min-iterations", type=WholeNumber(1), default=10, show_default=True, help="Calls, at least.")
@click.option("--max-iterations", type=WholeNumber(1), default=1000, show_default=True, help="At most.")
@click.option(
    "--timeout", callback=duration, metavar="TIME", help="End a job after this time. [default: by its patterns]"
)
@click.option("--csv", "table", type=click.Path(path_type=Path, dir_okay=False), help="Write all rates to this file.")
@click.option("--svg", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the matrix of rates.")
@json_option
def command(
    patterns: tuple[str, ...],
    sizes: str,
    mpis: str | None,
    where: PlaceOptions,
    seconds: float,
    min_iterations: int,
    max_iterations: int,
    timeout: float | None,
    table: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Measure patterns of messages between groups of ranks.

    \b
    PATTERN is one of
      rail, fan, dense, self   between groups, with keys after a colon:
          ranks=N  groups=N|LEVEL  width=N  way=one|in|both|all
          size=BYTES  window=N  stripes=N
      pair:from=R,to=R         from a rank to another one
      matrix:FILE              row r: the bytes that rank r sends to each
    with @mpi, @rma, @shm or @single_copy behind it, or @shm/mpi for
    inside of hosts and between them; 'A + B' at the same time,
    'A then B' one after the other. docs/guide/patterns.md explains.
    """  # noqa: D301  the mark keeps click from filling the lines
    if not patterns:
        raise CliError(f"no pattern given; for instance: {EXAMPLE}")
    with one_line_errors(), _one_line():
        forms = [parse(text) for text in patterns]
        chosen = parse_sizes(split(sizes))
        settings = Settings(seconds, min_iterations, max_iterations, timeout_s=timeout)
        where = where.checked()
        where.refuse_with_line({"--mpi": mpis})
        local = where.is_local()
        with where.place(local=local) as place:
            runners = _on_place(place, mpis, where)
            results = _measured(runners, forms, chosen, settings, picture)
        if table is not None:
            write_file(table, csv_text(results), "--csv")
    if as_json:
        emit_json([to_json(name, made) for name, made in results])
        return
    for number, (name, made) in enumerate(results):
        click.echo(("\n" if number else "") + "\n".join(table_lines(made, name)))
    for path in filter(None, (table, picture)):
        click.echo(f"wrote {path}")


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except PatternError as error:
        raise CliError(str(error)) from error


def _on_place(place: Place, mpis: str | None, where: PlaceOptions) -> Iterator[Runner]:
    found = installations.on(place, mpis)
    for placement in where.placements():
        for mpi in found:
            yield PatternRunner(place, mpi, placement, where.ppn, where.ranks)


def _measured(
    runners: Iterator[Runner], forms: list[Form], sizes: tuple[int, ...], settings: Settings, picture: Path | None
) -> list[tuple[str, PatternResult]]:
    results: list[tuple[str, PatternResult]] = []
    for runner in runners:
        with errors.status(f"{runner.name}: {len(forms) * len(sizes)} to measure"):
            measured = measure(runner, forms, sizes, settings)
        if picture is not None and not results:
            write_file(picture, svg(measured[-1], Seats.on(runner.machine(), runner.hosts()), runner.name), "--svg")
        results += [(runner.name, made) for made in measured]
    return results
