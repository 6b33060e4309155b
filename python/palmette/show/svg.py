"""A topology as an SVG picture: switches, hosts and the capacity of the links between them."""

from __future__ import annotations

import math
from functools import partial

from palmette.present.charts import stroke
from palmette.present.picture import MARGIN, Picture, text_width
from palmette.show.svg_layout import DOT, DOTS_PER_ROW, ICON, PADDING, STACK, TEXT_SIZE, TITLE_SIZE, Card, layout
from palmette.topology.model import Topology
from palmette.units import plural, rate_text

_HEADER = 84.0
_MOST_RATES = 6
"""Line widths in the legend."""
_LEAST_WIDTH = 640.0
_UNKNOWN = "4 4"
_COLORS = {"root": ("root", "on_root", "root"), "node": ("card", "ink", "line"), "leaf": ("leaf", "ink", "leaf_edge")}
_OTHER = ("group", "ink", "group_edge")
"""Fill, text and edge of a card by its kind."""


def svg(topology: Topology) -> str:
    """The picture as a complete SVG document; large groups are folded so that it stays readable."""
    root = layout(topology)
    cards = root.walk()
    halves = [(card, text_width(card.rate, TEXT_SIZE) / 2) for card in cards]
    right = max(max(card.x + card.width, card.x + card.width / 2 + half) for card, half in halves)
    left = min(min(card.x, card.x + card.width / 2 - half) for card, half in halves)
    bottom = max(card.y + card.height for card in cards)
    width = max(right - left + STACK * 2 + 2 * MARGIN, _LEAST_WIDTH)
    for card in cards:
        card.x += (width - (right - left)) / 2 - left
        card.y += _HEADER
    scale = _Scale(cards)
    picture = Picture(topology.name)
    picture.head(topology.name, _subtitle(topology), width - 2 * MARGIN)
    for card in cards:
        for child in card.children:
            _link(picture, card, child, scale)
    for card in cards:
        _draw(picture, card)
    for card in cards:
        if card is not root and card.rate:
            _label(picture, card)
    return picture.document(width, _legend(picture, scale, cards, _HEADER + bottom + 40, width) + MARGIN / 2)


class _Scale:
    """Width of a line by the logarithm of its capacity, over the capacities in the picture."""

    def __init__(self, cards: list[Card]) -> None:
        self.values = sorted({rate for card in cards for rate in card.folded.rates if rate is not None})

    def width(self, rate: float | None) -> float:
        if rate is None or not self.values:
            return 1.5
        low, high = math.log(self.values[0]), math.log(self.values[-1])
        return 2.0 + (7.0 * (math.log(rate) - low) / (high - low) if high > low else 1.5)


def _subtitle(topology: Topology) -> str:
    hosts = sum(1 for _ in topology.machine.tree.hosts())
    parts = [plural(hosts, "host")]
    if topology.fabric is not None:
        parts.append(plural(len(topology.fabric.switches), "switch"))
        parts.append(plural(sum(link.count for link in topology.fabric.links), "cable"))
        if topology.fabric.unnamed_adapters:
            parts.append(f"{plural(len(topology.fabric.unnamed_adapters), 'adapter')} without a host\u2019s name")
    return "  ·  ".join(parts)


def _draw(picture: Picture, card: Card) -> None:
    fill, ink, edge = _COLORS.get(card.kind, _OTHER)
    for step in (2, 1, 0) if card.stacked else (0,):
        at = (card.x + step * STACK, card.y + step * STACK)
        picture.rect(*at, card.width, card.height, fill, edge=edge, edge_width=1.2, radius=7)
    middle = card.x + card.width / 2
    y = card.y + PADDING + TITLE_SIZE - 2
    picture.text(middle, y, card.title, TITLE_SIZE, ink, "middle", 600)
    for line in card.lines:
        y += TEXT_SIZE + 4
        picture.text(middle, y, line, TEXT_SIZE, ink if card.kind == "root" else "muted", "middle")
    if card.kind == "node":
        columns = min(card.icons, DOTS_PER_ROW)
        for index in range(card.icons):
            row, column = divmod(index, DOTS_PER_ROW)
            faded = 0.35 if card.more_icons and index >= card.icons - 3 else 1.0
            x = middle + (column - columns / 2) * DOT + 1.5
            picture.rect(x, y + 10 + row * DOT, 8, 8, "device", radius=2, opacity=faded)
    else:
        for index in range(card.icons):
            faded = 0.35 if card.more_icons and index == card.icons - 1 else 1.0
            color = "reducing" if card.folded.can_reduce else ink
            x = middle + (index - card.icons / 2) * ICON + 1.5
            picture.rect(x, y + 9, 14, 7, color, radius=2, opacity=faded)


def _link(picture: Picture, parent: Card, child: Card, scale: _Scale) -> None:
    x1, y1 = parent.x + parent.width / 2, parent.y + parent.height + (2 * STACK if parent.stacked else 0)
    x2, y2 = child.x + child.width / 2, child.y
    # The bend is above the row of labels, which stand right over the cards.
    bend = max(y1 + 10, y2 - 46)
    way = f"M{x1:.1f} {y1 - 1:.1f}V{bend:.1f}H{x2:.1f}V{y2:.1f}"
    picture.path(way, "link", scale.width(child.folded.rates[1]), "" if child.folded.rates[0] is not None else _UNKNOWN)


def _label(picture: Picture, card: Card) -> None:
    width = text_width(card.rate, TEXT_SIZE) + 12
    middle, y = card.x + card.width / 2, card.y - 22
    picture.rect(middle - width / 2, y - 11, width, 17, "card", edge="link", edge_width=0.8, radius=8)
    picture.text(middle, y + 1.5, card.rate, TEXT_SIZE, anchor="middle")


def _legend(picture: Picture, scale: _Scale, cards: list[Card], top: float, width: float) -> float:
    """Line widths with their capacities, then the symbols; return the height below."""
    values = scale.values
    if len(values) > _MOST_RATES:
        values = [values[round(index * (len(values) - 1) / (_MOST_RATES - 1))] for index in range(_MOST_RATES)]
    entries = [
        (stroke(picture, "link", scale.width(value)), text)
        for text, value in {rate_text(value): value for value in reversed(values)}.items()
    ][::-1]
    if any(child.folded.rates[0] is None for card in cards for child in card.children):
        entries.append((stroke(picture, "link", 1.5, _UNKNOWN), "capacity unknown"))
    switches = {card.folded.can_reduce for card in cards if card.icons and card.kind != "node"}
    for reduces, name in ((False, "switch"), (True, "switch that can reduce")):
        if reduces in switches:
            color = "reducing" if reduces else "ink"
            entries.append((partial(_switch, picture, color), name))
    if any(card.kind == "node" for card in cards):
        entries.append((lambda x, y: picture.rect(x + 11, y - 4, 8, 8, "device", radius=2), "host"))
    if any(card.stacked for card in cards):
        entries.append((partial(_stack, picture), "several groups, drawn once"))
    picture.line(MARGIN, top - 14, width - MARGIN, top - 14, "line")
    picture.text(MARGIN, top + 9, "Capacity of a link, each direction, parallel cables summed", 11, "muted", weight=600)
    return picture.legend(entries, top + 34, width - MARGIN)


def _switch(picture: Picture, color: str, x: float, y: float) -> None:
    picture.rect(x + 8, y - 3.5, 14, 7, color, radius=2)


def _stack(picture: Picture, x: float, y: float) -> None:
    for right, down in ((8, -4), (4, -8)):
        picture.rect(x + right, y + down, 20, 10, "leaf", edge="leaf_edge", radius=3)
