"""What samples say, in 80 columns: the heaviest lines, the tree of calling contexts, and the table by rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from palmette.cli.printable import printable

MOST_LINES = 5
MOST_NODES = 24
MOST_DEPTH = 20
MOST_RANKS = 5
MOST_TAKEN = 0.8
"""Share of the requested sampling rate below which the kernel's ticks are taken to limit it."""


def heaviest(found: dict[str, Any], most: int = MOST_LINES) -> list[str]:
    """Return the lines of the program that compute most, over all ranks."""
    rate = f" at {found['rate_hz']:.0f} Hz" if found["rate_hz"] else ""
    if found["rate_hz"] and found["taken_hz"] and found["taken_hz"] < MOST_TAKEN * found["rate_hz"]:
        rate = f" at {found['taken_hz']:.0f} Hz ({found['rate_hz']:.0f} asked for)"
    whole = f", {found['complete']:.1%} complete" if found["complete"] is not None else ""
    shown = [
        f"{found['samples']:,} stacks sampled{rate}{whole}",
        f"{'computing':<16} {'at':<33} {'most':<14} least",
    ]
    for one in found["lines"][:most]:
        if one["share"] < 0.005:
            break
        ranks = f"rank {one['most_rank']} {_short(one['most_s'])}"
        if one["least_rank"] != one["most_rank"]:
            ranks = f"{ranks:<14} rank {one['least_rank']} {_short(one['least_s'])}"
        shown.append(f"  {one['share']:>4.0%} {_short(one['cpu_s']):>8}  {place_text(one)[:33]:<33} {ranks}"[:80])
    return shown


def _short(seconds: float) -> str:
    """A duration in at most seven characters, for samples don't say more."""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def place_text(one: dict[str, Any]) -> str:
    """Return `smooth() heat.c:41` of a line's function, file and line."""
    if not one["line"]:
        return printable(one["place"])
    return printable(f"{one['function'].partition('(')[0]}() {Path(one['file']).name}:{one['line']}")


def tree(found: dict[str, Any], most: int = MOST_NODES) -> list[str]:
    """Return the tree of calling contexts, the heaviest first; `most`: rows."""
    from palmette import _core

    whole_s = found["computing_s"] + found["in_mpi_s"]
    rows = [row for row in found["tree"] if row["cpu_s"] >= 0.01 * whole_s and row["depth"] < MOST_DEPTH]
    kept = sorted(range(len(rows)), key=lambda at: -rows[at]["cpu_s"])[:most]
    shown = [f"{'processor time':>14} {'own':>9}  calling context (> hot path)"]
    for at in sorted(kept):
        row = rows[at]
        name = row["function"].partition("(")[0] or row["function"]
        if row["lines"]:
            first, last = row["lines"][0], row["lines"][-1]
            name += f" {Path(row['file']).name}:" if row["kind"] != "loop" else ", line "
            name += f"{first}" + (f"-{last}" if last != first else "")
        share = f"{row['cpu_s'] / whole_s:>4.0%} {_core.format_duration(row['cpu_s']):>9}"
        own = _core.format_duration(row["own_s"]) if row["own_s"] else ""
        text = f"{share} {own:>9} {'>' if row['is_hot'] else ' '}{' ' * row['depth']}{printable(name)}"
        shown.append(text[:80].rstrip())
    if len(rows) > len(kept):
        shown.append(f"and {len(rows) - len(kept):,} more contexts of at least 1% (--json)")
    return shown


def ranks(rows: list[dict[str, Any]], most: int | None = MOST_RANKS) -> list[str]:
    """Return the table by rank: of many ranks, those that compute most and least."""
    from palmette import _core
    from palmette.units import bytes_text

    def text(seconds: float | None) -> str:
        return _core.format_duration(seconds) if seconds is not None else ""

    order = sorted(rows, key=lambda row: -row["computing_s"])
    if most is not None and len(order) > most:
        order = [*order[: most - 2], *order[-2:]]
    has_off = any(row["off_processor_s"] is not None for row in rows)
    columns = [
        ("rank", 6), ("computing", 10), *([("off the CPU", 12)] if has_off else []), ("waiting", 10), ("in calls", 10),
        ("bytes", 8), ("critical path", 14),
    ]  # fmt: skip
    shown = ["".join(f"{title:>{width}}" for title, width in columns)]
    for row in order:
        cells = [f"{row['rank']}", text(row["computing_s"])]
        if has_off:
            cells.append(text(row["off_processor_s"]))
        cells += [
            text(row["waiting_s"]), text(row["in_calls_s"]), bytes_text(row["bytes"]), text(row["on_critical_path_s"]),
        ]  # fmt: skip
        shown.append("".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, columns, strict=True)).rstrip())
    return shown
