"""`palmette top`: which MPI calls a recorded job is in, and who waits for whom."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palmette.cli import sampled_lines, top_links
from palmette.cli.common import CliError, emit_json
from palmette.cli.duration import Seconds
from palmette.present.table import Column, Table
from palmette.present.words import wrapped

if TYPE_CHECKING:
    from palmette.record.last_seen import LastSample
    from palmette.record.sums import Sums
    from palmette.record.waiting import Collective, PendingCall, State

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


def _seen(state: State) -> list[LastSample]:
    from palmette.record.last_seen import last_seen

    return last_seen(state.job)


def _read(folder: Path, with_tables: bool) -> State:
    from palmette.record.reading import RecordError, read_job
    from palmette.record.waiting import state_of

    try:
        return state_of(read_job(folder, with_tables=with_tables))
    except RecordError as error:
        raise CliError(str(error)) from None


def _lines(state: State, seen: list[LastSample], all_rows: bool) -> list[str]:
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
        lines += ["", *Table(_OPEN, shown).lines()]
    elif not state.open:
        lines += ["", "no process is in an MPI call"]
    if len(state.open) > len(shown):
        lines.append(f"and {len(state.open) - len(shown):,} more (--all)")
    lines += _seen_lines(seen if all_rows else seen[:MOST_ROWS])
    from palmette.record.limits import limits_of

    for note in limits_of((process.recorded for process in job.processes), sums=False, communicators=True):
        lines += ["", *wrapped(f"note: {note}", whole_words=False)]
    return lines


def _seen_lines(seen: list[LastSample]) -> list[str]:
    if not seen:
        return []
    columns: list[Column[LastSample]] = [
        Column("", "process.name", left=True),
        Column("last seen in", "", lambda one: f"{one.site.name} {one.site.place}" if one.site.line else one.site.name,
               left=True, most=40),
        Column("called from", "caller", show=lambda caller: str(caller.place), left=True, most=14, absent=""),
        Column("ago", "ago_s", show=_seconds),
    ]  # fmt: skip
    return ["", *Table(columns, seen).lines()]


def _sums_lines(sums: Sums, all_rows: bool) -> list[str]:
    lines = [
        f"{sums.calls:,} MPI calls took {_seconds(sums.in_mpi_s)} of all ranks' {_seconds(sums.ran_s)} together"
        + (f", {sums.share:.0%}" if sums.share is not None else ", several threads at once"),
        "",
    ]
    shown = sums.rows if all_rows else sums.rows[:MOST_ROWS]
    lines += Table(_CALLS, shown).lines()
    if len(sums.rows) > len(shown):
        lines.append(f"and {len(sums.rows) - len(shown):,} more (--all)")
    if sums.call_cost_s:
        cost = f"Recording a call costs {sums.call_cost_s * 1e9:.0f} ns here, of which reading the clock takes "
        cost += f"{sums.clock_cost_s * 1e9:.0f}."
        lines += ["", *wrapped(cost, rest="", whole_words=False)]
    for note in sums.notes:
        lines += ["", *wrapped(f"note: {note}", whole_words=False)]
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
        "rows": Table(_CALLS, sums.rows).records(),
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


def _document(state: State, seen: list[LastSample]) -> dict[str, Any]:
    return {
        "folder": str(state.job.folder),
        "size": state.job.size,
        "missing_ranks": state.job.missing_ranks(),
        "processes": Table(_PROCESSES, state.job.processes).records(),
        "collectives": Table(_COLLECTIVES, state.collectives).records(),
        "open": Table(_OPEN, state.open).records(),
        "last_seen": [
            {
                "rank": one.process.recorded.rank, "function": one.site.function,
                "file": (one.site.file or None) if one.site.line else None, "line": one.site.line or None,
                "caller": one.caller.function if one.caller else None, "ago_s": one.ago_s,
            }
            for one in seen
        ],
    }  # fmt: skip


_OPEN: list[Column[PendingCall]] = [
    Column("", "", lambda one: one.process.name, left=True),
    Column(None, "rank", lambda one: one.process.recorded.rank),
    Column("in", "function", lambda one: one.call.function, left=True, most=26),
    Column("for", "since_s", show=_seconds),
    Column(None, "bytes", lambda one: one.call.bytes),
    Column(None, "peer", lambda one: one.call.peer),
    Column(None, "tag", lambda one: one.call.tag),
    Column("waits for", "waits_for", show=_some, left=True, absent=""),
]
_CALLS: list[Column[Any]] = [
    Column("function", "function", left=True, most=22),
    Column("called at", "place", lambda row: str(row.place), lambda place: place[-20:], left=True),
    Column(None, "file", lambda row: row.place.file or None),
    Column(None, "line", lambda row: row.place.line or None),
    Column(None, "in", lambda row: row.place.function),
    Column("calls", "calls", show=_short),
    Column("bytes", "bytes", show=_short),
    Column("time", "seconds", show=_seconds),
    Column("longest", "longest_s", show=_seconds),
    Column(None, "ranks"),
    Column(None, "slowest_rank", lambda row: row.slowest[0]),
    Column(None, "slowest_s", lambda row: row.slowest[1]),
]
_PROCESSES: list[Column[Any]] = [
    Column(None, "rank", lambda one: one.recorded.rank),
    Column(None, "pid", lambda one: one.recorded.pid),
    Column(None, "host"),
    Column(None, "state"),
    Column(None, "calls", lambda one: one.recorded.calls),
    Column(None, "dropped", lambda one: one.recorded.dropped),
]
_COLLECTIVES: list[Column[Collective]] = [
    Column(None, "function"),
    Column(None, "communicator", lambda found: f"{found.communicator.id:016x}"),
    Column(None, "size", lambda found: found.communicator.size),
    Column(None, "instance"),
    Column(None, "since_s"),
    Column(None, "inside", lambda found: [one.process.recorded.rank for one in found.inside]),
    Column(None, "missing", lambda found: [process.recorded.rank for process in found.missing]),
    Column(None, "unknown"),
]
