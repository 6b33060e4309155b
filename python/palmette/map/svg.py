"""The load of each link before and after mapping, as an SVG picture."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from palmette.draw import elements
from palmette.map.methods import Mapped
from palmette.map.pattern import Pattern
from palmette.map.text import ratio_text, time_text
from palmette.map.traffic import Traffic
from palmette.units import bytes_text, plural

MOST_LINKS = 40
"""Links drawn of one level: the busiest ones."""

_GRID = "#e3e7ee"
_BEFORE = "#b9c1cf"
_MARGIN, _LEFT, _BARS, _RIGHT = 36.0, 150.0, 520.0, 150.0
_ROW, _BAR = 30.0, 10.0


@dataclass(frozen=True)
class _Link:
    """One link: what it carries before and after, in bytes and in the unit of the picture."""

    name: str
    bytes: tuple[float, float]
    value: tuple[float, float]


def svg(pattern: Pattern, placement: str, before: Traffic, mapped: Mapped) -> str:
    """Return the picture as a complete SVG document: two bars for each link, by its time where capacities are known."""
    timed = before.busiest is not None and before.busiest.seconds is not None
    levels = _links(before, mapped.traffic, timed)
    largest = max((max(link.value) for _, links, _ in levels for link in links), default=0.0) or 1.0
    width = _MARGIN * 2 + _LEFT + _BARS + _RIGHT
    parts: list[str] = []
    y = 116.0
    for name, links, left_out in levels:
        note = f", the {len(links)} busiest" if left_out else ""
        parts.append(
            elements.text(
                _MARGIN, y, f"{name}: {plural(len(links) + left_out, 'link')}{note}", 13, elements.INK, weight=700
            )
        )
        y += 12
        for link in links:
            parts += _bars(link, y, largest, timed)
            y += _ROW
        y += 22
    unit = "time of the busier direction" if timed else "bytes in the busier direction"
    y += 2
    parts += [
        _rect(_MARGIN, y - 9, 18, _BAR, _BEFORE),
        elements.text(_MARGIN + 26, y, f"placed {placement}", 12, elements.MUTED),
        _rect(_MARGIN + 280, y - 9, 18, _BAR, elements.BLUE),
        elements.text(_MARGIN + 306, y, f"mapped by {mapped.method}", 12, elements.MUTED),
        elements.text(width - _MARGIN, y, f"bars: {unit}", 12, elements.MUTED, "end"),
    ]
    height = y + _MARGIN
    one, two = before.cost, mapped.traffic.cost
    summary = f"busiest link {ratio_text(one[0], two[0])}, hop-bytes {ratio_text(one[1], two[1])}"
    head = [
        elements.document(width, height),
        f"<title>{escape(pattern.name)}: traffic over links before and after</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        elements.text(
            _MARGIN,
            42,
            pattern.name if len(pattern.name) < 60 else pattern.name[:59] + "…",
            22,
            elements.INK,
            weight=700,
        ),
        elements.text(_MARGIN, 66, f"{plural(pattern.ranks, 'rank')}  ·  {summary}", 13, elements.MUTED),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def _links(before: Traffic, after: Traffic, timed: bool) -> list[tuple[str, list[_Link], int]]:
    """Return (level, links, links left out) for each level."""
    fastest = max((float(level.capacity.max()) for level in before.levels), default=0.0)
    levels = []
    for old, new in zip(before.levels, after.levels, strict=True):
        links = []
        for name, one, two, capacity in zip(old.groups, old.busier, new.busier, old.capacity, strict=True):
            per = (capacity if capacity > 0 else fastest) if timed else 1.0
            links.append(_Link(name, (float(one), float(two)), (float(one / per), float(two / per))))
        kept = links
        if len(links) > MOST_LINKS:
            busiest = sorted(range(len(links)), key=lambda i: -max(links[i].value))[:MOST_LINKS]
            kept = [links[i] for i in sorted(busiest)]
        levels.append((old.name, kept, len(links) - len(kept)))
    return levels


def _bars(link: _Link, y: float, largest: float, timed: bool) -> list[str]:
    left = _MARGIN + _LEFT
    name = link.name if len(link.name) <= 20 else link.name[:19] + "…"
    parts = [
        elements.text(left - 12, y + 15, name, 12, elements.INK, "end"),
        f'<line x1="{left:.1f}" y1="{y + _ROW - 1:.1f}" x2="{left + _BARS:.1f}" y2="{y + _ROW - 1:.1f}"'
        f' stroke="{_GRID}"/>',
    ]
    for index, color in enumerate((_BEFORE, elements.BLUE)):
        length = link.value[index] / largest * _BARS
        top = y + 3 + index * (_BAR + 1)
        if length > 0:
            parts.append(_rect(left, top, max(length, 1.0), _BAR, color))
        value = time_text(link.value[index]) if timed else bytes_text(link.bytes[index])
        parts.append(
            elements.text(left + length + 8, top + 9, value if link.bytes[index] else "nothing", 10, elements.MUTED)
        )
    return parts


def _rect(x: float, y: float, width: float, height: float, color: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="1.5" fill="{color}"/>'
