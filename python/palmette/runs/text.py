"""Answers of the archive as text, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from palmette import _core
from palmette.runs.archive import Run, Sum
from palmette.runs.questions import RowChange, RowGrowth, RunGroup, RunVerdict, name_of
from palmette.units import plural

NAME = 44
"""Columns of a row's name."""
MAX_ROWS = 20
"""Rows that are shown."""


def time_of(seconds: float | None) -> str:
    """Return a duration; - where there is none."""
    return "-" if seconds is None else _core.format_duration(seconds)


def _named(name: str) -> str:
    return f"{name if len(name) <= NAME else '...' + name[3 - NAME :]:<{NAME}}"


def _rest(rows: int) -> list[str]:
    return [f"and {rows - MAX_ROWS:,} more (--json has all)"] if rows > MAX_ROWS else []


def listed(runs: Sequence[Run]) -> list[str]:
    """List runs, the newest first."""
    lines = [f"{'run':>5}  {'began':<16} {'program':<18} {'ranks':>6} {'nodes':>5} {'time':>9} {'waiting':>8}"]
    for run in reversed(runs):
        whole = run.time_s * run.ranks if run.time_s else 0.0
        waiting = f"{run.waiting_s / whole:.0%}" if run.waiting_s is not None and whole else "-"
        tags = " ".join(f"{key}={value}" for key, value in run.tags.items())
        lines.append(
            f"{run.id:>5}  {run.began[:16].replace('T', ' '):<16} {run.program[:18]:<18} {run.ranks:>6,} "
            f"{run.nodes:>5,} {time_of(run.time_s):>9} {waiting:>8}" + (f"  {tags}" if tags else "")
        )
    return lines


def of_run(run: Run, sums: dict[tuple[str, str], Sum]) -> list[str]:
    """Show one run."""
    lines = [f"run {run.id}: {run.program}, {plural(run.ranks, 'rank')} on {plural(run.nodes, 'node')}, {run.began}"]
    lines += [f"time {time_of(run.time_s)}, recorded in {run.recorded}", ""]
    lines.append(f"{'seconds per rank':<{NAME}} {'calls':>12} {'time':>10} {'waiting':>10}")
    rows = sorted(sums.items(), key=lambda item: -item[1].seconds)
    for key, one in rows[:MAX_ROWS]:
        waiting = None if one.waiting_s is None else one.waiting_s / run.ranks
        calls = f"{one.calls:,}" if one.calls else ""
        lines.append(
            f"{_named(name_of(key))} {calls:>12} {time_of(one.seconds / run.ranks):>10} {time_of(waiting):>10}"
        )
    return lines + _rest(len(rows))


def of_both(before: Run, after: Run) -> list[str]:
    """Show which runs are compared."""
    return [
        f"run {one.id}: {one.program}, {plural(one.ranks, 'rank')}, {one.began}, {time_of(one.time_s)}"
        for one in (before, after)
    ]


def of_scaling(rows: Sequence[RowGrowth], *, over_bytes: bool) -> list[str]:
    """Show how rows grow."""
    what, share = ("bytes n", "share") if over_bytes else ("ranks p", "at twice")
    lines = [f"{f'growth with {what}':<{NAME}} {'growth':>14} {'error':>7} {share:>9}"]
    for one in rows[:MAX_ROWS]:
        name = one.growth.name.replace("p", "n") if over_bytes else one.growth.name
        lines.append(f"{_named(name_of(one.key))} {name:>14} {one.growth.error:>7.0%} {one.share:>9.0%}")
    lines += _rest(len(rows))
    unscaled = [one for one in rows if one.is_unscaled] if not over_bytes else []
    for one in unscaled[:3]:
        share = f"{one.share:.0%} of twice as many ranks' time"
        text = f"{name_of(one.key)} doesn't scale: it grows as {one.growth.name} and would be {share}"
        lines += ["", *textwrap.wrap(text, 80)]
    return lines


def of_variation(rows: Sequence[RunGroup]) -> list[str]:
    """Show how run times vary."""
    lines = [f"{'program':<20} {'ranks':>6} {'runs':>5} {'median':>9} {'quartiles':>21} {'placement explains':>18}"]
    for one in rows[:MAX_ROWS]:
        low, median, high = one.quartiles_s
        explains = "-" if one.explained is None else f"{one.explained:.0%} of {one.placements}"
        between = f"{time_of(low)} to {time_of(high)}"
        lines.append(
            f"{one.program[:20]:<20} {one.ranks:>6,} {len(one.times_s):>5} {time_of(median):>9} {between:>21} "
            f"{explains:>18}"
        )
    return lines + _rest(len(rows))


def of_gate(judged: RunVerdict) -> list[str]:
    """Show a verdict."""
    where = "on its placement" if judged.same_placement else "on any placement"
    run = judged.run
    lines = [
        f"run {run.id}: {run.program}, {plural(run.ranks, 'rank')}, {run.began}, {time_of(run.time_s)}",
        f"beside {plural(len(judged.before), 'earlier run')} {where}",
    ]
    if not judged.slower:
        return [*lines, "nothing is slower than usual"]
    lines += ["", f"{'slower than usual, seconds per rank':<{NAME}} {'usual':>11} {'now':>11} {'ratio':>7}"]
    for one in judged.slower[:MAX_ROWS]:
        lines.append(
            f"{_named(name_of(one.key))} {time_of(one.usual_s):>11} {time_of(one.seconds):>11} "
            + (f"{one.ratio:>7.2f}" if one.usual_s > 0 else f"{'new':>7}")
        )
    return lines + _rest(len(judged.slower))


def of_since(rows: Sequence[RowChange], date: str) -> list[str]:
    """Show what got slower."""
    if not rows:
        return [f"nothing got slower since {date}"]
    lines = [f"{f'slower since {date}':<{NAME}} {'program':<14} {'ranks':>5} {'ratio':>14}"]
    for one in rows[:MAX_ROWS]:
        ratio = f"{one.ratio.value:.2f} {one.ratio.low:.2f}-{one.ratio.high:.2f}"
        lines.append(f"{_named(name_of(one.key))} {one.program[:14]:<14} {one.ranks:>5} {ratio:>14}")
    return lines + _rest(len(rows))
