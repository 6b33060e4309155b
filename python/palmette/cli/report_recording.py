"""`palmette report DIR`: what costs a recorded job most, on the terminal, as JSON or CSV, and as a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from palmette.cli.common import CliError, emit_json, write_file
from palmette.cli.progress import Working
from palmette.cli.report_terminal import lines

if TYPE_CHECKING:
    from palmette.record.causes import Causes
    from palmette.record.findings import Findings
    from palmette.record.links import Links
    from palmette.record.machine import Seats
    from palmette.record.reading import Job


def report(
    folder: Path,
    output: Path | None,
    topology: Path | None,
    hosts: Sequence[str] | None,
    form: Literal["csv", "json", "all", ""],
) -> None:
    """Report a recording; `form` empty: the first screen, `all`: also what the page has besides. Raises CliError."""
    from palmette.record.causes import causes_of, with_causes
    from palmette.record.findings import SUMS_ALONE, TERMINAL, Detail, findings_of, has_calls
    from palmette.record.full_links import with_full_link
    from palmette.record.machine import seats_of
    from palmette.record.page.write import render
    from palmette.record.reading import RecordError, read_job
    from palmette.record.remedies import remedies_of, with_remedies
    from palmette.record.view import document, links_of

    try:
        with Working("reading the recording") as working:
            job = read_job(folder)
            seats, known = seats_of(job, topology, hosts)
            working.now(f"looking for what {job.size:,} ranks wait for")
            findings = (
                findings_of(job, seats, Detail() if output else TERMINAL if form == "all" else SUMS_ALONE)
                if has_calls(job)
                else None
            )
            if findings:
                working.now("replaying what depends on what")
            causes = causes_of(job, findings, seats) if findings else None
            if findings and causes:
                findings.found = with_causes(findings, causes)
            working.now("adding up links, calls and the timeline")
            links = links_of(job, seats, findings)
            if findings and causes and not causes.withheld:
                working.now("trying other algorithms and places in the replay")
                findings.found = with_remedies(findings.found, job, seats, findings.calls)
                findings.found = with_full_link(findings, job, seats, links)
                causes.shorter += remedies_of(findings.found)
            notes = [known] if known else []
            if causes and causes.withheld:
                notes.append(f"root causes and what the network costs aren't told: {causes.withheld}")
            if causes and causes.unbounded:
                notes.append(causes.unbounded)
            found = document(job, seats, findings, notes, links, causes)
            page = render(found) if output else None
    except RecordError as error:
        raise CliError(str(error)) from None
    if output and page:
        write_file(output, page, "--output")
    if form == "csv":
        click.echo(_csv(found), nl=False)
    elif form == "json":
        emit_json(_document(found, findings, causes, seats, links, job))
    else:
        click.echo("\n".join(lines(found, findings, causes, seats, links, in_full=form == "all")))
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


def _causes(causes: Causes) -> dict[str, Any]:
    return {
        "withheld": causes.withheld or None,
        "serialisation": causes.serialisation, "transfer": causes.transfer, "network": causes.network,
        "software": causes.software, "unbounded": causes.unbounded or None,
        "plans": causes.plans, "execution": causes.execution, "others": causes.others,
        "roots": [
            {
                "rank": one.rank, "function": one.function, "place": str(one.place), "in_call": one.in_call,
                "seconds": one.seconds, "direct_s": one.direct_s, "share": one.share, "gain": one.gain,
                "sentence": one.sentence,
            }
            for one in causes.roots
        ],
        "on_critical_path_s": {str(rank): seconds for rank, seconds in sorted(causes.on_path_s.items())},
    }  # fmt: skip


def _document(
    found: dict[str, Any],
    findings: Findings | None,
    causes: Causes | None,
    seats: Seats | None,
    links: Links | None,
    job: Job,
) -> dict[str, Any]:
    """Return the page's document without what is only drawn, findings in full.

    Windows are in seconds since the job's first call, as `palmette convert --from` counts.
    """
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
                "kind": one.kind, "function": one.function, "place": str(one.place), "file": one.place.file or None,
                "line": one.place.line or None, "ranks": list(one.ranks), "seconds": one.seconds, "share": one.share,
                "window_s": [since_s + time_s for time_s in one.window] if one.window else None,
                "sentence": one.sentence, "next": one.next, "gain": one.gain,
                "cause": {
                    "rank": one.cause.rank, "function": one.cause.function, "place": str(one.cause.place),
                    "in_call": one.cause.in_call,
                } if one.cause else None,
            }
            for one in (findings.found if findings else ())
        ],
        "causes": _causes(causes) if causes else None,
        "paths": [
            {**row, "function": functions[row["function"]], "place": places[row["place"]]} for row in found["paths"]
        ],
        "links": None if links is None or seats is None else {
            "counted": links.counted,
            "links": [
                {
                    "level": seats.levels[link.group.level], "name": link.group.name,
                    "out_bytes": links.sum_of(link.out), "in_bytes": links.sum_of(link.into),
                    "rate_bytes_per_s": link.group.rate or None,
                }
                for link in links.links
            ],
        },
        "sizes": [{**row, "function": functions[row["function"]]} for row in found["sizes"]],
        "durations": [{**row, "function": functions[row["function"]]} for row in found["durations"]],
        "notes": found["notes"],
    }  # fmt: skip
