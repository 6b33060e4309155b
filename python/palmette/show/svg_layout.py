"""Places the cards of a picture: a folded tree from the root at the top to hosts at the bottom."""

from __future__ import annotations

from dataclasses import dataclass, field

from palmette.present.picture import clip, text_width
from palmette.show.fold import Folder, SiblingGroup
from palmette.topology.model import Topology
from palmette.units import plural, rate_text

MOST_CARDS = 9
"""Cards side by side that are still readable."""
GAP_X = 22.0
GAP_Y = 74.0
PADDING = 12.0
TITLE_SIZE = 13.0
TEXT_SIZE = 11.0
DOTS_PER_ROW = 12
MOST_DOTS = 48
DOT = 11.0
ICON = 17.0
STACK = 5.0


@dataclass(slots=True)
class Card:
    """A group, or many equal ones, as a box. x and y are its upper left corner."""

    kind: str
    title: str
    lines: list[str]
    folded: SiblingGroup
    width: float
    height: float
    icons: int = 0
    more_icons: bool = False
    rate: str = ""
    children: list[Card] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def stacked(self) -> bool:
        return self.kind != "node" and self.folded.count > 1

    def walk(self) -> list[Card]:
        cards = [self]
        for child in self.children:
            cards += child.walk()
        return cards


def layout(topology: Topology) -> Card:
    """The card of the root with all cards below, placed from (0, 0)."""
    folder = Folder(topology.machine.tree)
    choices = [folder.fold(equal=False), folder.fold(), folder.fold(by_level_above=4), folder.fold(by_level_above=1)]
    folded = next((choice for choice in choices if _widest(choice) <= MOST_CARDS), choices[-1])
    root = _card(folded)
    _place(root, 0.0, _subtree_width(root), 0.0)
    _align_rows(root)
    return root


def _widest(folded: SiblingGroup) -> int:
    return sum(_widest(child) for child in folded.children) or 1


def _card(folded: SiblingGroup) -> Card:
    kind = folded.level or "root"
    if kind == "node":
        return _host_card(folded)
    names = folded.names
    title = f"{folded.count_text} × {kind}" if folded.count > 1 else names
    lines = [names] if folded.count > 1 else ([kind] if folded.level else [])
    few, many = folded.hosts_each
    hosts = plural(few, "host") if few == many else f"{few:,} to {many:,} hosts"
    lines.append(hosts + (" each" if folded.count > 1 else ""))
    low, switches = folded.switches_each
    if switches > 1:
        text = plural(switches, "switch") if low == switches else f"{low} to {switches} switches"
        lines.append(text + (" each" if folded.count > 1 else ""))
    icons = min(switches, 8)
    width = max(_width(title, lines), 2 * PADDING + icons * ICON)
    height = 2 * PADDING + TITLE_SIZE + len(lines) * (TEXT_SIZE + 4) + (16 if icons else 0)
    card = Card(kind, clip(title, TITLE_SIZE, width - 2 * PADDING), lines, folded, width, height)
    card.lines = [clip(line, TEXT_SIZE, width - 2 * PADDING) for line in lines]
    card.icons, card.more_icons = icons, switches > icons
    card.rate = _rate(folded)
    card.children = [_card(child) for child in folded.children]
    return card


def _host_card(folded: SiblingGroup) -> Card:
    count = folded.count
    title = (plural(count, "host") if folded.each[0] == count else f"{folded.count_text} hosts") + (
        " in each" if len(folded.members) > count else ""
    )
    lines = [folded.names]
    inside = folded.inside()
    if inside:
        lines.append(inside)
    dots = min(count, MOST_DOTS)
    rows = -(-dots // DOTS_PER_ROW)
    width = max(_width(title, lines), 2 * PADDING + min(dots, DOTS_PER_ROW) * DOT)
    height = 2 * PADDING + TITLE_SIZE + len(lines) * (TEXT_SIZE + 4) + 6 + rows * DOT
    card = Card("node", title, [clip(line, TEXT_SIZE, width - 2 * PADDING) for line in lines], folded, width, height)
    card.icons, card.more_icons = dots, count > dots
    card.rate = _rate(folded)
    if card.rate and count > 1:
        card.rate += " each"
    return card


def _width(title: str, lines: list[str]) -> float:
    widest = max([text_width(title, TITLE_SIZE), *(text_width(line, TEXT_SIZE) for line in lines)])
    return min(max(widest + 2 * PADDING + 4, 118.0), 190.0)


def _rate(folded: SiblingGroup) -> str:
    low, high = folded.rates
    if low is None or high is None:
        return ""
    text = rate_text(low) if rate_text(low) == rate_text(high) else f"{rate_text(low)} – {rate_text(high)}"
    return text + (" each" if folded.level != "node" and folded.count > 1 else "")


def _subtree_width(card: Card) -> float:
    inner = sum(_subtree_width(child) for child in card.children) + GAP_X * max(len(card.children) - 1, 0)
    # The label above a card must not touch its neighbour's.
    label = text_width(card.rate, TEXT_SIZE) + 16
    return max(card.width, inner, label)


def _place(card: Card, left: float, width: float, top: float) -> None:
    card.x, card.y = left + (width - card.width) / 2, top
    widths = [_subtree_width(child) for child in card.children]
    start = left + (width - sum(widths) - GAP_X * max(len(widths) - 1, 0)) / 2
    for child, child_width in zip(card.children, widths, strict=True):
        _place(child, start, child_width, top + card.height + GAP_Y)
        start += child_width + GAP_X


def _align_rows(root: Card) -> None:
    """Cards of one depth start at one height, below the tallest card of the row above."""
    row, top = [root], 0.0
    while row:
        for card in row:
            card.y = top
        top += max(card.height for card in row) + GAP_Y
        row = [child for card in row for child in card.children]
