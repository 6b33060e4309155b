"""`palmette report`: the page of a stored benchmark run."""

from __future__ import annotations

from pathlib import Path

import click

from palmette.bench.evaluate import evaluate
from palmette.bench.store import DEFAULT_PATH, open_store
from palmette.cli.common import CliError, emit_json, json_option
from palmette.measure.errors import BenchError
from palmette.report.page import write_page
from palmette.topology.file import TopologyError


@click.command(context_settings={"max_content_width": 80}, epilog="Example: palmette report last --output report.html")
@click.argument("run", default="last")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), default=Path("report.html"), show_default=True
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PATH,
    show_default=True,
    help="Where runs are.",
)
@json_option
def command(run: str, output: Path, store: Path, as_json: bool) -> None:
    """Write the page of a stored benchmark RUN: its number, last, last~1, ...

    One HTML file that needs no other. With --json the cells are printed and no page is written.
    """
    try:
        with open_store(store, create=False) as kept:
            loaded = kept.load(run)
        rows = evaluate(loaded)
        if as_json:
            emit_json({"run": loaded.id, "started": loaded.started, "cells": [row.to_json() for row in rows]})
            return
        write_page(output, loaded, rows)
    except (BenchError, TopologyError) as error:
        raise CliError(str(error)) from error
    click.echo(f"run {loaded.id}, {len(rows)} cells: {output}")
