"""SVG heat map of link utilisation over time: a row per link, time to the right, darker is fuller."""

from __future__ import annotations

from dataclasses import dataclass

from palmette import _core
from palmette.flow.summary import FlowRun
from palmette.present.charts import DASHES
from palmette.present.colors import heat
from palmette.present.picture import MARGIN, Picture
from palmette.present.words import clipped
from palmette.units import bytes_text

MOST_ROWS = 24
"""Maximum number of rows per level; of more links, the busiest are drawn, and the mean of the others."""
COLUMNS = 128

_LEFT, _TOP, _ROW, _WIDTH = 190.0, 138.0, 13.0, 720.0
_LEGEND = 7


@dataclass(frozen=True)
class _Row:
    label: str
    note: str
    shares: list[float]  # utilisation in each column
    carried: list[float]  # bytes in each column
    total: str


def svg(quiet: FlowRun, loaded: FlowRun | None, title: str, subtitle: str) -> str:
    """Return the picture as a complete document; loaded is drawn below quiet, on the same time axis."""
    both = [quiet] if loaded is None else [quiet, loaded]
    longest = max(played.result.seconds for played in both)
    picture = Picture(title)
    picture.head(title, subtitle, _LEFT + _WIDTH)
    picture.text(MARGIN, 90, "a row is one direction of a link; dashed: the physical bound", 11, "muted")
    x = _LEFT + _WIDTH - 26 * _LEGEND
    picture.text(x - 8, 90, "used 0", 11, "muted", "end")
    for index in range(_LEGEND):
        picture.rect(x + index * 26, 80, 26, 12, heat(index / (_LEGEND - 1)))
    picture.text(_LEFT + _WIDTH + 8, 90, "100 %", 11, "muted")
    y = _TOP
    for played in both:
        y = _panel(picture, played, y, longest, labelled=len(both) > 1)
    y = _axis(picture, y, longest)
    return picture.document(_LEFT + _WIDTH + MARGIN, y + 24)


def _panel(picture: Picture, played: FlowRun, top: float, longest: float, *, labelled: bool) -> float:
    result = played.result
    multiple = f", {played.multiple:.3g} times the bound" if played.multiple is not None else ""
    before = f"{played.label}: " if labelled else ""
    picture.text(_LEFT, top - 10, f"{before}{_core.format_duration(result.seconds)}{multiple}", 13, weight=700)
    picture.text(_LEFT + _WIDTH + 12, top - 10, "bytes of the plan, used", 11, "muted")
    y = top
    span = _WIDTH * result.seconds / longest if longest > 0 else 0.0
    for level, rows in _rows(played):
        picture.text(MARGIN, y + _ROW * 0.78, level, 11, "muted", weight=700)
        for row in rows:
            with picture.group(row.note):
                _cells(picture, row, y, span, result.seconds)
            picture.text(_LEFT - 8, y + _ROW * 0.78, row.label, 10.5, anchor="end")
            picture.text(_LEFT + _WIDTH + 12, y + _ROW * 0.78, row.total, 10.5, "muted")
            y += _ROW
        y += 8
    picture.line(_LEFT + span, top - 4, _LEFT + span, y, "ink")
    if played.bound.seconds > 0 and longest > 0:
        x = _LEFT + _WIDTH * played.bound.seconds / longest
        tip = f"physical bound: {_core.format_duration(played.bound.seconds)}"
        picture.line(x, top - 4, x, y, "bound", 1.5, DASHES, tip)
    return y + 36


def _rows(played: FlowRun) -> list[tuple[str, list[_Row]]]:
    """The rows of each level: its links; of too many, the busiest in their order, then the mean of the others."""
    by_level: dict[int, list[int]] = {}
    for index, link in enumerate(played.links):
        by_level.setdefault(link.level, []).append(index)
    out = []
    for level, indices in by_level.items():
        links = played.links
        kept = indices
        if len(indices) > MOST_ROWS:
            kept = sorted(sorted(indices, key=lambda index: -links[index].carried_bytes)[: MOST_ROWS - 1])
        rows = [_row(played, index) for index in kept]
        rest = sorted(set(indices) - set(kept))
        if rest:
            rows.append(_mean_row(played, rest))
        out.append((played.levels[level], rows))
    return out


def _row(played: FlowRun, index: int) -> _Row:
    link = played.links[index]
    name = played.name_of(link)
    used = f"{100 * link.utilisation:.0f} %"
    note = f"{name}: {link.bytes:,} bytes of the plan, {link.carried_bytes:,.0f} carried, used {used}"
    shares, carried = _columns(played, index)
    return _Row(clipped(name, 22), note, shares, carried, f"{bytes_text(link.bytes)}, {used}")


def _mean_row(played: FlowRun, indices: list[int]) -> _Row:
    shares, carried = (
        [sum(column) / len(indices) for column in zip(*rows, strict=True)]
        for rows in zip(*(_columns(played, index) for index in indices), strict=True)
    )
    links = [played.links[index] for index in indices]
    used = f"{100 * sum(link.utilisation for link in links) / len(links):.0f} %"
    each = bytes_text(sum(link.bytes for link in links) // len(links))
    label = f"{len(indices):,} others, mean"
    return _Row(label, f"{label}: {each} bytes of the plan each, used {used}", shares, carried, f"{each}, {used}")


def _columns(played: FlowRun, index: int) -> tuple[list[float], list[float]]:
    """Utilisation and bytes of a link in at most COLUMNS columns of equal length."""
    result = played.result
    capacity = played.links[index].capacity_bytes_per_s
    in_bins = result.carried(index)
    step = max(1, -(-len(in_bins) // COLUMNS))
    shares, columns = [], []
    for first in range(0, len(in_bins), step):
        carried = sum(in_bins[first : first + step])
        # The last interval ends with the plan, not at its full length.
        seconds = min(step * result.bin_s, result.seconds - first * result.bin_s)
        shares.append(min(1.0, carried / (capacity * seconds)) if seconds > 0 else 0.0)
        columns.append(carried)
    return shares, columns


def _cells(picture: Picture, row: _Row, y: float, span: float, seconds: float) -> None:
    """Rectangles with their bytes as tooltips; adjacent ones of one color are merged."""
    count = len(row.shares)
    width = span / count if count else 0.0
    colors = [heat(share) for share in row.shares]
    first = 0
    for index in range(1, count + 1):
        if index < count and colors[index] == colors[first]:
            continue
        begin, end = (_core.format_duration(seconds * edge / count) for edge in (first, index))
        tip = f"{row.label}, {begin} to {end}: {bytes_text(round(sum(row.carried[first:index])))}"
        wide = (index - first) * width + 0.2
        picture.rect(_LEFT + first * width, y, wide, _ROW - 1, colors[first], tip=tip)
        first = index


def _axis(picture: Picture, y: float, longest: float) -> float:
    top = y - 30
    for tick in range(5):
        x = _LEFT + _WIDTH * tick / 4
        picture.line(x, top, x, top + 5, "muted")
        label = _core.format_duration(longest * tick / 4) if tick else "0"
        picture.text(x, top + 18, label, 11, "muted", "middle")
    picture.line(_LEFT, top, _LEFT + _WIDTH, top, "line")
    return top + 24
