"""`palmette top --links` and `--metrics`: this host's links beside what the job sends over them."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.cli.common import CliError, emit_json
from palmette.settings_files import value_in_force
from palmette.units import rate_text

if TYPE_CHECKING:
    from palmette.record.fabric import Flow, Links
    from palmette.record.waiting import State

FIRST_S = 1.0
"""How long links are looked at where they are shown once."""


def show(folder: Path | None, every_s: float | None, as_json: bool) -> None:
    """Show the links, once or again and again."""
    from palmette.record.fabric import Watch, document

    def job() -> Any:
        return _read(folder).job if folder else None

    watch = Watch()
    watch.begin(job())
    while True:
        time.sleep(every_s or FIRST_S)
        links = watch.links(job())
        if as_json:
            emit_json(document(links))
        else:
            if every_s:
                click.clear()
            click.echo("\n".join(_lines(links)))
        if not every_s:
            return


def metrics(folder: Path | None) -> str:
    """Return what this host knows as OpenMetrics."""
    import socket

    from palmette.aggregator import status
    from palmette.record import fabric, openmetrics

    host = socket.gethostname()
    families = openmetrics.links(fabric.ports(), host)
    if folder:
        families += openmetrics.running(_read(folder), host)
    joblog = value_in_force("PALMETTE_JOBLOG")
    if joblog.startswith("/"):
        try:
            families += openmetrics.ended(Path(joblog))
        except OSError as error:
            raise CliError(f"{joblog} (PALMETTE_JOBLOG): {error.strerror or error}") from None
    if Path(status.DEFAULT_PATH).exists():
        try:
            families += openmetrics.daemon(status.read(status.DEFAULT_PATH))
        except (OSError, status.StatusError) as error:
            raise CliError(f"{status.DEFAULT_PATH}: {error}") from None
    return openmetrics.exposition(families)


def _read(folder: Path) -> State:
    from palmette.record.reading import RecordError, read_job
    from palmette.record.waiting import state_of

    try:
        return state_of(read_job(folder, with_tables=False))
    except RecordError as error:
        raise CliError(str(error)) from None


def _lines(links: Links) -> list[str]:
    lines = [f"{links.host}, {links.seconds:.1f} s", ""]
    lines.append(f"{'link':14} {'rate':>10} {'out':>10} {'full':>5} {'in':>10} {'full':>5}  trouble")
    lines += [_row(flow) for flow in links.flows]
    if links.job_out is not None and links.job_into is not None:
        out, into = (sum(getattr(flow, way) for flow in links.flows) for way in ("out", "into"))
        lines.append(f"{'this job':14} {'':10} {rate_text(links.job_out):>10} {'':5} {rate_text(links.job_into):>10}")
        others = max(0.0, out - links.job_out), max(0.0, into - links.job_into)
        lines.append(f"{'all others':14} {'':10} {rate_text(others[0]):>10} {'':5} {rate_text(others[1]):>10}")
    for note in links.notes:
        lines += ["", *textwrap.wrap(f"note: {note}", 80, subsequent_indent="  ")]
    return lines


def _row(flow: Flow) -> str:
    def full(used: float) -> str:
        return f"{used / flow.port.rate:.0%}" if flow.port.rate else ""

    trouble = [f"{flow.errors:,} errors"] if flow.errors else []
    trouble += [f"waited {flow.waited:,}"] if flow.waited else []
    return (
        f"{flow.port.name[:14]:14} {rate_text(flow.port.rate):>10} {rate_text(flow.out):>10} {full(flow.out):>5} "
        f"{rate_text(flow.into):>10} {full(flow.into):>5}  {', '.join(trouble)}"
    )[:80].rstrip()
