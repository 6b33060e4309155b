"""`palmette bench app`: a whole program with and without palmette."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from palmette.app.given_input import GivenInput
from palmette.app.measure import ALONE, PALMETTE, CommandRunner, MeasureOptions, PlaceRunner, Runner, Variant, measure
from palmette.app.text import lines, page, to_json
from palmette.bench.variants import EXAMPLE as EXAMPLE_VARIANT
from palmette.bench.variants import PRESETS, parse_variant
from palmette.bench_page.page import STYLE
from palmette.cli import installations
from palmette.cli.common import CliError, SectionedCommand, WholeNumber, emit_json, errors, json_option, write_file
from palmette.cli.duration import duration
from palmette.cli.place import PlaceOptions, where_of
from palmette.cli.place_errors import one_line_errors
from palmette.measure.errors import BenchError

PROGRESS_S = 2.0
"""How often a line tells how far it is, where there is no terminal."""
EXAMPLE = "palmette bench app -- mpiexec -n 4 ./app input"


@click.command(
    "app", cls=SectionedCommand, epilog=f"Example: {EXAMPLE}",
    context_settings={"max_content_width": 80, "allow_interspersed_args": False},
)  # fmt: skip
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--rounds", type=WholeNumber(1), default=5, show_default=True, help="Runs of each variant.")
@click.option(
    "--variant", "extra", multiple=True, metavar="NAME",
    help=f"Another variant: {', '.join(PRESETS)}, or {EXAMPLE_VARIANT}. Repeatable.",
)  # fmt: skip
@click.option("--topology", type=click.Path(path_type=Path, dir_okay=False), help="topology.json of the cluster.")
@click.option("--tolerance", type=click.FloatRange(0), default=1e-9, show_default=True, help="Of numbers, relative.")
@click.option("--ignore", "ignored", multiple=True, metavar="REGEX", help="Lines of the output to leave out.")
@click.option("--check", "checker", metavar="COMMAND", help="Gets the path of an output; status 0: it is right.")
@click.option("--no-record", is_flag=True, help="Whole times alone: no runs with all MPI calls recorded.")
@click.option("-n", "--local", "local_ranks", type=WholeNumber(1), help="This many local ranks, without a launcher.")
@click.option("--mpi", metavar="NAME", help="mpich, openmpi or impi, for local ranks.")
@click.option("--timeout", callback=duration, default="10min", show_default=True, metavar="TIME", help="Of one run.")
@click.option("--page", "page_path", type=click.Path(path_type=Path, dir_okay=False), help="Write a page, too.")
@json_option
def command(
    command_line: tuple[str, ...], rounds: int, extra: tuple[str, ...], topology: Path | None, tolerance: float,
    ignored: tuple[str, ...], checker: str | None, no_record: bool, local_ranks: int | None,
    mpi: str | None, timeout: float, page_path: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a program with and without palmette by turns.

    COMMAND is what you would type: mpiexec -n 64 ./app. Whole times are compared, and what the program prints:
    numbers within --tolerance, the rest word by word, but for what changes between runs of the MPI alone (times). One
    more run of each variant is recorded, for the time in each MPI function and the bytes of the busiest link.
    Standard input, from a file or a pipe, is given to each run.

    With --local COMMAND is the program alone.
    """
    if not command_line:
        raise CliError(f"no command given; for instance: {EXAMPLE}")
    variants = [
        Variant(ALONE, None),
        Variant(PALMETTE, _given(topology)),
        *(_variant(text, topology) for text in extra),
    ]
    if len({one.name for one in variants}) < len(variants):
        raise CliError("two variants have the same name; give each its own")
    if checker is not None and ignored:
        raise CliError("--check looks at the output itself; leave out --ignore")
    asked = MeasureOptions(rounds, tolerance, _patterns(ignored), checker, timeout, not no_record, given_input())
    where = where_of(click.get_current_context(), local_ranks)
    with one_line_errors(), _runner(command_line, topology, where, mpi) as runner:
        compare(runner, variants, asked, page_path, as_json=as_json)


def compare(
    runner: Runner, variants: Sequence[Variant], asked: MeasureOptions, page_path: Path | None, *, as_json: bool
) -> None:
    """Measure, with progress, and show the result. Raises CliError where an output differs, BenchError."""
    total = len(variants) * (asked.rounds + asked.record) + 1
    name = click.get_current_context().command_path
    with errors.status(f"{total} runs") as status:
        done, shown = 0, time.monotonic()

        def progress(said: str) -> None:
            nonlocal done, shown
            done += 1
            status.update(f"{done} of {total} runs; {said}")
            if not sys.stderr.isatty() and time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                click.echo(f"{name}: {done} of {total} runs; {said}", err=True)

        found = measure(runner, variants, asked, progress)
    if page_path is not None:
        write_file(page_path, page(found, STYLE), "--page")
    if as_json:
        emit_json(to_json(found))
    else:
        click.echo("\n".join(lines(found)))
        if page_path is not None:
            click.echo(f"page: {page_path}")
    if any(one.difference for one in found.variants):
        raise CliError("an output differs from that of the MPI alone, see above", status=1)


def given_input() -> GivenInput:
    """Return standard input for the runs; a line tells where they get none of it. Raises CliError."""
    try:
        given = GivenInput()
    except OSError as error:
        raise CliError(f"standard input can't be kept for the runs: {error.strerror}; give a file: < FILE") from None
    if given.note:
        click.echo(f"{click.get_current_context().command_path}: {given.note}", err=True)
    return given


@contextmanager
def _runner(words: Sequence[str], topology: Path | None, where: PlaceOptions, mpi: str | None) -> Iterator[Runner]:
    if not where.named:
        if mpi is not None:
            raise CliError("--mpi is for --local; the command's launcher says it")
        yield CommandRunner(words, topology)
        return
    (found, *more) = installations.chosen(mpi)
    if more:
        raise CliError("--mpi: name one")
    local = where.checked().local_ranks is not None
    if topology is not None:
        raise CliError("--topology is for a command with its launcher; a lab has its own, local ranks have none")
    (placement, *others) = where.placements()
    if others:
        raise CliError("--placement: name one")
    with where.place(local=local) as place:
        yield PlaceRunner(place, found, words, placement, where.ranks)


def _given(topology: Path | None) -> dict[str, str]:
    return {"PALMETTE_TOPOLOGY": str(topology.absolute())} if topology is not None else {}


def _variant(text: str, topology: Path | None) -> Variant:
    try:
        found = parse_variant(text)
    except BenchError as error:
        raise CliError(str(error)) from None
    return Variant(found.name, {**_given(topology), **found.env})


def _patterns(texts: Sequence[str]) -> list[re.Pattern[str]]:
    try:
        return [re.compile(text) for text in texts]
    except re.error as error:
        raise CliError(f"--ignore: {error}; give a regular expression of Python's") from None
