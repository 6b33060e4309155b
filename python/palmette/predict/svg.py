"""Predicted time over size, one curve for each algorithm: one panel a collective, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from palmette import _core
from palmette.predict.answer import Cell
from palmette.predict.text import letter

WIDTH, HEIGHT = 520, 340
LEFT, RIGHT, TOP, BOTTOM = 70, 34, 34, 44
LINE = 16
LETTER = 12
COLOURS = ("#0b62a4", "#c8501e", "#2f8f4e", "#8a4fb0", "#b08a00", "#c02f6b", "#3a8f9e", "#6b6b6b")
"""Dark enough on white, distinguishable by the colour-blind; curves have letters, too."""


def curves_svg(cells: Sequence[Cell]) -> str:
    """Return an SVG document. The bound is the dashed line; a collective of one size is drawn as points."""
    panels = []
    height: float = 0
    for collective, found in groupby(cells, key=lambda cell: cell.collective):
        panel, tall = _panel(collective, list(found), height)
        panels.append(panel)
        height += tall
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#222">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "".join(panels) + "</svg>\n"
    )


class _Axes:
    def __init__(self, cells: Sequence[Cell], top: float) -> None:
        self.sizes = sorted({cell.size_bytes for cell in cells})
        times = [time for cell in cells for time in (cell.seconds, cell.bound_s or 0) if time > 0] or [1e-6]
        self.low, self.high = min(times) / 1.3, max(times) * 1.3
        self.top = top + TOP

    def x(self, size: float) -> float:
        low, high, own = (math.log(max(one, 1)) for one in (self.sizes[0], self.sizes[-1], size))
        return LEFT + 14 + ((own - low) / (high - low) if high > low else 0.5) * (WIDTH - LEFT - RIGHT - 28)

    def y(self, seconds: float) -> float:
        share = math.log(max(seconds, self.low) / self.low) / math.log(self.high / self.low)
        return self.top + (1 - share) * (HEIGHT - TOP - BOTTOM)

    def grid(self) -> list[str]:
        parts = []
        few = math.log10(self.high / self.low) <= 2.5
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            for factor in (1, 2, 5) if few else (1,):
                tick = factor * 10.0**power
                if self.low <= tick <= self.high:
                    y = self.y(tick)
                    parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
                    parts.append(
                        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_core.format_duration(tick)}</text>'
                    )
        bottom = self.top + HEIGHT - TOP - BOTTOM
        last = -math.inf
        for size in self.sizes:
            x = self.x(size)
            parts.append(f'<path d="M{x:.1f} {self.top:.1f}V{bottom:.1f}" stroke="#eee"/>')
            if x - last >= 40:
                text = _core.format_size(size) if size else "no data"
                parts.append(f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{text}</text>')
                last = x
        return parts


def _panel(collective: str, cells: Sequence[Cell], top: float) -> tuple[str, float]:
    axes = _Axes(cells, top)
    names = list(dict.fromkeys(cell.algorithm for cell in cells))
    parts = [f'<text x="{LEFT}" y="{top + 20}" font-weight="bold">{escape(collective)}</text>', *axes.grid()]
    bounds = sorted({(cell.size_bytes, cell.bound_s) for cell in cells if cell.bound_s})
    parts += _curve([(axes.x(size), axes.y(bound)) for size, bound in bounds if bound], "#000", "5 4", "bound")
    ends: list[tuple[float, int]] = []
    for index, name in enumerate(names):
        own = sorted((cell for cell in cells if cell.algorithm == name), key=lambda cell: cell.size_bytes)
        points = [(axes.x(cell.size_bytes), axes.y(cell.seconds)) for cell in own]
        parts += _curve(points, COLOURS[index % len(COLOURS)], "", name)
        ends.append((points[-1][1] + 4, index))
    for y, index in _apart(ends, top + HEIGHT - BOTTOM):
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<text x="{WIDTH - RIGHT + 4}" y="{y:.1f}" fill="{colour}">{letter(index)}</text>')
    legend = top + HEIGHT
    for index, name in enumerate([*names, "bound"]):
        y = legend + LINE * index
        dash = ' stroke-dasharray="5 4"' if index == len(names) else ""
        colour = COLOURS[index % len(COLOURS)] if index < len(names) else "#000"
        key = letter(index) if index < len(names) else ""
        parts.append(f'<path d="M{LEFT} {y - 4:.1f}h24" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{LEFT + 32}" y="{y:.1f}">{key} {escape(name)}</text>')
    return "\n".join(parts) + "\n", HEIGHT + LINE * (len(names) + 1) + 8


def _apart(ends: Sequence[tuple[float, int]], bottom: float) -> list[tuple[float, int]]:
    """Return the heights, upper ones first, shifted so that labels don't overlap and none is below `bottom`."""
    placed: list[tuple[float, int]] = []
    for y, index in sorted(ends):
        placed.append((max(y, placed[-1][0] + LETTER) if placed else y, index))
    for at in range(len(placed) - 1, -1, -1):
        lowest = bottom if at == len(placed) - 1 else placed[at + 1][0] - LETTER
        placed[at] = (min(placed[at][0], lowest), placed[at][1])
    return placed


def _curve(points: Sequence[tuple[float, float]], colour: str, dash: str, name: str) -> list[str]:
    if not points:
        return []
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    parts = [f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>']
    if not dash:
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{escape(name)}</title></circle>'
            for x, y in points
        ]
    return parts
