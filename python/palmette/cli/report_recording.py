"""`palmette report DIR`: what costs a recorded job most, on the terminal, as JSON or CSV, and as a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from palmette.cli.common import CliError, emit_json, write_file
from palmette.cli.progress import ActivityLine
from palmette.cli.report_terminal import change_lines, compared_lines, lines


def report(
    folder: Path,
    output: Path | None,
    topology: Path | None,
    hosts: Sequence[str] | None,
    form: Literal["csv", "json", "all", ""],
) -> None:
    """Report a recording; `form` empty: the first screen, `all`: also what the page has besides. Raises CliError."""
    from palmette.analysis import RecordError, Trace
    from palmette.record.findings import SUMS_ALONE, TERMINAL, Detail

    detail = Detail() if output else TERMINAL if form == "all" else SUMS_ALONE
    try:
        with ActivityLine("reading the recording") as working:
            trace = Trace(folder, topology=topology, hosts=hosts, detail=detail, progress=working.now)
            found = trace.document
            page = trace.page() if output else None
    except RecordError as error:
        raise CliError(str(error)) from None
    if output and page:
        write_file(output, page, "--output")
    if form == "csv":
        click.echo(_csv(found), nl=False)
    elif form == "json":
        emit_json(trace.to_json())
    else:
        click.echo("\n".join(lines(trace, in_full=form == "all")))
        if output:
            click.echo(f"\npage: {output}")


def compare(folder: Path, later: Path, output: Path | None, *, as_json: bool) -> None:
    """Print what takes longer or shorter in the later one of two recordings, and write its page. Raises CliError."""
    from palmette.analysis import RecordError, Trace
    from palmette.record.changes import changes, rows_of, to_json
    from palmette.record.findings import SUMS_ALONE, Detail

    details = (SUMS_ALONE, Detail() if output else SUMS_ALONE)
    try:
        with ActivityLine("reading the recordings") as working:
            both = [
                Trace(one, detail=detail, progress=working.now)
                for one, detail in zip((folder, later), details, strict=True)
            ]
            documents = [one.document for one in both]
            before, after = (rows_of(one.document, one.contexts) for one in both)
            page = both[1].page(both[0]) if output else None
    except RecordError as error:
        raise CliError(str(error)) from None
    found = changes(before, after)
    if output and page:
        write_file(output, page, "--output")
    if as_json:
        names = ("program", "ranks", "nodes", "time_s", "split")
        emit_json({"runs": [{name: one[name] for name in names} for one in documents], "changes": to_json(found)})
        return
    click.echo("\n".join([*compared_lines(documents), *change_lines(found, max(one["time_s"] for one in documents))]))
    if output:
        click.echo(f"\npage: {output}")


def _csv(found: dict[str, Any]) -> str:
    from palmette.record.view import PARTS

    text = io.StringIO()
    columns = (
        "function", "place", "calls", "bytes", "seconds", *PARTS, "longest_s", "ranks",
    )  # fmt: skip
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    for row in found["paths"]:
        named = {**row, "function": found["functions"][row["function"]], "place": found["places"][row["place"]]}
        rows.writerow(["" if named[name] is None else named[name] for name in columns])
    return text.getvalue()
