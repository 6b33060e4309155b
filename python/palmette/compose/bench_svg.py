"""Bar chart (SVG) of measured compositions: the time of the MPI and of each variant, and the bound as a line."""

from __future__ import annotations

from collections.abc import Sequence

from palmette import _core
from palmette.compose.bench import Cell, Row
from palmette.present.charts import Bar, Bars
from palmette.present.picture import Picture
from palmette.units import bytes_text, plural

_HEAD = 52.0


def svg(results: Sequence[tuple[str, Cell]]) -> str:
    """Return the chart for pairs (where, cell); bars of one cell share a scale."""
    picture = Picture("time of compositions")
    y = 16.0
    for where, cell in results:
        title = f"{cell.composition}, {bytes_text(cell.size_bytes)}, {plural(cell.ranks, 'rank')}"
        picture.text(16, y + 16, title, 15, weight=600)
        picture.text(16, y + 34, where, color="muted")
        bars = Bars(150.0, 480.0, max(row.time.high_s for row in cell.rows), 18.0, 4.0)
        bottom = bars.draw(picture, [(row.name, [_bar(row, cell)]) for row in cell.rows], y + _HEAD)
        if cell.bound_s:
            words = f"bound {_core.format_duration(cell.bound_s)}"
            bars.limit(picture, cell.bound_s, y + _HEAD - 4, bottom + 4, words)
        y = bottom + 28
    return picture.document(760, y)


def _bar(row: Row, cell: Cell) -> Bar:
    label = _core.format_duration(row.time.median_s)
    if cell.bound_s:
        label += f", {row.time.median_s / cell.bound_s:.2f}"
    color, tip = ("palmette", row.factoring.text()) if row.factoring else ("alone", "the MPI's own collective")
    return Bar(row.time.median_s, label, color, row.time.low_s, row.time.high_s, tip)
