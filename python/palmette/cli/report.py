"""`palmette report`: the page of a stored benchmark run, or what costs a recorded job most."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.bench.evaluate import evaluate
from palmette.bench.store import DEFAULT_PATH, open_store
from palmette.cli.common import CliError, emit_json, json_option
from palmette.measure.errors import BenchError
from palmette.report.page import write_page
from palmette.topology.file import TopologyError

if TYPE_CHECKING:
    from palmette.record.findings import Findings


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

    Where RUN is the folder of `palmette run --trace`, say where the job's time went: for whom ranks wait, and what
    takes longer than it must.
    """
    if Path(run).is_dir():
        _report_recording(Path(run), as_json)
        return
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


def _report_recording(folder: Path, as_json: bool) -> None:
    from palmette.record.findings import findings_of
    from palmette.record.reading import RecordError, read_job

    try:
        findings = findings_of(read_job(folder))
    except RecordError as error:
        raise CliError(str(error)) from None
    if as_json:
        emit_json(_findings_document(findings))
    else:
        click.echo("\n".join(_findings_lines(findings)))


def _findings_lines(findings: Findings) -> list[str]:
    from palmette import _core

    rates = findings.efficiencies
    lines = [
        f"{findings.ranks:,} ranks, {_core.format_duration(rates.time_s)}, {findings.calls:,} MPI calls",
        f"parallel efficiency {rates.parallel:.0%} = load balance {rates.load_balance:.0%} x communication "
        f"{rates.communication:.0%}",
    ]
    if not findings.found:
        lines += ["", "Nothing here is worth your time: no place costs 1 % of the ranks' time."]
    for number, one in enumerate(findings.found, 1):
        lines += ["", *textwrap.wrap(one.sentence, 80, initial_indent=f"{number}. ", subsequent_indent="   ")]
        lines += [f"   next: {one.next}"]
    for note in findings.notes:
        lines += ["", *textwrap.wrap(f"note: {note}", 80, subsequent_indent="  ")]
    return lines


def _findings_document(findings: Findings) -> dict[str, Any]:
    rates = findings.efficiencies
    return {
        "ranks": findings.ranks, "calls": findings.calls, "time_s": rates.time_s, "waiting_s": findings.waiting_s,
        "efficiencies": {
            "parallel": rates.parallel, "load_balance": rates.load_balance, "communication": rates.communication,
        },
        "findings": [
            {
                "kind": one.kind, "function": one.function, "place": str(one.place), "file": one.place.file,
                "line": one.place.line, "ranks": list(one.ranks), "seconds": one.seconds, "share": one.share,
                "sentence": one.sentence, "next": one.next,
            }
            for one in findings.found
        ],
        "notes": findings.notes,
    }  # fmt: skip
