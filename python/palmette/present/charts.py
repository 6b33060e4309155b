"""Charts: bars over one scale, and curves over two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from palmette import _core
from palmette.present.picture import LEGEND_ROW, Picture

DASHES = "5 4"
_MOST_TICKS = 8


@dataclass(frozen=True)
class Bar:
    """A value with its label, and an interval around it where `high` is given."""

    value: float
    label: str
    color: str = "palmette"
    low: float = 0.0
    high: float | None = None
    tip: str = ""


@dataclass(frozen=True)
class Bars:
    """How bars lie: names end left of `left`; a value of `most` is `length` pixels long."""

    left: float
    length: float
    most: float
    thick: float = 11.0
    gap: float = 12.0
    """Pixels between groups of bars."""

    def x(self, value: float) -> float:
        """Return where a value ends."""
        return self.left + self.length * value / self.most if self.most > 0 else self.left

    def draw(self, picture: Picture, groups: Sequence[tuple[str, Sequence[Bar]]], y: float) -> float:
        """Draw the bars of each (name, bars); return the height below."""
        for name, bars in groups:
            middle = y + len(bars) * (self.thick + 2) / 2 + 3
            picture.text(self.left - 10, middle, name, anchor="end", most=self.left - 14)
            for bar in bars:
                end = self.x(bar.value)
                if bar.value > 0:
                    width = max(end - self.left, 1.0)
                    picture.rect(self.left, y, width, self.thick, bar.color, tip=bar.tip)
                if bar.high is not None:
                    center = y + self.thick / 2
                    picture.line(self.x(bar.low), center, self.x(bar.high), center, "ink", 1.5)
                    end = max(end, self.x(bar.high))
                picture.text(end + 6, y + self.thick / 2 + 4, bar.label, 11)
                y += self.thick + 2
            y += self.gap
        return y - self.gap

    def limit(self, picture: Picture, value: float, top: float, bottom: float, words: str) -> None:
        """Draw a dashed line at a value that nothing can be below."""
        x = self.x(value)
        picture.line(x, top, x, bottom, "bound", 1.5, DASHES)
        picture.text(x, bottom + 13, words, 11, "bound", "middle")

    def axis(self, picture: Picture, top: float, bottom: float, text: Callable[[float], str]) -> None:
        """Draw lines at round values, with their texts below."""
        step = 10.0 ** math.floor(math.log10(self.most / _MOST_TICKS))
        step *= next(factor for factor in (1, 2, 2.5, 5, 10) if self.most / (step * factor) <= _MOST_TICKS)
        for number in range(math.floor(self.most / step) + 1):
            x = self.x(number * step)
            picture.line(x, top, x, bottom, "line")
            picture.text(x, bottom + 15, text(number * step), 11, "muted", "middle")


@dataclass(frozen=True)
class Curve:
    """Points (x, y), each with its tip; `band`: (low, high) around each. Two markers are told apart without color."""

    points: Sequence[tuple[float, float]]
    color: str
    tips: Sequence[str] = ()
    band: Sequence[tuple[float, float]] = ()
    dashes: str = ""
    square: bool = False
    name: str = ""
    """Written behind its last point."""


@dataclass(frozen=True)
class LogLog:
    """Two logarithmic axes; x: sizes in bytes, each with a line; y: seconds."""

    xs: Sequence[float]
    low: float
    high: float
    left: float
    top: float
    width: float
    height: float
    _ends: list[tuple[float, str, str]] = field(default_factory=list)

    @staticmethod
    def limits(times: Sequence[float]) -> tuple[float, float]:
        """Return the ends of an axis that shows all times above 0."""
        positive = [time for time in times if time > 0] or [1e-3]
        return min(positive) / 1.3, max(positive) * 1.3

    def x(self, size: float) -> float:
        """Return where a size is; a barrier has none, and one point in the middle."""
        low, high, own = (math.log(max(one, 1)) for one in (self.xs[0], self.xs[-1], size))
        # Air at both ends, so that points don't sit on the frame.
        return self.left + 12 + ((own - low) / (high - low) if high > low else 0.5) * (self.width - 24)

    def y(self, seconds: float) -> float:
        """Return where a time is."""
        share = math.log(max(seconds, self.low) / self.low) / math.log(self.high / self.low)
        return self.top + (1 - share) * self.height

    def grid(self, picture: Picture) -> None:
        """Draw the lines and their texts: powers of ten, and 2 and 5 where few fit."""
        few = math.log10(self.high / self.low) <= 2.5
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            for factor in (1, 2, 5) if few else (1,):
                tick = factor * 10.0**power
                if self.low <= tick <= self.high:
                    y = self.y(tick)
                    picture.line(self.left, y, self.left + self.width, y, "line")
                    picture.text(self.left - 6, y + 4, _core.format_duration(tick), 11, "muted", "end")
        bottom, last = self.top + self.height, -math.inf
        for size in self.xs:
            x = self.x(size)
            picture.line(x, self.top, x, bottom, "line")
            if x - last >= 40:
                picture.text(x, bottom + 16, _core.format_size(int(size)) if size else "no data", 11, "muted", "middle")
                last = x

    def draw(self, picture: Picture, curve: Curve) -> None:
        """Draw a curve; a single point has no line."""
        places = [(self.x(size), self.y(seconds)) for size, seconds in curve.points]
        if len(places) > 1 and curve.band:
            edges = [
                [(x, self.y(one[side])) for (x, _), one in zip(places, curve.band, strict=True)] for side in (0, 1)
            ]
            picture.polygon([*edges[1], *reversed(edges[0])], curve.color, 0.2)
        if len(places) > 1 or curve.dashes or not curve.tips:
            picture.polyline(places, curve.color, 1.6 if curve.dashes else 2.2, curve.dashes)
        for (x, y), tip in zip(places, curve.tips, strict=False):
            with picture.group(tip):
                if curve.square:
                    picture.rect(x - 3.2, y - 3.2, 6.4, 6.4, curve.color)
                else:
                    picture.circle(x, y, 2.0 if curve.dashes else 3.6, curve.color)
                picture.circle(x, y, 10, curve.color, opacity=0)  # easier to hit
        if curve.name and places:
            self._ends.append((places[-1][1] + 4, curve.name, curve.color))

    def names(self, picture: Picture) -> None:
        """Write the curves' names behind their ends, one below the other."""
        ends = sorted(self._ends)
        heights: list[float] = []
        for y, _, _ in ends:
            heights.append(max(y, heights[-1] + 12) if heights else y)
        lowest = self.top + self.height
        for at in range(len(heights) - 1, -1, -1):
            heights[at] = min(heights[at], lowest)
            lowest = heights[at] - 12
        for y, (_, name, color) in zip(heights, ends, strict=True):
            picture.text(self.left + self.width + 4, y, name, color=color)


def swatch(picture: Picture, color: str) -> Callable[[float, float], None]:
    """Return the symbol of a legend for bars of a color."""
    return lambda x, y: picture.rect(x + 12, y - 5, 18, 10, color, radius=1.5)


def stroke(picture: Picture, color: str, width: float = 2.2, dashes: str = "") -> Callable[[float, float], None]:
    """Return the symbol of a legend for lines of a color."""
    return lambda x, y: picture.line(x, y, x + 30, y, color, width, dashes)


def heat_legend(picture: Picture, steps: Sequence[tuple[str, str]], x: float, y: float) -> None:
    """Draw the colors of a heat map, one (color, text) below the other."""
    for color, words in steps:
        picture.rect(x, y, 16, 16, color)
        picture.text(x + 22, y + 12, words, 11)
        y += LEGEND_ROW
