"""The load of each link before and after mapping, as an SVG picture."""

from __future__ import annotations

from dataclasses import dataclass

from palmette.map.methods import RankOrder
from palmette.map.pattern import Pattern
from palmette.map.text import ratio_text
from palmette.map.traffic import Traffic
from palmette.present.charts import Bar, Bars, swatch
from palmette.present.picture import MARGIN, Picture
from palmette.units import bytes_text, plural, time_text

MOST_LINKS = 40
"""Links drawn of one level: the busiest ones."""


@dataclass(frozen=True)
class _Link:
    """One link: what it carries before and after, in bytes and in the unit of the picture."""

    name: str
    bytes: tuple[float, float]
    value: tuple[float, float]


def svg(pattern: Pattern, placement: str, before: Traffic, mapped: RankOrder) -> str:
    """Return the picture as a complete SVG document: two bars for each link, by its time where capacities are known."""
    timed = before.busiest is not None and before.busiest.seconds is not None
    levels = _links(before, mapped.traffic, timed)
    largest = max((max(link.value) for _, links, _ in levels for link in links), default=0.0) or 1.0
    one, two = before.cost, mapped.traffic.cost
    summary = f"busiest link {ratio_text(one[0], two[0])}, hop-bytes {ratio_text(one[1], two[1])}"
    picture = Picture(f"{pattern.name}: traffic over links before and after")
    picture.head(pattern.name, f"{plural(pattern.ranks, 'rank')}  ·  {summary}")
    bars = Bars(MARGIN + 150, 520.0, largest, 10.0, 6.0)
    y = 112.0
    for name, links, left_out in levels:
        note = f", the {len(links)} busiest" if left_out else ""
        picture.text(MARGIN, y, f"{name}: {plural(len(links) + left_out, 'link')}{note}", 13, weight=700)
        y = bars.draw(picture, [(link.name, _bars(link, timed)) for link in links], y + 12) + 36
    unit = "time of the busier direction" if timed else "bytes in the busier direction"
    entries = [
        (swatch(picture, "alone"), f"placed {placement}"),
        (swatch(picture, "palmette"), f"mapped by {mapped.method}; bars: {unit}"),
    ]
    return picture.document(840, picture.legend(entries, y, 840) + 10)


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


def _bars(link: _Link, timed: bool) -> list[Bar]:
    texts = [
        time_text(value) if timed else bytes_text(size) for size, value in zip(link.bytes, link.value, strict=True)
    ]
    return [
        Bar(value, text if size else "nothing", color)
        for value, size, text, color in zip(link.value, link.bytes, texts, ("alone", "palmette"), strict=True)
    ]
