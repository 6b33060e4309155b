"""Predicted time over size, one curve for each algorithm: one panel a collective, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from palmette.predict.answer import Cell
from palmette.predict.text import letter
from palmette.present.charts import DASHES, Curve, LogLog, stroke
from palmette.present.colors import CURVES
from palmette.present.picture import Picture

_WIDTH, _LEFT, _HEIGHT = 520.0, 70.0, 262.0


def curves_svg(cells: Sequence[Cell]) -> str:
    """Return an SVG document. The bound is the dashed line; a collective of one size is drawn as points."""
    picture = Picture("predicted time over size")
    y = 0.0
    for collective, found in groupby(cells, key=lambda cell: cell.collective):
        y = _panel(picture, collective, list(found), y)
    return picture.document(_WIDTH, y)


def _panel(picture: Picture, collective: str, cells: Sequence[Cell], top: float) -> float:
    sizes = sorted({cell.size_bytes for cell in cells})
    limits = LogLog.limits([time for cell in cells for time in (cell.seconds, cell.bound_s or 0.0)])
    axes = LogLog(sizes, *limits, _LEFT, top + 34, _WIDTH - _LEFT - 34, _HEIGHT)
    picture.text(_LEFT, top + 20, collective, 14, weight=600)
    axes.grid(picture)
    bounds = sorted({(cell.size_bytes, cell.bound_s) for cell in cells if cell.bound_s})
    entries = []
    for index, name in enumerate(dict.fromkeys(cell.algorithm for cell in cells)):
        own = sorted((cell for cell in cells if cell.algorithm == name), key=lambda cell: cell.size_bytes)
        color, key = f"curve{index % CURVES}", letter(index)
        points = [(float(cell.size_bytes), cell.seconds) for cell in own]
        axes.draw(picture, Curve(points, color, [name] * len(own), name=key))
        entries.append((stroke(picture, color), f"{key} {name}"))
    axes.draw(picture, Curve([(size, bound) for size, bound in bounds if bound], "ink", dashes=DASHES))
    axes.names(picture)
    y = top + 34 + _HEIGHT + 44
    for entry in [*entries, (stroke(picture, "ink", 1.6, DASHES), "bound")]:
        y = picture.legend([entry], y, _WIDTH, _LEFT)
    return y + 8
