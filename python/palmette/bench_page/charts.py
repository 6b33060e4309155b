"""Curves of time against size as SVG: both axes logarithmic, a band from quartile to quartile."""

from __future__ import annotations

from collections.abc import Sequence

from palmette.bench.evaluate import Row
from palmette.bench.text import size_text
from palmette.measure.statistics import Summary
from palmette.present.charts import DASHES, Curve, LogLog
from palmette.present.picture import Picture
from palmette.units import plural, time_text

WIDTH, HEIGHT = 348.0, 250.0


def time_range(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the range that shows all times and bounds of `rows`, so that charts side by side share their axis."""
    values = [time for row in rows for one in (row.alone, row.palmette) for time in (one.low_s, one.high_s)]
    return LogLog.limits([*values, *(row.bound.seconds for row in rows if row.bound)])


def chart(rows: Sequence[Row], times: tuple[float, float], label: str) -> str:
    """Return the curves of one collective under one MPI and placement; `rows` differ in size only."""
    cells = sorted(rows, key=lambda row: row.size_bytes)
    picture = Picture(label)
    axes = LogLog([row.size_bytes for row in cells], *times, 56, 12, WIDTH - 70, HEIGHT - 50)
    axes.grid(picture)
    picture.text(WIDTH / 2 + 21, HEIGHT - 5, "block size", 11, "muted", "middle")
    bounds = [(row, row.bound) for row in cells if row.bound]
    points = [(row.size_bytes, bound.seconds) for row, bound in bounds]
    tips = [
        f"physical bound, {row.collective} {size_text(row.size_bytes)}\n{time_text(bound.seconds)}: {bound.reason}"
        for row, bound in bounds
    ]
    if points:
        axes.draw(picture, Curve(points, "bound", tips, dashes=DASHES))
    for color, name in (("alone", "MPI alone"), ("palmette", "palmette")):
        summaries: list[Summary] = [getattr(row, color) for row in cells]
        axes.draw(
            picture,
            Curve(
                [(row.size_bytes, one.median_s) for row, one in zip(cells, summaries, strict=True)],
                color,
                [_tip(name, row, one) for row, one in zip(cells, summaries, strict=True)],
                [(one.low_s, one.high_s) for one in summaries],
                square=color == "alone",
            ),
        )
    return picture.document(WIDTH, HEIGHT, inline="chart")


def _tip(name: str, row: Row, one: Summary) -> str:
    who = row.rival if row.rival and name != "palmette" else name
    spread = f" (quartiles {time_text(one.low_s)} to {time_text(one.high_s)}, {plural(one.count, 'sample')})"
    lines = [
        f"{who}, {row.collective} {size_text(row.size_bytes)}",
        time_text(one.median_s) + (", simulated" if row.simulated else spread),
    ]
    if row.bound:
        lines.append(f"{one.median_s / row.bound.seconds:.2f} times the bound of {time_text(row.bound.seconds)}")
    if name == "palmette" and row.algorithm:
        lines.append(f"by {row.algorithm}")
    return "\n".join(lines)
