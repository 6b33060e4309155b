"""`palmette top`: which MPI calls a recorded job is in, and who waits for whom."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.cli import sampled_lines, top_links
from palmette.cli.common import CliError, emit_json
from palmette.cli.duration import Seconds

if TYPE_CHECKING:
    from palmette.record.last_seen import Seen
    from palmette.record.sums import Sums
    from palmette.record.waiting import Collective, Open, State

MOST_ROWS = 20
MOST_NAMES = 8


@click.command("top", epilog="Example: palmette top calls --every 2s")
@click.argument("folder", metavar="[RECORDING]", required=False, type=click.Path(path_type=Path))
@click.option("--every", "every_s", type=Seconds(0.1), help="Show it again and again: 2s.")
@click.option("--calls", "with_calls", is_flag=True, help="Where time in MPI goes, by function and place of the call.")
@click.option("--links", is_flag=True, help="What goes over this host's links, and how much of it the job sends.")
@click.option("--metrics", is_flag=True, help="Print links, job, PALMETTE_JOBLOG and daemon as OpenMetrics.")
@click.option("--all", "all_rows", is_flag=True, help=f"All rows, not only {MOST_ROWS}.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    folder: Path | None, every_s: float | None, with_calls: bool, links: bool, metrics: bool, all_rows: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Show which MPI calls a job is in, since when, and whom each waits for.

    RECORDING is the folder that `palmette run --profile` or `--trace` got. The job may run, hang, have ended or
    have been killed: of one that was killed, the calls are shown that it died in. --links and --metrics need none.
    """
    if with_calls + links + metrics > 1:
        raise CliError("--calls, --links and --metrics are views of their own: give one of them")
    if metrics:
        if as_json or every_s:
            raise CliError("--metrics prints OpenMetrics once: leave out --json and --every")
        click.echo(top_links.metrics(folder), nl=False)
        return
    if links:
        top_links.show(folder, every_s, as_json)
        return
    if folder is None:
        raise CliError("give the folder of a recording, as `palmette run --profile` got it, or --links")
    while True:
        state = _read(folder, with_calls)
        if not with_calls and any(process.recorded.sampling.samples for process in state.job.processes):
            state = _read(folder, with_tables=True)
        sums = _sums(state) if with_calls else None
        sampled = _sampled(state) if with_calls else None
        seen = [] if with_calls else _seen(state)
        if as_json:
            emit_json(_document(state, seen) | (_sums_document(sums) | {"sampled": sampled} if sums else {}))
        else:
            if every_s:
                click.clear()
            if sums:
                lines = _sums_lines(sums, all_rows)
                lines += ["", *sampled_lines.heaviest(sampled), "", *sampled_lines.tree(sampled)] if sampled else []
            else:
                lines = _lines(state, seen, all_rows)
            click.echo("\n".join(lines))
        if not every_s:
            return
        time.sleep(every_s)


def _sums(state: State) -> Sums:
    from palmette.record.sums import sums_of

    return sums_of(state.job)


def _sampled(state: State) -> dict[str, Any] | None:
    from palmette.record.sampled import contexts_of, document

    contexts = contexts_of(state.job)
    return document(state.job, contexts) if contexts else None


def _seen(state: State) -> list[Seen]:
    from palmette.record.last_seen import last_seen

    return last_seen(state.job)


def _read(folder: Path, with_tables: bool) -> State:
    from palmette.record.reading import RecordError, read_job
    from palmette.record.waiting import state_of

    try:
        return state_of(read_job(folder, with_tables=with_tables))
    except RecordError as error:
        raise CliError(str(error)) from None


def _lines(state: State, seen: list[Seen], all_rows: bool) -> list[str]:
    job = state.job
    hosts = len({process.host for process in job.processes})
    counts: dict[str, int] = {}
    for process in job.processes:
        counts[process.state] = counts.get(process.state, 0) + 1
    lines = [
        f"{len(job.processes):,} processes on {hosts:,} node{'s' if hosts != 1 else ''}: "
        + ", ".join(f"{number:,} {name}" for name, number in counts.items())
    ]
    if missing := job.missing_ranks():
        lines.append(f"no file here tells of {_some([f'rank {rank}' for rank in missing])}")
    for found in state.collectives:
        if found.missing or found.unknown:
            lines += ["", *_collective_lines(found)]
    shown = state.open if all_rows else state.open[:MOST_ROWS]
    if shown:
        lines += ["", f"{'':12} {'in':26} {'for':>9}  waits for"]
        lines += [_row(one) for one in shown]
    elif not state.open:
        lines += ["", "no process is in an MPI call"]
    if len(state.open) > len(shown):
        lines.append(f"and {len(state.open) - len(shown):,} more (--all)")
    lines += _seen_lines(seen if all_rows else seen[:MOST_ROWS])
    from palmette.record.limits import limits_of

    for note in limits_of((process.recorded for process in job.processes), sums=False, communicators=True):
        lines += ["", *textwrap.wrap(f"note: {note}", 80, subsequent_indent="  ")]
    return lines


def _seen_lines(seen: list[Seen]) -> list[str]:
    if not seen:
        return []
    lines = ["", f"{'':12} {'last seen in':40} {'called from':14} {'ago':>9}"]
    for one in seen:
        where = f"{one.site.name} {one.site.place}" if one.site.line else one.site.name
        caller = str(one.caller.place) if one.caller else ""
        lines.append(f"{one.process.name:12} {where[:40]:40} {caller[:14]:14} {_seconds(one.ago_s):>9}"[:80].rstrip())
    return lines


def _sums_lines(sums: Sums, all_rows: bool) -> list[str]:
    lines = [
        f"{sums.calls:,} MPI calls took {_seconds(sums.in_mpi_s)} of all ranks' {_seconds(sums.ran_s)} together"
        + (f", {sums.share:.0%}" if sums.share is not None else ", several threads at once"),
        "",
        f"{'function':22} {'called at':20} {'calls':>9} {'bytes':>8} {'time':>8} {'longest':>8}",
    ]
    shown = sums.rows if all_rows else sums.rows[:MOST_ROWS]
    for row in shown:
        lines.append(
            f"{row.function[:22]:22} {str(row.place)[-20:]:20} {_short(row.calls):>9} {_short(row.bytes):>8} "
            f"{_seconds(row.seconds):>8} {_seconds(row.longest_s):>8}"
        )
    if len(sums.rows) > len(shown):
        lines.append(f"and {len(sums.rows) - len(shown):,} more (--all)")
    if sums.call_cost_s:
        cost = f"Recording a call costs {sums.call_cost_s * 1e9:.0f} ns here, of which reading the clock takes "
        cost += f"{sums.clock_cost_s * 1e9:.0f}."
        lines += ["", *textwrap.wrap(cost, 80)]
    for note in sums.notes:
        lines += ["", *textwrap.wrap(f"note: {note}", 80, subsequent_indent="  ")]
    return lines


def _short(number: int) -> str:
    """A number in at most seven characters."""
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= 10 * limit:
            return f"{number / limit:.0f}{unit}"
        if number >= limit:
            return f"{number / limit:.1f}{unit}"
    return f"{number:,}"


def _sums_document(sums: Sums) -> dict[str, Any]:
    return {
        "calls": sums.calls, "in_mpi_s": sums.in_mpi_s, "ran_s": sums.ran_s, "share": sums.share,
        "call_cost_s": sums.call_cost_s or None, "clock_cost_s": sums.clock_cost_s or None, "notes": sums.notes,
        "rows": [
            {
                "function": row.function, "place": str(row.place),
                "file": row.place.file or None, "line": row.place.line or None,
                "in": row.place.function, "calls": row.calls, "bytes": row.bytes, "seconds": row.seconds,
                "longest_s": row.longest_s, "ranks": row.ranks, "slowest_rank": row.slowest[0],
                "slowest_s": row.slowest[1],
            }
            for row in sums.rows
        ],
    }  # fmt: skip


def _collective_lines(found: Collective) -> list[str]:
    size = found.communicator.size
    lines = [f"{found.function}, number {found.instance:,} on a communicator of {size:,} ranks, waits since "
             f"{_seconds(found.since_s)}:"]  # fmt: skip
    if found.missing:
        lines.append(f"  not there: {_some([process.name for process in found.missing])}")
    if found.unknown:
        lines.append(f"  {found.unknown:,} of its ranks have recorded nothing of it here")
    return lines


def _row(one: Open) -> str:
    waits = _some(one.waits_for) if one.waits_for else ""
    return f"{one.process.name:12} {one.call.function[:26]:26} {_seconds(one.since_s):>9}  {waits}"[:80].rstrip()


def _some(names: list[str]) -> str:
    """Name a few; consecutive ranks as ranges."""
    ranks = sorted(int(name.removeprefix("rank ")) for name in names if name.startswith("rank ") and name[5:].isdigit())
    others = [name for name in names if not (name.startswith("rank ") and name[5:].isdigit())]
    parts: list[str] = []
    at = 0
    while at < len(ranks):
        end = at
        while end + 1 < len(ranks) and ranks[end + 1] == ranks[end] + 1:
            end += 1
        parts.append(str(ranks[at]) if end == at else f"{ranks[at]}-{ranks[end]}")
        at = end + 1
    if len(parts) > MOST_NAMES:
        parts = [*parts[:MOST_NAMES], f"and {len(parts) - MOST_NAMES:,} more"]
    listed = [f"rank{'s' if len(ranks) > 1 else ''} {', '.join(parts)}"] if ranks else []
    return ", ".join([*listed, *others])


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 1000 else f"{seconds:,.0f} s"


def _document(state: State, seen: list[Seen]) -> dict[str, Any]:
    return {
        "folder": str(state.job.folder),
        "size": state.job.size,
        "missing_ranks": state.job.missing_ranks(),
        "processes": [
            {
                "rank": process.recorded.rank, "pid": process.recorded.pid, "host": process.host,
                "state": process.state, "calls": process.recorded.calls,
                "dropped": process.recorded.dropped,
            }
            for process in state.job.processes
        ],
        "collectives": [
            {
                "function": found.function, "communicator": f"{found.communicator.id:016x}",
                "size": found.communicator.size, "instance": found.instance, "since_s": found.since_s,
                "inside": [one.process.recorded.rank for one in found.inside],
                "missing": [process.recorded.rank for process in found.missing], "unknown": found.unknown,
            }
            for found in state.collectives
        ],
        "open": [
            {
                "rank": one.process.recorded.rank, "function": one.call.function, "since_s": one.since_s,
                "bytes": one.call.bytes, "peer": one.call.peer, "tag": one.call.tag, "waits_for": one.waits_for,
            }
            for one in state.open
        ],
        "last_seen": [
            {
                "rank": one.process.recorded.rank, "function": one.site.function,
                "file": (one.site.file or None) if one.site.line else None, "line": one.site.line or None,
                "caller": one.caller.function if one.caller else None, "ago_s": one.ago_s,
            }
            for one in seen
        ],
    }  # fmt: skip
