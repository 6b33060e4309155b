"""A topology as an SVG picture: switches, hosts and the capacity of the links between them."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from palmette.draw import elements
from palmette.show.svg_layout import (
    DOT,
    DOTS_PER_ROW,
    ICON,
    PADDING,
    STACK,
    TEXT_SIZE,
    TITLE_SIZE,
    Card,
    clip,
    layout,
    text_width,
)
from palmette.topology.model import Topology
from palmette.units import plural, rate_text

MARGIN = 36.0
HEADER = 84.0
LEGEND_ROW = 24.0
MOST_IN_LEGEND = 6
LEAST_WIDTH = 640.0

_FILL = {"root": ("#1f2a44", "#ffffff"), "node": ("#ffffff", "#1f2a44"), "leaf": ("#dff1ec", "#12463a")}
_OTHER_FILL = ("#e4e8f7", "#26315f")
_EDGE = {"root": "#1f2a44", "node": "#b9c1cf", "leaf": "#4fa58e"}
_OTHER_EDGE = "#7d8bc4"
_LINE = "#8391b0"


def svg(topology: Topology) -> str:
    """The picture as a complete SVG document; large groups are folded so that it stays readable."""
    root = layout(topology)
    cards = root.walk()
    right = max(
        max(card.x + card.width, card.x + card.width / 2 + text_width(card.rate, TEXT_SIZE) / 2) for card in cards
    )
    left = min(min(card.x, card.x + card.width / 2 - text_width(card.rate, TEXT_SIZE) / 2) for card in cards)
    bottom = max(card.y + card.height for card in cards)
    width = max(right - left + STACK * 2 + 2 * MARGIN, LEAST_WIDTH)
    for card in cards:
        card.x += (width - (right - left)) / 2 - left
        card.y += HEADER
    scale = _Scale(cards)
    legend_top = HEADER + bottom + 40
    legend, legend_height = _legend(scale, cards, legend_top, width)
    height = legend_top + legend_height + MARGIN / 2
    parts = [
        elements.document(width, height),
        f"<title>{escape(topology.name)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        elements.text(MARGIN, 40, clip(topology.name, 22, width - 2 * MARGIN), 22, "#1f2a44", weight=700),
        elements.text(MARGIN, 62, clip(_subtitle(topology), 12, width - 2 * MARGIN), 12, elements.MUTED),
    ]
    parts += [_link(card, child, scale) for card in cards for child in card.children]
    parts += [_draw(card) for card in cards]
    parts += [_label(child) for card in cards for child in card.children if child.rate]
    return "\n".join([*parts, *legend, "</svg>", ""])


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


def _colors(kind: str) -> tuple[str, str, str]:
    fill, ink = _FILL.get(kind, _OTHER_FILL)
    return fill, ink, _EDGE.get(kind, _OTHER_EDGE)


def _draw(card: Card) -> str:
    fill, ink, edge = _colors(card.kind)
    parts = []
    if card.stacked:
        for step in (2, 1):
            parts.append(_box(card.x + step * STACK, card.y + step * STACK, card.width, card.height, fill, edge))
    parts.append(_box(card.x, card.y, card.width, card.height, fill, edge))
    middle = card.x + card.width / 2
    y = card.y + PADDING + TITLE_SIZE - 2
    parts.append(elements.text(middle, y, card.title, TITLE_SIZE, ink, "middle", 600))
    for line in card.lines:
        y += TEXT_SIZE + 4
        parts.append(
            elements.text(middle, y, line, TEXT_SIZE, ink if card.kind == "root" else elements.MUTED, "middle")
        )
    if card.kind == "node":
        parts += _dots(card, y + 10)
    elif card.icons:
        parts += _switches(card, y + 9, ink)
    return "".join(parts)


def _box(x: float, y: float, width: float, height: float, fill: str, edge: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7" fill="{fill}" '
        f'stroke="{edge}" stroke-width="1.2"/>'
    )


def _dots(card: Card, top: float) -> list[str]:
    parts = []
    columns = min(card.icons, DOTS_PER_ROW)
    start = card.x + card.width / 2 - columns * DOT / 2
    for index in range(card.icons):
        row, column = divmod(index, DOTS_PER_ROW)
        faded = ' opacity="0.35"' if card.more_icons and index >= card.icons - 3 else ""
        parts.append(
            f'<rect x="{start + column * DOT + 1.5:.1f}" y="{top + row * DOT:.1f}" width="8" height="8" rx="2" '
            f'fill="#8793ab"{faded}/>'
        )
    return parts


def _switches(card: Card, top: float, ink: str) -> list[str]:
    start = card.x + card.width / 2 - card.icons * ICON / 2
    parts = []
    for index in range(card.icons):
        x = start + index * ICON + 1.5
        faded = ' opacity="0.35"' if card.more_icons and index == card.icons - 1 else ""
        fill = "#e8a33d" if card.folded.can_reduce else ink
        parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="14" height="7" rx="2" fill="{fill}"{faded}/>')
    return parts


def _link(parent: Card, child: Card, scale: _Scale) -> str:
    x1, y1 = parent.x + parent.width / 2, parent.y + parent.height + (2 * STACK if parent.stacked else 0)
    x2, y2 = child.x + child.width / 2, child.y
    # The bend is above the row of labels, which stand right over the cards.
    bend = max(y1 + 10, y2 - 46)
    dash = "" if child.folded.rates[0] is not None else ' stroke-dasharray="4 4"'
    width = scale.width(child.folded.rates[1])
    return (
        f'<path d="M{x1:.1f} {y1 - 1:.1f} V{bend:.1f} H{x2:.1f} V{y2:.1f}" fill="none" stroke="{_LINE}" '
        f'stroke-width="{width:.1f}" stroke-linejoin="round"{dash}/>'
    )


def _label(card: Card) -> str:
    width = text_width(card.rate, TEXT_SIZE) + 12
    middle, y = card.x + card.width / 2, card.y - 22
    return (
        f'<rect x="{middle - width / 2:.1f}" y="{y - 11:.1f}" width="{width:.1f}" height="17" rx="8" fill="#ffffff" '
        f'stroke="{_LINE}" stroke-width="0.8"/>'
        + elements.text(middle, y + 1.5, card.rate, TEXT_SIZE, "#1f2a44", "middle")
    )


def _legend(scale: _Scale, cards: list[Card], top: float, width: float) -> tuple[list[str], float]:
    """The legend's elements and its height: line widths with their capacities, then the symbols."""
    entries: list[tuple[str, str]] = []
    values = scale.values
    if len(values) > MOST_IN_LEGEND:
        picked = [round(index * (len(values) - 1) / (MOST_IN_LEGEND - 1)) for index in range(MOST_IN_LEGEND)]
        values = [values[index] for index in picked]
    seen = set()
    for value in values:
        if rate_text(value) not in seen:
            seen.add(rate_text(value))
            entries.append((f"line:{scale.width(value):.1f}", rate_text(value)))
    if any(child.folded.rates[0] is None for card in cards for child in card.children):
        entries.append(("dash", "capacity unknown"))
    if any(card.icons and card.kind != "node" and not card.folded.can_reduce for card in cards):
        entries.append(("switch", "switch"))
    if any(card.icons and card.kind != "node" and card.folded.can_reduce for card in cards):
        entries.append(("reduce", "switch that can reduce"))
    if any(card.kind == "node" for card in cards):
        entries.append(("host", "host"))
    if any(card.stacked for card in cards):
        entries.append(("stack", "several groups, drawn once"))
    parts = [
        f'<line x1="{MARGIN:.1f}" y1="{top - 14:.1f}" x2="{width - MARGIN:.1f}" y2="{top - 14:.1f}" stroke="#dfe3ea"/>',
        elements.text(
            MARGIN,
            top + 9,
            "Capacity of a link, each direction, parallel cables summed",
            11,
            elements.MUTED,
            weight=600,
        ),
    ]
    x, y = MARGIN, top + 12 + LEGEND_ROW
    for symbol, text in entries:
        need = 40 + text_width(text, TEXT_SIZE) + 18
        if x + need > width - MARGIN + 18 and x > MARGIN:
            x, y = MARGIN, y + LEGEND_ROW
        parts.append(_symbol(symbol, x, y) + elements.text(x + 38, y + 4, text, TEXT_SIZE, "#1f2a44"))
        x += need
    return parts, y - top + 16


def _symbol(symbol: str, x: float, y: float) -> str:
    if symbol.startswith("line:"):
        return f'<path d="M{x:.1f} {y:.1f} h30" stroke="{_LINE}" stroke-width="{symbol[5:]}"/>'
    if symbol == "dash":
        return f'<path d="M{x:.1f} {y:.1f} h30" stroke="{_LINE}" stroke-width="1.5" stroke-dasharray="4 4"/>'
    if symbol in ("switch", "reduce"):
        fill = "#e8a33d" if symbol == "reduce" else "#12463a"
        return f'<rect x="{x + 8:.1f}" y="{y - 3.5:.1f}" width="14" height="7" rx="2" fill="{fill}"/>'
    if symbol == "host":
        return f'<rect x="{x + 11:.1f}" y="{y - 4:.1f}" width="8" height="8" rx="2" fill="#8793ab"/>'
    fill, _, edge = _colors("leaf")
    return _box(x + 8, y - 4, 20, 10, fill, edge) + _box(x + 4, y - 8, 20, 10, fill, edge)
