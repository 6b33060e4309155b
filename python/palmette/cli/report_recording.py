"""`palmette report DIR`: what costs a recorded job most, on the terminal, as JSON or CSV, and as a page."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.cli.common import CliError, emit_json, write_file
from palmette.cli.printable import printable
from palmette.units import plural

if TYPE_CHECKING:
    from palmette.record.findings import Findings
    from palmette.record.links import Links
    from palmette.record.machine import Seats
    from palmette.record.reading import Job

MOST_LINKS = 5
WIDTH = 80


def report(
    folder: Path, output: Path | None, topology: Path | None, hosts: Sequence[str] | None, form: str, as_json: bool
) -> None:
    """Report a recording; `form` is csv or nothing. Raises CliError."""
    from palmette.record.findings import SUMS_ALONE, Detail, findings_of, has_calls
    from palmette.record.machine import seats_of
    from palmette.record.page.write import render
    from palmette.record.reading import RecordError, read_job
    from palmette.record.view import document

    try:
        job = read_job(folder)
        seats, known = seats_of(job, topology, hosts)
        findings = findings_of(job, seats, Detail() if output else SUMS_ALONE) if has_calls(job) else None
        notes = [known] if known else []
        found = document(job, seats, findings, notes)
        page = render(found) if output else None
    except RecordError as error:
        raise CliError(str(error)) from None
    if output and page:
        write_file(output, page, "--output")
    if form == "csv":
        click.echo(_csv(found), nl=False)
    elif as_json:
        emit_json(_document(found, findings, seats, job))
    else:
        click.echo("\n".join(_lines(found, findings, seats)))
        if output:
            click.echo(f"\npage: {output}")


def _links(findings: Findings | None, seats: Seats | None) -> Links | None:
    from palmette.record import links

    return links.of_trace(findings.view, seats) if findings and seats and seats.groups else None


def _lines(found: dict[str, Any], findings: Findings | None, seats: Seats | None) -> list[str]:
    from palmette import _core

    lines = [
        f"{printable(found['program'])}: {plural(found['ranks'], 'rank')} on {plural(found['nodes'], 'node')}, "
        f"{_core.format_duration(found['time_s'])}, {found['calls']:,} MPI calls"
    ]
    if rates := found["efficiencies"]:
        lines.append(
            f"parallel efficiency {rates['parallel']:.0%} = load balance {rates['load_balance']:.0%} x communication "
            f"{rates['communication']:.0%}"
        )
        if len(rates["levels"]) > 1:
            parts = " x ".join(f"{level['name']} {level['balance']:.0%}" for level in rates["levels"])
            lines += textwrap.wrap(f"load balance by level: {parts}", WIDTH, subsequent_indent="  ")
    lines.append(_split_line(found["split"]))
    if findings and not findings.found:
        lines += ["", "Nothing here is worth your time: no place costs 1 % of the ranks' time."]
    for number, one in enumerate(findings.found if findings else (), 1):
        wrapped = textwrap.wrap(printable(one.sentence), WIDTH, initial_indent=f"{number}. ", subsequent_indent="   ")
        lines += ["", *wrapped, f"   next: {one.next}"]
    if not findings:
        lines += ["", *_path_lines(found)]
    lines += _link_lines(_links(findings, seats), seats)
    more = (
        [] if findings else ["a profile has sums; for whom ranks wait is found in a trace (`palmette run --trace DIR`)"]
    )
    for note in [*found["notes"], *more]:
        lines += ["", *textwrap.wrap(printable(f"note: {note}"), WIDTH, subsequent_indent="  ")]
    return lines


def _split_line(split: dict[str, float | None]) -> str:
    """Return what share of all ranks' time went where."""
    names = {
        "computing_s": "computing", "waiting_s": "waiting", "bound_s": "bound", "excess_s": "excess",
        "completion_s": "completion", "other_s": "other MPI",
    }  # fmt: skip
    whole = sum(value for value in split.values() if value)
    parts = [f"{names[key]} {value / whole:.0%}" for key, value in split.items() if value and value > whole / 200]
    return "all ranks' time: " + ", ".join(parts)


def _path_lines(found: dict[str, Any]) -> list[str]:
    """Return the costliest calls of a profile."""
    from palmette import _core

    lines = [f"{'function':<22} {'called at':<24} {'calls':>12} {'time':>9} {'longest':>9}"]
    for row in found["paths"][:10]:
        function, place = found["functions"][row["function"]], printable(found["places"][row["place"]])
        lines.append(
            f"{function[:22]:<22} {place[:24]:<24} {row['calls']:>12,} {_core.format_duration(row['seconds']):>9} "
            f"{_core.format_duration(row['longest_s']):>9}"
        )
    return lines


def _link_lines(links: Links | None, seats: Seats | None) -> list[str]:
    """Return the links that carried most, a level at a time."""
    from palmette import _core

    if links is None or seats is None or links.span_s <= 0:
        return []
    lines: list[str] = []
    busiest = sorted(links.links, key=lambda link: -max(link.out.sum(), link.into.sum()))[:MOST_LINKS]
    for link in busiest:
        outwards = link.out.sum() >= link.into.sum()
        loaded = link.out if outwards else link.into
        if loaded.sum() <= 0:
            continue
        text = f"  {seats.levels[link.group.level]} {link.group.name}, {'out' if outwards else 'in'}: "
        text += _core.format_size(int(loaded.sum()))
        if link.group.rate:
            rate = loaded / (links.span_s / links.bins) / link.group.rate
            text += f", {loaded.sum() / links.span_s / link.group.rate:.0%} busy"
            if links.bins > 1:
                text += f", at most {rate.max():.0%}"
        lines.append(printable(text)[:WIDTH])
    return ["", "busiest links", *lines] if lines else []


def _csv(found: dict[str, Any]) -> str:
    text = io.StringIO()
    columns = (
        "function", "place", "calls", "bytes", "seconds", "waiting_s", "bound_s", "excess_s", "completion_s",
        "longest_s", "ranks",
    )  # fmt: skip
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    for row in found["paths"]:
        named = {**row, "function": found["functions"][row["function"]], "place": found["places"][row["place"]]}
        rows.writerow(["" if named[name] is None else named[name] for name in columns])
    return text.getvalue()


def _document(found: dict[str, Any], findings: Findings | None, seats: Seats | None, job: Job) -> dict[str, Any]:
    """Return the page's document without what is only drawn, findings in full.

    Windows are in seconds since the job's first call, as `palmette convert --from` counts.
    """
    links = _links(findings, seats)
    since_s = (findings.view.begin_ns - job.begin_ns) * 1e-9 if findings else 0.0
    functions, places = found["functions"], found["places"]
    return {
        **{
            name: found[name]
            for name in ("program", "kind", "ranks", "nodes", "calls", "time_s", "began", "efficiencies", "split")
        },
        "waiting_s": findings.waiting_s if findings else None,
        "findings": [
            {
                "kind": one.kind, "function": one.function, "place": str(one.place), "file": one.place.file,
                "line": one.place.line, "ranks": list(one.ranks), "seconds": one.seconds, "share": one.share,
                "window_s": [since_s + time_s for time_s in one.window] if one.window else None,
                "sentence": one.sentence, "next": one.next,
            }
            for one in (findings.found if findings else ())
        ],
        "paths": [
            {**row, "function": functions[row["function"]], "place": places[row["place"]]} for row in found["paths"]
        ],
        "links": None if links is None or seats is None else {
            "counted": links.counted,
            "links": [
                {
                    "level": seats.levels[link.group.level], "name": link.group.name,
                    "out_bytes": float(link.out.sum()), "in_bytes": float(link.into.sum()),
                    "rate_bytes_per_s": link.group.rate or None,
                }
                for link in links.links
            ],
        },
        "notes": found["notes"],
    }  # fmt: skip
