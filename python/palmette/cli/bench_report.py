"""`palmette bench report`: the page of a stored run, its cells, or its comparison with another run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from palmette.bench.compare import compare_runs, differences
from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench.store import DEFAULT_PATH, open_store
from palmette.bench.targets import Outcome
from palmette.bench.text import change_table
from palmette.bench_page.page import write_page
from palmette.cli.common import CliError, emit_json, json_option
from palmette.cli.place_errors import one_line_errors
from palmette.present.words import wrapped
from palmette.units import plural

DEFAULT_PAGE = Path("bench.html")


def report_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the parameters of `show`."""
    path = click.Path(path_type=Path, dir_okay=False)
    for option in (
        json_option,
        click.option(
            "--speedups", type=path, metavar="FILE.svg", help="Draw how many times as fast calls are, instead."
        ),
        click.option("--store", type=path, default=DEFAULT_PATH, show_default=True, help="Where runs are."),
        click.option("--output", "-o", type=path, help=f"The page. [default: {DEFAULT_PAGE}]"),
        click.argument("runs", nargs=-1, metavar="[RUN [LATER]]"),
    ):
        function = option(function)
    return function


@click.command(
    "report", context_settings={"max_content_width": 80}, epilog="Example: palmette bench report last~1 last"
)
@report_options
def command(runs: tuple[str, ...], output: Path | None, store: Path, speedups: Path | None, as_json: bool) -> None:
    """Write the page of a stored benchmark run, or compare two.

    RUN is its number, or last (the default), last~1, ...; with --json its cells are printed instead. Two runs are
    compared: how many times as long calls with palmette take in the later one.
    """
    show(runs, output, store, speedups, as_json=as_json)


def show(
    runs: tuple[str, ...], output: Path | None, store: Path, speedups: Path | None, *, as_json: bool,
    outcomes: Callable[[Run], list[Outcome]] = lambda _: [],
) -> None:  # fmt: skip
    """Do so. Raises CliError."""
    if len(runs) > 2:
        raise CliError(f"{len(runs)} runs; one has a page, two are compared")
    if len(runs) == 2:
        if output or speedups:
            raise CliError("two runs are compared on the screen; leave out -o and --speedups")
        _compare(store, *runs, as_json=as_json)
        return
    if speedups and speedups.suffix != ".svg":
        raise CliError(f"--speedups {speedups}: a picture, whose name ends in .svg, as in speedups.svg")
    (run,) = runs or ("last",)
    if Path(run).is_dir():
        raise CliError(f"{run} is a folder; a recording's report is palmette report {run}")
    with one_line_errors():
        with open_store(store, create=False) as kept:
            loaded = kept.load(run)
        rows = evaluate(loaded)
        if as_json:
            emit_json({"run": loaded.id, "started": loaded.started, "cells": [row.to_json() for row in rows]})
            return
        if speedups:
            from palmette.bench_page.speedups import write_speedups

            write_speedups(speedups, loaded, rows)
        else:
            write_page(output or DEFAULT_PAGE, loaded, rows, outcomes(loaded))
    click.echo(f"run {loaded.id}, {plural(len(rows), 'cell')}: {speedups or output or DEFAULT_PAGE}")


def _compare(store: Path, first: str, second: str, *, as_json: bool) -> None:
    with one_line_errors(), open_store(store, create=False) as kept:
        before, after = kept.load(first), kept.load(second)
        changes = compare_runs(before, after)
    notes = differences(before, after)
    if as_json:
        emit_json({"runs": [before.id, after.id], "differences": notes, "cells": [one.to_json() for one in changes]})
        return
    lines = []
    for run in (before, after):
        commit = run.machine.get("commit") or "unknown"
        lines.append(f"run {run.id}: {run.started}, palmette {run.machine['palmette']}, commit {commit}")
    lines += [f"differs: {note}" for note in notes]
    legend = "ratio: time with palmette, later / earlier; control: the same of the MPI alone; ? where that changed"
    lines += ["", *change_table(changes, before, after).lines(colored=True), "", *wrapped(legend, rest="")]
    click.echo("\n".join(lines))
