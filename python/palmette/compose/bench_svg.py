"""Bar chart (SVG) of measured compositions: the time of the MPI and of each variant, and the bound as a line."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from palmette import _core
from palmette.compose.bench import Cell, Row
from palmette.draw import elements
from palmette.units import bytes_text, plural

_LEFT, _BARS, _RIGHT = 150.0, 480.0, 130.0
_ROW, _HEAD = 24.0, 52.0


def svg(results: Sequence[tuple[str, Cell]]) -> str:
    """Return the chart for pairs (where, cell); bars of one cell share a scale."""
    width = _LEFT + _BARS + _RIGHT
    parts: list[str] = []
    y = 16.0
    for where, cell in results:
        parts += _cell(where, cell, y)
        y += _HEAD + _ROW * len(cell.rows) + 22
    return "\n".join(
        [
            elements.document(width, y),
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _cell(where: str, cell: Cell, top: float) -> list[str]:
    longest = max(row.time.high_s for row in cell.rows)
    parts = [
        elements.text(
            16,
            top + 16,
            f"{cell.composition}, {bytes_text(cell.size_bytes)}, {plural(cell.ranks, 'rank')}",
            15,
            elements.INK,
            weight=600,
        ),
        elements.text(16, top + 34, where, 12, elements.MUTED),
    ]
    y = top + _HEAD
    for row in cell.rows:
        parts += _bar(row, cell, y, longest)
        y += _ROW
    if cell.bound_s:
        x = _LEFT + _BARS * cell.bound_s / longest
        parts.append(
            f'<path d="M{x:.1f} {top + _HEAD - 4:.1f}V{y:.1f}" stroke="{elements.RED}" stroke-width="1.5"'
            ' stroke-dasharray="4 3"/>'
        )
        parts.append(
            elements.text(x, y + 12, f"bound {_core.format_duration(cell.bound_s)}", 11, elements.RED, "middle")
        )
    return parts


def _bar(row: Row, cell: Cell, y: float, longest: float) -> list[str]:
    scale = _BARS / longest
    low, high = _LEFT + row.time.low_s * scale, _LEFT + row.time.high_s * scale
    color = elements.BLUE if row.factoring else elements.GRAY
    middle = y + _ROW / 2
    label = _core.format_duration(row.time.median_s)
    if cell.bound_s:
        label += f", {row.time.median_s / cell.bound_s:.2f}"
    tip = row.factoring.text() if row.factoring else "the MPI's own collective"
    return [
        elements.text(_LEFT - 8, middle + 4, row.name, 12, elements.INK, "end"),
        f'<rect x="{_LEFT:.1f}" y="{y + 3:.1f}" width="{row.time.median_s * scale:.1f}" height="{_ROW - 6:.1f}"'
        f' fill="{color}"><title>{escape(tip)}</title></rect>',
        f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" stroke="{elements.INK}" stroke-width="1.5"/>',
        elements.text(high + 8, middle + 4, label, 12, elements.INK),
    ]
