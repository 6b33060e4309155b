"""Curves of time against size as SVG: both axes logarithmic, a band from quartile to quartile.

Colours come from the page's style sheet by class, so that the curves follow light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from palmette.bench.evaluate import Row
from palmette.bench.text import size_text, time_text
from palmette.measure.statistics import Summary
from palmette.units import plural

WIDTH, HEIGHT = 348, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 12, 38


@dataclass(frozen=True)
class Range:
    """The ends of an axis: bytes or seconds."""

    low: float
    high: float


def time_range(rows: Sequence[Row]) -> Range:
    """Return the range that shows all times and bounds of `rows`, so that charts side by side share their axis."""
    values = [
        value for row in rows for summary in (row.alone, row.palmette) for value in (summary.low_s, summary.high_s)
    ]
    values += [row.bound.seconds for row in rows if row.bound]
    positive = [value for value in values if value > 0] or [1e-3]
    return Range(min(positive) / 1.3, max(positive) * 1.3)


def chart(rows: Sequence[Row], times: Range, label: str) -> str:
    """Return the curves of one collective under one MPI and placement; `rows` differ in size only."""
    cells = sorted(rows, key=lambda row: row.size_bytes)
    axes = _Axes([row.size_bytes for row in cells], times)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">',
        *axes.grid(),
        *_bound(cells, axes),
        *_curve(cells, axes, "alone", "MPI alone"),
        *_curve(cells, axes, "palmette", "palmette"),
        "</svg>",
    ]
    return "".join(parts)


class _Axes:
    def __init__(self, sizes: Sequence[int], times: Range) -> None:
        self.sizes = sizes
        self.times = times

    def x(self, size: float) -> float:
        # A barrier has no size, and one point.
        low, high, own = (math.log(max(one, 1)) for one in (self.sizes[0], self.sizes[-1], size))
        share = (own - low) / (high - low) if high > low else 0.5
        # Air at both ends, so that points don't sit on the frame.
        return LEFT + 12 + share * (WIDTH - LEFT - RIGHT - 24)

    def y(self, seconds: float) -> float:
        low, high = math.log(self.times.low), math.log(self.times.high)
        share = (math.log(max(seconds, self.times.low)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def grid(self) -> list[str]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = []
        for tick, labelled in self._ticks():
            y = self.y(tick)
            kind = "grid" if labelled else "grid minor"
            parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            if labelled:
                parts.append(
                    f'<text class="tick" x="{LEFT - 7}" y="{y + 3.5:.1f}" text-anchor="end">{time_text(tick)}</text>'
                )
        last = -math.inf
        for size in self.sizes:
            x = self.x(size)
            parts.append(f'<line class="grid minor" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
            if x - last >= 34:
                parts.append(
                    f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{size_text(size)}</text>'
                )
                last = x
        parts.append(
            f'<text class="axis" x="{(LEFT + right) / 2}" y="{HEIGHT - 5}" text-anchor="middle">block size</text>'
        )
        return parts

    def _ticks(self) -> list[tuple[float, bool]]:
        """Seconds at which a line is drawn, and whether it has a label: powers of ten, and 2 and 5 where few fit."""
        first, last = math.floor(math.log10(self.times.low)), math.ceil(math.log10(self.times.high))
        few = last - first <= 3
        ticks = []
        for power in range(first, last + 1):
            for factor in (1, 2, 5):
                tick = factor * 10.0**power
                if self.times.low <= tick <= self.times.high:
                    ticks.append((tick, factor == 1 or few))
        return ticks


def _curve(cells: Sequence[Row], axes: _Axes, kind: str, name: str) -> list[str]:
    summaries: list[Summary] = [getattr(row, kind) for row in cells]
    points = [(axes.x(row.size_bytes), axes.y(one.median_s)) for row, one in zip(cells, summaries, strict=True)]
    parts = []
    if len(cells) > 1:
        upper = [(x, axes.y(one.high_s)) for (x, _), one in zip(points, summaries, strict=True)]
        lower = [(x, axes.y(one.low_s)) for (x, _), one in zip(points, summaries, strict=True)]
        parts.append(f'<polygon class="band {kind}" points="{_points([*upper, *reversed(lower)])}"/>')
        parts.append(f'<polyline class="line {kind}" points="{_points(points)}"/>')
    for (x, y), row, one in zip(points, cells, summaries, strict=True):
        parts.append(_marker(x, y, kind, _tip(name, row, one)))
    return parts


def _marker(x: float, y: float, kind: str, tip: str) -> str:
    """Return a point that can be distinguished without colour: a square for the MPI alone, a disc for palmette."""
    if kind == "alone":
        shape = f'<rect class="dot alone" x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4"/>'
    else:
        shape = f'<circle class="dot palmette" cx="{x:.1f}" cy="{y:.1f}" r="3.8"/>'
    # The invisible disc makes the tooltip easy to hit.
    return f'<g>{shape}<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="10"/><title>{escape(tip)}</title></g>'


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


def _bound(cells: Sequence[Row], axes: _Axes) -> list[str]:
    known = [(axes.x(row.size_bytes), axes.y(row.bound.seconds), row) for row in cells if row.bound]
    if not known:
        return []
    parts = [f'<polyline class="line bound" points="{_points([(x, y) for x, y, _ in known])}"/>']
    for x, y, row in known:
        assert row.bound is not None
        tip = f"physical bound, {row.collective} {size_text(row.size_bytes)}\n"
        tip += f"{time_text(row.bound.seconds)}: {row.bound.reason}"
        parts.append(f'<g><circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="8"/><title>{escape(tip)}</title></g>')
    return parts


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
