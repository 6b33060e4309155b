"""A measured pattern as a heat map: bandwidth by sender and receiver.

Rows send, columns receive, both in topology order; lines separate the groups, thicker ones at outer levels. The colour
of a field is the rate of its messages, on a logarithmic scale; with many ranks fields have no number in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from palmette.draw import elements
from palmette.patterns.errors import PatternError
from palmette.patterns.rates import Measured
from palmette.patterns.seats import Seats
from palmette.units import bytes_text, rate_text

MOST_RANKS = 512
_NUMBERS_UP_TO = 24
_EMPTY = "#f3f5f9"
_SCALE = ("#e4eef5", "#9ccbe0", "#4a9cc7", "#2274a5", "#12426b")
"""From the slowest to the fastest."""
_LEFT, _TOP, _LEGEND = 96.0, 112.0, 150.0


@dataclass(frozen=True)
class _Field:
    bytes: int
    bytes_per_s: float


def svg(made: Measured, seats: Seats, where: str) -> str:
    """Return the picture. Raises PatternError for too many ranks."""
    if seats.ranks > MOST_RANKS:
        raise PatternError(f"a picture shows {MOST_RANKS} ranks at most, and there are {seats.ranks}; write --csv")
    fields = _fields(made)
    side = max(2.0, min(34.0, 720.0 / seats.ranks))
    extent = side * seats.ranks
    width, height = max(_LEFT + extent + _LEGEND, 640.0), _TOP + extent + 28
    low = min(field.bytes_per_s for field in fields.values())
    high = max(field.bytes_per_s for field in fields.values())
    place = {rank: position for position, rank in enumerate(seats.order)}
    parts = [
        elements.document(width, height),
        f"<title>{escape(made.plan.form.text)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        elements.text(24, 32, made.plan.form.text, 18, elements.INK, weight=600),
        elements.text(24, 52, f"{bytes_text(made.plan.size_bytes)} a message; {where}", 12, elements.MUTED),
        elements.text(_LEFT, 80, "to rank", 12, elements.MUTED),
        elements.text(_LEFT - 12, _TOP - 12, "from", 12, elements.MUTED, "end"),
        f'<rect x="{_LEFT:.1f}" y="{_TOP:.1f}" width="{extent:.1f}" height="{extent:.1f}" fill="{_EMPTY}"/>',
    ]
    for (source, target), field in sorted(fields.items()):
        x, y = _LEFT + place[target] * side, _TOP + place[source] * side
        shade = _shade(field.bytes_per_s, low, high)
        tip = f"{source} to {target}: {bytes_text(field.bytes)} at {rate_text(field.bytes_per_s)}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="{_SCALE[shade]}">'
            f"<title>{tip}</title></rect>"
        )
        if seats.ranks <= _NUMBERS_UP_TO:
            ink = "#ffffff" if shade >= 2 else elements.INK
            parts.append(
                elements.text(x + side / 2, y + side / 2 + 4, _number(field.bytes_per_s, high), 10, ink, "middle")
            )
    parts += _lines(seats, side, extent)
    parts += _labels(seats, side)
    parts += _legend(_LEFT + extent + 24, low, high)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _fields(made: Measured) -> dict[tuple[int, int], _Field]:
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
        return len(_SCALE) // 2
    share = math.log(rate / low) / math.log(high / low)
    return min(int(share * len(_SCALE)), len(_SCALE) - 1)


def _scale_of(high: float) -> float:
    return 10.0 ** (3 * int(math.log10(high) // 3)) if high >= 1 else 1.0


def _number(rate: float, high: float) -> str:
    value = rate / _scale_of(high)
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def _lines(seats: Seats, side: float, extent: float) -> list[str]:
    lines = []
    for depth, level in enumerate(reversed(seats.job.levels)):
        if level.count == seats.ranks or level.count < 2:
            continue
        for group in range(1, level.count):
            at = level.first(group) * side
            stroke = f'stroke="{elements.INK}" stroke-width="{0.6 + 0.7 * depth:.1f}"'
            lines.append(
                f'<path d="M{_LEFT + at:.1f} {_TOP:.1f}v{extent:.1f}M{_LEFT:.1f} {_TOP + at:.1f}h{extent:.1f}"'
                f" {stroke}/>"
            )
    return lines


def _labels(seats: Seats, side: float) -> list[str]:
    """Rank numbers on both sides, as many as fit."""
    every = max(1, math.ceil(14 / side))
    labels = []
    for position, rank in enumerate(seats.order):
        if position % every:
            continue
        middle = (position + 0.5) * side
        labels.append(elements.text(_LEFT + middle, _TOP - 6, str(rank), 10, elements.MUTED, "middle"))
        labels.append(elements.text(_LEFT - 8, _TOP + middle + 4, str(rank), 10, elements.MUTED, "end"))
    return labels


def _legend(x: float, low: float, high: float) -> list[str]:
    scale = _scale_of(high)
    unit = rate_text(scale).split()[-1]
    parts = [elements.text(x, _TOP + 10, f"rate, {unit}", 12, elements.INK, weight=600)]
    if high <= low * 1.05:
        edges = [(len(_SCALE) // 2, f"about {high / scale:.3g}")]
    else:
        steps = [low * (high / low) ** (index / len(_SCALE)) for index in range(len(_SCALE) + 1)]
        edges = [(shade, f"from {steps[shade] / scale:.3g}") for shade in reversed(range(len(_SCALE)))]
    for row, (shade, text) in enumerate(edges):
        y = _TOP + 22 + 22 * row
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="16" height="16" fill="{_SCALE[shade]}"/>')
        parts.append(elements.text(x + 22, y + 12, text, 11, elements.INK))
    return parts
