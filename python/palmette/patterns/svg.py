"""A measured pattern as a heat map: bandwidth by sender and receiver.

Rows send, columns receive, both in topology order; lines separate the groups, thicker ones at outer levels. The color
of a field is the rate of its messages, on a logarithmic scale; with many ranks fields have no number in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from palmette.patterns.errors import PatternError
from palmette.patterns.rates import PatternResult
from palmette.patterns.seats import Seats
from palmette.present.charts import heat_legend
from palmette.present.colors import heat
from palmette.present.picture import MARGIN, Picture
from palmette.units import bytes_text, rate_text

MOST_RANKS = 512
_NUMBERS_UP_TO = 24
_SHADES = 5
"""From the slowest to the fastest."""
_LEFT, _TOP = 96.0, 116.0


@dataclass(frozen=True)
class _Field:
    bytes: int
    bytes_per_s: float


def svg(made: PatternResult, seats: Seats, where: str) -> str:
    """Return the picture. Raises PatternError for too many ranks."""
    if seats.ranks > MOST_RANKS:
        raise PatternError(f"a picture shows {MOST_RANKS} ranks at most, and there are {seats.ranks}; write --csv")
    fields = _fields(made)
    side = max(2.0, min(34.0, 720.0 / seats.ranks))
    extent = side * seats.ranks
    low = min(field.bytes_per_s for field in fields.values())
    high = max(field.bytes_per_s for field in fields.values())
    place = {rank: position for position, rank in enumerate(seats.order)}
    picture = Picture(made.plan.form.text)
    picture.head(made.plan.form.text, f"{bytes_text(made.plan.size_bytes)} a message; {where}")
    picture.text(_LEFT, _TOP - 24, "to rank", color="muted")
    picture.text(_LEFT - 12, _TOP - 12, "from", color="muted", anchor="end")
    picture.rect(_LEFT, _TOP, extent, extent, "soft")
    for (source, target), field in sorted(fields.items()):
        x, y = _LEFT + place[target] * side, _TOP + place[source] * side
        color = _color(_shade(field.bytes_per_s, low, high))
        tip = f"{source} to {target}: {bytes_text(field.bytes)} at {rate_text(field.bytes_per_s)}"
        picture.rect(x, y, side, side, color, tip=tip)
        if seats.ranks <= _NUMBERS_UP_TO:
            number = _number(field.bytes_per_s, high)
            picture.text(x + side / 2, y + side / 2 + 4, number, 10, f"on_{color}", "middle")
    _lines(picture, seats, side, extent)
    _labels(picture, seats, side)
    _legend(picture, _LEFT + extent + 24, low, high)
    return picture.document(_LEFT + extent + MARGIN, max(_TOP + extent + 28, _TOP + 160))


def _fields(made: PatternResult) -> dict[tuple[int, int], _Field]:
    """Bytes of each pair, and their rate: the slowest message of each step counts, steps add up."""
    sizes: dict[tuple[int, int], int] = {}
    times: dict[tuple[int, int, int], float] = {}
    for one, seconds in zip(made.plan.transfers, made.message_s, strict=True):
        pair = (one.source, one.target)
        sizes[pair] = sizes.get(pair, 0) + one.bytes
        key = (*pair, one.step)
        times[key] = max(times.get(key, 1e-9), seconds)
    totals: dict[tuple[int, int], float] = {}
    for (source, target, _), seconds in times.items():
        totals[source, target] = totals.get((source, target), 0.0) + seconds
    return {pair: _Field(size, size / totals[pair]) for pair, size in sizes.items()}


def _shade(rate: float, low: float, high: float) -> int:
    if high <= low * 1.05:
        return _SHADES // 2
    return min(int(math.log(rate / low) / math.log(high / low) * _SHADES), _SHADES - 1)


def _color(shade: int) -> str:
    return heat((shade + 1) / _SHADES * 0.9)


def _scale_of(high: float) -> float:
    return 10.0 ** (3 * int(math.log10(high) // 3)) if high >= 1 else 1.0


def _number(rate: float, high: float) -> str:
    value = rate / _scale_of(high)
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def _lines(picture: Picture, seats: Seats, side: float, extent: float) -> None:
    for depth, level in enumerate(reversed(seats.job.levels)):
        if level.count < 2 or level.count == seats.ranks:
            continue
        for group in range(1, level.count):
            at = level.first(group) * side
            way = f"M{_LEFT + at:.1f} {_TOP:.1f}v{extent:.1f}M{_LEFT:.1f} {_TOP + at:.1f}h{extent:.1f}"
            picture.path(way, "ink", 0.6 + 0.7 * depth)


def _labels(picture: Picture, seats: Seats, side: float) -> None:
    """Rank numbers on both sides, as many as fit."""
    every = max(1, math.ceil(14 / side))
    for position, rank in enumerate(seats.order):
        if position % every == 0:
            middle = (position + 0.5) * side
            picture.text(_LEFT + middle, _TOP - 6, str(rank), 10, "muted", "middle")
            picture.text(_LEFT - 8, _TOP + middle + 4, str(rank), 10, "muted", "end")


def _legend(picture: Picture, x: float, low: float, high: float) -> None:
    scale = _scale_of(high)
    picture.text(x, _TOP + 10, f"rate, {rate_text(scale).split()[-1]}", weight=600)
    if high <= low * 1.05:
        steps = [(_color(_SHADES // 2), f"about {high / scale:.3g}")]
    else:
        edges = [low * (high / low) ** (shade / _SHADES) / scale for shade in range(_SHADES)]
        steps = [(_color(shade), f"from {edges[shade]:.3g}") for shade in reversed(range(_SHADES))]
    heat_legend(picture, steps, x, _TOP + 22)
