"""`palmette report`: where a recorded job's time went, or the page of a stored benchmark run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from palmette.bench.evaluate import evaluate
from palmette.bench.store import DEFAULT_PATH, open_store
from palmette.cli.common import CliError, emit_json, json_option
from palmette.measure.errors import BenchError
from palmette.report.page import write_page
from palmette.topology.file import TopologyError
from palmette.units import plural


@click.command(context_settings={"max_content_width": 80}, epilog="Example: palmette report calls --output report.html")
@click.argument("run", default="last")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The page. [default: bench.html for a benchmark run; none for a recording]",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PATH,
    show_default=True,
    help="Where runs are.",
)
@click.option(
    "--topology",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Of a recording: the cluster's topology.json, where palmette run had none.",
)
@click.option("--hosts", metavar="A,B,...", help="Of a recording: the host of rank 0, 1, ..., where others are meant.")
@click.option("--all", "in_full", is_flag=True, help="Of a recording: what the page has besides, in text.")
@click.option("--csv", "as_csv", is_flag=True, help="Of a recording: print its call paths as CSV.")
@click.option(
    "--speedups",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Of a benchmark: draw how many times as fast calls are, instead of the page.",
)
@json_option
def command(
    run: str,
    output: Path | None,
    store: Path,
    topology: Path | None,
    hosts: str | None,
    in_full: bool,
    as_csv: bool,
    speedups: Path | None,
    as_json: bool,
) -> None:
    """Say where a recorded job's time went, or write the page of a benchmark.

    RUN is the folder of `palmette run --trace` or `--profile`: the findings are printed, for whom ranks wait and what
    takes longer than it must; with -o FILE.html a page has them, the timeline, call paths, who sends to whom, the links
    of the machine.

    Or it is a stored benchmark run, its number, last, last~1, ...: its page is written; with --json its cells are
    printed instead.

    A page is one HTML file that needs no other.
    """
    if as_csv + as_json + in_full > 1:
        raise CliError("--csv, --json and --all are three forms of one report; give one of them")
    if Path(run).is_dir():
        from palmette.cli.report_recording import report

        if speedups:
            raise CliError(f"{run} is a recording; --speedups is for a stored run of palmette bench: last, last~1, ...")
        form: Literal["csv", "json", "all", ""] = "csv" if as_csv else "json" if as_json else "all" if in_full else ""
        report(Path(run), output, topology, hosts.split(",") if hosts else None, form)
        return
    if not _is_stored(run):
        from palmette.record.reading import RecordError, read_job

        try:
            read_job(Path(run), with_tables=False)
        except RecordError as error:
            raise CliError(str(error)) from None
    if topology or hosts or as_csv or in_full:
        raise CliError(
            f"{run} is no folder; --topology, --hosts, --all and --csv are for recordings (`palmette run --trace`)"
        )
    output = output or Path("bench.html")  # report.html is what recordings' pages are called
    try:
        with open_store(store, create=False) as kept:
            loaded = kept.load(run)
        rows = evaluate(loaded)
        if as_json:
            emit_json({"run": loaded.id, "started": loaded.started, "cells": [row.to_json() for row in rows]})
            return
        if speedups:
            if speedups.suffix != ".svg":
                raise CliError(f"--speedups {speedups}: a picture, whose name ends in .svg, as in speedups.svg")
            from palmette.report.speedups import write_speedups

            write_speedups(speedups, loaded, rows)
            click.echo(f"run {loaded.id}, {plural(len(rows), 'cell')}: {speedups}")
            return
        write_page(output, loaded, rows)
    except (BenchError, TopologyError) as error:
        raise CliError(str(error)) from error
    click.echo(f"run {loaded.id}, {plural(len(rows), 'cell')}: {output}")


def _is_stored(run: str) -> bool:
    """Whether a word means a stored run of palmette bench: its number, last, last~1, or with a store that is named."""
    context = click.get_current_context()
    named = context.get_parameter_source("store") is not click.core.ParameterSource.DEFAULT
    return named or run.isdigit() or run.startswith("last")
