"""Output of measured compositions: text tables and JSON."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Any

from palmette import _core
from palmette.compose.bench import Cell, Row
from palmette.units import bytes_text, plural

WIDTH = 80


def cell_lines(cell: Cell, where: str, fastest: int | None = None) -> list[str]:
    """Return the table of one composition and size: times, and the counts of its plan.

    `fastest`: only so many variants, the fastest first.
    """
    shown = cell.rows
    if fastest is not None:
        shown = (shown[0], *sorted(shown[1:], key=lambda row: row.time.median_s)[:fastest])
    bound = f"; bound {_core.format_duration(cell.bound_s)}" if cell.bound_s else ""
    lines = _wrap(f"{cell.composition}, {bytes_text(cell.size_bytes)}, {plural(cell.ranks, 'rank')}; {where}{bound}")
    outer = next((row.counts.outer_level for row in cell.rows if row.counts), "node")
    # Short headings, so that a table of large numbers stays within 80 columns.
    across = plural(2, outer).removeprefix("2 ")
    rows: list[tuple[str, ...]] = [("", "time", "x bound", "x MPI", "messages", across, "scratch", "stages")]
    rows += [_cells(row, cell.bound_s) for row in shown]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines += [
        "  ".join(
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    for row in shown:
        if row.factoring is not None:
            made = f" (made in {_core.format_duration(row.made_s)})" if row.made_s else ""
            lines += _wrap(f"  {row.name}: {row.factoring.text()}{made}")
    if len(shown) < len(cell.rows):
        lines.append(f"  and {plural(len(cell.rows) - len(shown), 'slower candidate')}; --json has all")
    if any(row.dropped for row in shown):
        lines.append("* too slow: dropped after three rounds")
    return lines


def _cells(row: Row, bound_s: float | None) -> tuple[str, ...]:
    seconds = row.time.median_s
    multiple = f"{seconds / bound_s:.2f}" if bound_s else "-"
    counts = row.counts
    return (
        row.name,
        _core.format_duration(seconds) + ("*" if row.dropped else ""),
        multiple,
        f"{row.ratio.value:.2f}" if row.ratio else "-",
        f"{counts.messages:,}" if counts else "-",
        f"{bytes_text(counts.outer_bytes)} in {counts.outer_messages:,}" if counts else "-",
        bytes_text(counts.scratch_bytes) if counts else "-",
        f"{counts.stages}" if counts else "-",
    )


def cell_json(cell: Cell, where: str) -> dict[str, Any]:
    """Return the contents of the table, and the confidence intervals."""
    return {
        "where": where,
        "composition": cell.composition,
        "size_bytes": cell.size_bytes,
        "ranks": cell.ranks,
        "bound_s": cell.bound_s,
        "rows": [
            {
                "name": row.name,
                "factoring": row.factoring.text() if row.factoring else None,
                "runtime_factoring": row.factoring.runtime_text() if row.factoring else None,
                "time_s": asdict(row.time),
                "bound_multiple": row.time.median_s / cell.bound_s if cell.bound_s else None,
                "ratio": asdict(row.ratio) if row.ratio else None,
                "made_s": row.made_s,
                "dropped": row.dropped,
                "figures": asdict(row.counts) if row.counts else None,
            }
            for row in cell.rows
        ],
    }


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
