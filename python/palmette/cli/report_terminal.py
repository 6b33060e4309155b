"""The report of a recording in 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from palmette.cli import sampled_lines
from palmette.cli.printable import printable
from palmette.units import bytes_text, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palmette.analysis import Causes, Links, Trace
    from palmette.record.changes import Change, RunCost
    from palmette.record.machine import Seats

WIDTH = 80
MOST_LINKS = 5
MOST_PATHS = 10
MOST_CHANGES = 20
MOST_PAIRS = 5
MOST_REGIONS = 12
MOST_ROWS = 16
"""Rows of a timeline: some ranks are shown of a job with more."""
LEAST_CHANGE = 0.005
"""Share of all ranks' time below which a change between two runs isn't told."""
COLUMNS = 64
SHADES = " .:-=+*"
"""Share of time in MPI, from none to all."""


def lines(trace: Trace, *, in_full: bool) -> list[str]:
    """Return the report in 80 columns; `in_full`: with timeline, call paths, messages and sizes."""
    from palmette import _core

    found = trace.document
    findings, causes = (trace.findings, trace.causes) if trace.has_calls else (None, None)
    shown = [
        f"{printable(found['program'])}: {plural(found['ranks'], 'rank')} on {plural(found['nodes'], 'node')}, "
        f"{_core.format_duration(found['time_s'])}, {found['calls']:,} MPI calls"
    ]
    if rates := found["efficiencies"]:
        shown.append(
            f"parallel efficiency {rates['parallel']:.0%} = load balance {rates['load_balance']:.0%} x communication "
            f"{rates['communication']:.0%}"
        )
        if causes and not causes.withheld:
            shown += _communication_lines(rates["communication"], causes)
        if len(rates["levels"]) > 1:
            parts = " x ".join(f"{level['name']} {level['balance']:.0%}" for level in rates["levels"])
            shown += textwrap.wrap(f"load balance by level: {parts}", WIDTH, subsequent_indent="  ")
    shown.append(_split_line(found["split"]))
    if sampled := found["sampled"]:
        shown += ["", *sampled_lines.heaviest(sampled)]
    if len(found["by_rank"]) > 1:
        shown += ["", *sampled_lines.ranks(found["by_rank"], None if in_full else sampled_lines.MOST_RANKS)]
    if found["regions"]:
        shown += ["", *_region_lines(found["regions"], None if in_full else MOST_REGIONS)]
    if findings == []:
        text = "Nothing in MPI is worth your time: no place costs 1 % of the ranks' time."
        if not sampled:
            text += " Which lines compute, `palmette run --sample --trace DIR` tells."
        shown += ["", *textwrap.wrap(text, WIDTH)]
    for number, one in enumerate(findings or (), 1):
        wrapped = textwrap.wrap(printable(one.sentence), WIDTH, initial_indent=f"{number}. ", subsequent_indent="   ")
        shown += ["", *wrapped, f"   next: {printable(one.next)}"]
    if causes and (roots := [root for root in causes.roots if in_full or not root.follows]):
        shown += [
            "",
            "what else waiting goes back to" if len(roots) < len(causes.roots) else "what waiting goes back to",
        ]
        for root in roots:
            shown += textwrap.wrap(printable(root.sentence), WIDTH, initial_indent="  ", subsequent_indent="    ")
    if in_full or findings is None:
        shown += ["", *_path_lines(found)]
    if in_full and sampled:
        shown += ["", *sampled_lines.tree(sampled)]
    if in_full:
        shown += [*_snapshot_lines(found), *_timeline_lines(found), *_matrix_lines(found), *_size_lines(found)]
    shown += _link_lines(trace.links, trace.seats)
    if found["adapters"] and (in_full or found["nodes"] > 1):
        shown += _adapter_lines(found["adapters"], None if in_full else MOST_LINKS)
    more = []
    if not trace.has_calls:
        more = ["a profile has sums; for whom ranks wait is found in a trace (`palmette run --trace DIR`)"]
    for note in [*found["notes"], *more]:
        shown += ["", *textwrap.wrap(printable(f"note: {note}"), WIDTH, subsequent_indent="  ")]
    return shown


def _communication_lines(communication: float, causes: Causes) -> list[str]:
    """Return what makes communication as efficient as it is."""
    if causes.serialisation is None:
        return []
    text = f"communication {communication:.0%} = serialisation {causes.serialisation:.0%} x "
    if causes.network is None or causes.software is None:
        text += f"transfer {causes.transfer:.0%}"
    else:
        text += f"network {causes.network:.0%} x software {causes.software:.0%}"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="  ")
    if causes.software is not None and causes.plans is not None:
        text = f"software {causes.software:.0%} = plans {causes.plans:.0%} x their execution {causes.execution:.0%} x "
        lines += textwrap.wrap(f"{text}other calls {causes.others:.0%}", WIDTH, subsequent_indent="  ")
    return lines


def _split_line(split: dict[str, float | None]) -> str:
    """Return what share of all ranks' time went where."""
    names = {
        "computing_s": "computing", "waiting_s": "waiting", "bound_s": "bound", "excess_s": "excess",
        "in_call_s": "in the call",
        "completion_s": "completion", "other_s": "other MPI",
    }  # fmt: skip
    whole = sum(value for value in split.values() if value)
    parts = [f"{names[key]} {value / whole:.0%}" for key, value in split.items() if value and value > whole / 200]
    return "all ranks' time: " + ", ".join(parts)


def compared_lines(documents: Sequence[dict[str, Any]]) -> list[str]:
    """Return what two recordings that are compared are, in 80 columns."""
    from palmette import _core

    shown = []
    for name, one in zip(("before", "after"), documents, strict=True):
        shown += textwrap.wrap(
            f"{name}: {printable(one['program'])}, {plural(one['ranks'], 'rank')}, "
            f"{_core.format_duration(one['time_s'])}; {_split_line(one['split'])}", WIDTH, subsequent_indent="  ",
        )  # fmt: skip
    if not all(one["sampled"] for one in documents):
        shown.append("note: what computes longer is known of runs with `palmette run --sample` only")
    return shown


def change_lines(found: Sequence[Change], whole_s: float) -> list[str]:
    """Return what changed between two runs, of which the longer one took so long, in 80 columns."""
    from palmette import _core

    def time_of(taken: RunCost | None) -> str:
        return "-" if taken is None else _core.format_duration(taken.seconds)

    rows = [one for one in found if abs(one.more_s) >= LEAST_CHANGE * whole_s]
    if not rows:
        return ["", "No function or call changed by 0.5 % of the run's time."]
    shown = ["", f"{'before':>9} {'after':>9} {'change':>10} {'ratio':>6}  per rank"]
    for row in rows[:MOST_CHANGES]:
        change = ("+" if row.more_s > 0 else "-") + _core.format_duration(abs(row.more_s))
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        text = f"{time_of(row.before):>9} {time_of(row.after):>9} {change:>10} {ratio:>6}  {row.key.name}"
        shown.append(printable(text)[:WIDTH].rstrip())
    if len(rows) > MOST_CHANGES:
        shown.append(f"and {len(rows) - MOST_CHANGES:,} more (--json has all)")
    return shown


def _region_lines(rows: Sequence[dict[str, Any]], most: int | None) -> list[str]:
    """Return the tree of regions; of many, the heaviest, each with those around it."""
    from palmette import _core

    kept = list(range(len(rows)))
    if most is not None and len(rows) > most:
        kept = sorted(sorted(kept, key=lambda at: -rows[at]["inclusive_s"])[:most])
    shown = [f"{'region, over all ranks':<28} {'calls':>12} {'time':>9} {'own':>9} {'in MPI':>9}  most"]
    for at in kept:
        row = rows[at]
        name = printable("  " * min(row["depth"], 10) + row["name"].partition("(")[0])
        times = (row["inclusive_s"], row["exclusive_s"], row["mpi_s"])
        cells = " ".join(f"{_core.format_duration(one) if one is not None else '':>9}" for one in times)
        rank = f"rank {row['most_rank']}" if row["ranks"] > 1 else ""
        shown.append(f"{name[:28]:<28} {row['calls']:>12,} {cells}  {rank}"[:WIDTH].rstrip())
    if len(kept) < len(rows):
        shown.append(f"and {len(rows) - len(kept):,} more regions (--all)")
    return shown


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
    """Return the busiest links, each in the direction in which it is busier; by bytes where rates aren't known."""
    if links is None or seats is None:
        return []
    span_s, rated = links.span_s, links.span_s > 0 and all(link.group.rate > 0 for link in links.links)
    found = []
    for link in links.links:
        both = zip(("out of", "into"), (link.out, link.into), link.carried(span_s), strict=True)
        # Of equal sums that which is full for longer, as the finding names it.
        most = max(both, key=lambda one: (float(one[2].sum()), int((one[2] >= 0.8 * one[2].max()).sum())))
        if (sent := float(most[1].sum())) > 0:
            found.append((most[2].sum() / (span_s * link.group.rate) if rated else sent, sent, most, link.group))
    lines = []
    for _, sent, (side, _, carried), group in sorted(found, key=lambda one: (-one[0], -one[1]))[:MOST_LINKS]:
        text = f"  {side} {group.name} ({seats.levels[group.level]}): {bytes_text(sent)}"
        if group.rate and span_s > 0:
            text += f", {carried.sum() / span_s / group.rate:.0%} busy"
            if links.bins > 1:
                text += f", at most {carried.max() / (span_s / links.bins) / group.rate:.0%}"
        lines.append(printable(text)[:WIDTH])
    return ["", "busiest links", *lines] if lines else []


def _adapter_lines(found: dict[str, Any], most: int | None) -> list[str]:
    """Return what adapters carried: of many, those that carried most; and what of it the job accounts for."""
    rows = sorted(found["adapters"], key=lambda one: -one["sent_bytes"] - one["received_bytes"])
    own = {one["host"]: one for one in found["hosts"]}
    titles = f"{'out':>8} {'in':>8} {'of it own':>10} {'and':>8} {'fullest':>10}"
    shown = ["", f"{'adapters, as counted':<28} {titles}"]
    for row in rows[:most]:
        host = own[row["host"]]
        name = printable(f"  {row['host']} {row['name']}")
        fullest = f"{bytes_text(row['most_bytes_per_s'])}/s"
        text = f"{name[:28]:<28} {bytes_text(row['sent_bytes']):>8} {bytes_text(row['received_bytes']):>8} "
        text += f"{bytes_text(host['own_sent_bytes']):>10} {bytes_text(host['own_received_bytes']):>8} {fullest:>10}"
        shown.append((text + (f"  waited {row['waited']:,}" if row["waited"] else ""))[:WIDTH].rstrip())
    if most is not None and len(rows) > most:
        shown.append(f"and {len(rows) - most:,} more adapters (--all)")
    return shown


def _snapshot_lines(found: dict[str, Any]) -> list[str]:
    """Return how the sums of calls grew over time, in few rows."""
    from palmette import _core

    snapshots = found["snapshots"]
    if not snapshots:
        return []
    rows = snapshots["rows"]
    shown = ["", f"{'over time, from':<16} {'in MPI':>6} {'calls':>12} {'bytes':>8}  most"]
    step = -(-len(rows) // MOST_ROWS)
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        share = sum(row["mpi_share"] for row in part) / len(part)
        most = [one["function"] for one in max(part, key=lambda row: row["mpi_s"])["functions"]][:1]
        text = (
            f"  {_core.format_duration(part[0]['from_s']):<14} {share:>6.0%} {sum(row['calls'] for row in part):>12,} "
        )
        text += f"{bytes_text(sum(row['bytes'] for row in part)):>8}  {''.join(most)}"
        shown.append(text[:WIDTH].rstrip())
    for number, phase in enumerate(snapshots["phases"], 1):
        share = phase["mpi_s"] / phase["ran_s"] if phase["ran_s"] > 0 else 0.0
        text = f"  phase {number:<8} {share:>6.0%} {phase['calls']:>12,} {bytes_text(phase['bytes']):>8}"
        shown.append(f"{text}  {_core.format_duration(phase['ran_s'])} of all ranks")
    return shown


def _timeline_lines(found: dict[str, Any]) -> list[str]:
    """Return a row of shades for each rank: how much of its time is in MPI; # where it mostly waits for others."""
    from palmette import _core
    from palmette.record.columns import unpacked

    timeline = found["timeline"]
    if timeline is None:
        return []
    level = timeline["levels"][0]
    rows, bins = len(timeline["rows"]), level["bins"]
    mpi, waiting = (unpacked(level[name], "u1").reshape(rows, bins).astype(float) for name in ("mpi", "waiting"))
    shown = ["", f"timeline: {SHADES} share of time in MPI, # mostly waiting for others"]
    step = -(-rows // MOST_ROWS)
    for row in range(0, rows, step):
        text = ""
        for column in range(COLUMNS):
            part = slice(column * bins // COLUMNS, max(column * bins // COLUMNS + 1, (column + 1) * bins // COLUMNS))
            share, waits = mpi[row, part].mean() / 255, waiting[row, part].mean() / 255
            text += "#" if waits > share / 2 and waits > 0.25 else SHADES[round(share * (len(SHADES) - 1))]
        shown.append(f"{timeline['rows'][row]['name'][:14]:<15}{text}".rstrip())
    end = _core.format_duration(timeline["span_s"])
    return [*shown, f"{'':<15}0{end:>{COLUMNS - 1}}"]


def _matrix_lines(found: dict[str, Any]) -> list[str]:
    """Return the pairs of ranks with most bytes."""
    from palmette.record.columns import unpacked

    matrix = found["matrix"]
    if matrix is None:
        return []
    size, names = matrix["rows"], matrix["names"]
    sent = unpacked(matrix["bytes"], "f4").reshape(size, size)
    pairs = sorted((-float(sent[a, b]), int(a), int(b)) for a, b in zip(*sent.nonzero(), strict=True))

    shown = ["", f"most bytes, of {len(pairs):,} pairs"]
    shown += [f"  {names[a]} to {names[b]}: {bytes_text(-most)}" for most, a, b in pairs[:MOST_PAIRS]]
    return shown + textwrap.wrap(matrix["counted"], WIDTH, initial_indent="  ", subsequent_indent="  ")


def _size_lines(found: dict[str, Any]) -> list[str]:
    """Return calls and time by size."""
    from palmette import _core

    by_size: dict[int, list[float]] = {}
    for one in found["sizes"]:
        sums = by_size.setdefault(one["bytes_from"], [0.0, 0.0])
        sums[0] += one["calls"]
        sums[1] += one["seconds"]
    most = max((seconds for _, seconds in by_size.values()), default=0.0)
    shown = ["", f"{'bytes of a call, from':<22} {'calls':>12} {'time':>9}"]
    for size, (calls, seconds) in sorted(by_size.items()):
        bar = "#" * round(30 * seconds / most) if most else ""
        shown.append(
            f"{_core.format_size(size):<22} {int(calls):>12,} {_core.format_duration(seconds):>9} {bar}".rstrip()
        )
    return shown
