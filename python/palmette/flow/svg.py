"""SVG heat map of link utilisation over time: a row per link, time to the right, darker is fuller."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from palmette import _core
from palmette.draw import elements
from palmette.flow.summary import Played
from palmette.units import bytes_text

MOST_ROWS = 24
"""Maximum number of rows per level; of more links, the busiest are drawn, and the mean of the others."""
COLUMNS = 128

_GRID = "#d5dae3"
_SCALE = ("#f3f5f9", "#cfe1ef", "#9cc4e0", "#5fa0cb", "#2274a5", "#164d73", "#0b2a44")
_LEFT, _TOP, _ROW, _WIDTH, _RIGHT = 190.0, 132.0, 13.0, 720.0, 190.0


@dataclass(frozen=True)
class _Row:
    label: str
    note: str
    shares: list[float]  # utilisation in each column
    carried: list[float]  # bytes in each column
    total: str


def svg(quiet: Played, loaded: Played | None, title: str, subtitle: str) -> str:
    """Return the picture as a complete document; loaded is drawn below quiet, on the same time axis."""
    both = [quiet] if loaded is None else [quiet, loaded]
    longest = max(played.result.seconds for played in both)
    parts: list[str] = []
    y = _TOP
    for played in both:
        y = _panel(parts, played, y, longest, labelled=len(both) > 1)
    y = _axis(parts, y, longest)
    width, height = _LEFT + _WIDTH + _RIGHT, y + 24
    head = [
        elements.document(width, height),
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        elements.text(32, 40, title, 22, elements.INK, weight=700),
        elements.text(32, 62, subtitle, 12, elements.MUTED),
        *_legend(width),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def _panel(parts: list[str], played: Played, top: float, longest: float, *, labelled: bool) -> float:
    result = played.result
    multiple = f", {played.multiple:.3g} times the bound" if played.multiple is not None else ""
    before = f"{played.label}: " if labelled else ""
    parts.append(
        elements.text(
            _LEFT, top - 10, f"{before}{_core.format_duration(result.seconds)}{multiple}", 13, elements.INK, weight=700
        )
    )
    parts.append(elements.text(_LEFT + _WIDTH + 12, top - 10, "bytes of the plan, used", 11, elements.MUTED))
    y = top
    span = _WIDTH * result.seconds / longest if longest > 0 else 0.0
    for level, rows in _rows(played):
        parts.append(elements.text(32, y + _ROW * 0.78, level, 11, elements.MUTED, weight=700))
        for row in rows:
            parts.append(f"<g><title>{escape(row.note)}</title>")
            parts += _cells(row, y, span, result.seconds)
            parts.append("</g>")
            parts.append(elements.text(_LEFT - 8, y + _ROW * 0.78, row.label, 10.5, elements.INK, "end"))
            parts.append(elements.text(_LEFT + _WIDTH + 12, y + _ROW * 0.78, row.total, 10.5, elements.MUTED))
            y += _ROW
        y += 8
    end = _LEFT + span
    parts.append(f'<line x1="{end:.1f}" y1="{top - 4:.1f}" x2="{end:.1f}" y2="{y:.1f}" stroke="{elements.INK}"/>')
    if played.bound.seconds > 0 and longest > 0:
        x = _LEFT + _WIDTH * played.bound.seconds / longest
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 4:.1f}" x2="{x:.1f}" y2="{y:.1f}" stroke="#d1495b" stroke-dasharray="4 3">'
            f"<title>physical bound: {_core.format_duration(played.bound.seconds)}</title></line>"
        )
    return y + 36


def _rows(played: Played) -> list[tuple[str, list[_Row]]]:
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


def _row(played: Played, index: int) -> _Row:
    link = played.links[index]
    name = played.name_of(link)
    used = f"{100 * link.utilisation:.0f} %"
    note = f"{name}: {link.bytes:,} bytes of the plan, {link.carried_bytes:,.0f} carried, used {used}"
    shares, carried = _columns(played, index)
    return _Row(_clipped(name), note, shares, carried, f"{bytes_text(link.bytes)}, {used}")


def _mean_row(played: Played, indices: list[int]) -> _Row:
    shares, carried = (
        [sum(column) / len(indices) for column in zip(*rows, strict=True)]
        for rows in zip(*(_columns(played, index) for index in indices), strict=True)
    )
    links = [played.links[index] for index in indices]
    used = f"{100 * sum(link.utilisation for link in links) / len(links):.0f} %"
    each = bytes_text(sum(link.bytes for link in links) // len(links))
    label = f"{len(indices):,} others, mean"
    return _Row(label, f"{label}: {each} bytes of the plan each, used {used}", shares, carried, f"{each}, {used}")


def _columns(played: Played, index: int) -> tuple[list[float], list[float]]:
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


def _cells(row: _Row, y: float, span: float, seconds: float) -> list[str]:
    """Rectangles with their bytes as tooltips; adjacent ones of one colour are merged."""
    parts = []
    count = len(row.shares)
    width = span / count if count else 0.0
    colors = [_color(share) for share in row.shares]
    first = 0
    for index in range(1, count + 1):
        if index < count and colors[index] == colors[first]:
            continue
        begin, end = (_core.format_duration(seconds * edge / count) for edge in (first, index))
        tooltip = f"{row.label}, {begin} to {end}: {bytes_text(round(sum(row.carried[first:index])))}"
        parts.append(
            f'<rect x="{_LEFT + first * width:.2f}" y="{y:.1f}" width="{(index - first) * width + 0.2:.2f}" '
            f'height="{_ROW - 1:.1f}" fill="{colors[first]}"><title>{escape(tooltip)}</title></rect>'
        )
        first = index
    return parts


def _color(share: float) -> str:
    """Interpolated colour of the scale, in 33 steps."""
    place = round(max(0.0, min(1.0, share)) * 32) / 32 * (len(_SCALE) - 1)
    low = min(int(place), len(_SCALE) - 2)
    part = place - low
    a, b = (tuple(int(_SCALE[low + i][k : k + 2], 16) for k in (1, 3, 5)) for i in (0, 1))
    return "#" + "".join(f"{round(x + (y - x) * part):02x}" for x, y in zip(a, b, strict=True))


def _axis(parts: list[str], y: float, longest: float) -> float:
    top = y - 30
    for tick in range(5):
        x = _LEFT + _WIDTH * tick / 4
        parts.append(f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{top + 5:.1f}" stroke="{elements.MUTED}"/>')
        label = _core.format_duration(longest * tick / 4) if tick else "0"
        parts.append(elements.text(x, top + 18, label, 11, elements.MUTED, "middle"))
    parts.append(f'<line x1="{_LEFT:.1f}" y1="{top:.1f}" x2="{_LEFT + _WIDTH:.1f}" y2="{top:.1f}" stroke="{_GRID}"/>')
    return top + 24


def _legend(width: float) -> list[str]:
    x = width - 32 - 7 * 26
    parts = [
        elements.text(x - 8, 90, "used 0", 11, elements.MUTED, "end"),
        elements.text(x + 7 * 26 + 8, 90, "", 11, elements.MUTED),
    ]
    for index, color in enumerate(_SCALE):
        parts.append(f'<rect x="{x + index * 26:.1f}" y="80" width="26" height="12" fill="{color}"/>')
    parts.append(elements.text(x + 7 * 26, 106, "100 %", 11, elements.MUTED, "end"))
    parts.append(
        elements.text(32, 90, "a row is one direction of a link; dashed: the physical bound", 11, elements.MUTED)
    )
    return parts


def _clipped(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"
