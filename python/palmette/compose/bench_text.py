"""Output of measured compositions: text tables and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from palmette import _core
from palmette.compose.bench import Cell, Row
from palmette.present.table import Column, Table
from palmette.present.words import wrapped
from palmette.units import bytes_text, plural


def cell_lines(cell: Cell, where: str, fastest: int | None = None) -> list[str]:
    """Return the table of one composition and size: times, and the counts of its plan.

    `fastest`: only so many variants, the fastest first.
    """
    shown = cell.rows
    if fastest is not None:
        shown = (shown[0], *sorted(shown[1:], key=lambda row: row.time.median_s)[:fastest])
    bound = f"; bound {_core.format_duration(cell.bound_s)}" if cell.bound_s else ""
    head = f"{cell.composition}, {bytes_text(cell.size_bytes)}, {plural(cell.ranks, 'rank')}; {where}{bound}"
    lines = [*wrapped(head, rest="    "), *_table(cell, shown).lines()]
    for row in shown:
        if row.factoring is not None:
            made = f" (made in {_core.format_duration(row.made_s)})" if row.made_s else ""
            lines += wrapped(f"{row.name}: {row.factoring.text()}{made}", "  ", "    ")
    if len(shown) < len(cell.rows):
        lines.append(f"  and {plural(len(cell.rows) - len(shown), 'slower candidate')}; --json has all")
    if any(row.dropped for row in shown):
        lines.append("* too slow: dropped after three rounds")
    return lines


def _table(cell: Cell, shown: tuple[Row, ...]) -> Table[Row]:
    # Short headings, so that a table of large numbers stays within 80 columns.
    outer = next((row.counts.outer_level for row in cell.rows if row.counts), "node")
    bound_s = cell.bound_s
    return Table(
        [
            Column("", "name", left=True),
            Column("time", "", lambda row: _core.format_duration(row.time.median_s) + ("*" if row.dropped else "")),
            Column("x bound", "", lambda row: row.time.median_s / bound_s if bound_s else None, "{:.2f}".format),
            Column("x MPI", "", lambda row: row.ratio.value if row.ratio else None, "{:.2f}".format),
            Column("messages", "counts", show=lambda counts: f"{counts.messages:,}"),
            Column(plural(2, outer).removeprefix("2 "), "counts",
                   show=lambda counts: f"{bytes_text(counts.outer_bytes)} in {counts.outer_messages:,}"),
            Column("scratch", "counts", show=lambda counts: bytes_text(counts.scratch_bytes)),
            Column("stages", "counts", show=lambda counts: str(counts.stages)),
        ],
        shown,
    )  # fmt: skip


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
