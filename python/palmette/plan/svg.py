"""A plan as an SVG picture: ranks in topology order downwards, time to the right, an arrow for each message.

Pulls, which read another rank's memory, are dashed, from the owner to the reader.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from xml.sax.saxutils import escape

from palmette import _core
from palmette.draw import elements
from palmette.plan.contents import contents_text, size_phrase
from palmette.plan.crossing import Crossings
from palmette.units import plural

MOST_RANKS = 256
MOST_TIMES = 64

_LANE, _BAND = "#d5dae3", "#f3f5f9"
_OUTWARDS = ("#2274a5", "#d1495b", "#e09f3e", "#6a4c93")
_INWARDS = ("#3c896d", "#7c9a45")
"""Colours of levels, from nodes outwards and from nodes inwards: a level looks the same in every picture."""
_DASHES = "5 3"
_MARGIN = 32.0
_HEADER = 104.0


class TooLargeError(ValueError):
    """The plan has more ranks or times than a picture can show."""


@dataclass(frozen=True)
class _Frame:
    """Where ranks and times are."""

    left: float
    row: float
    column: float
    tops: list[float]
    times: int
    labels: list[float]  # where the names of each outer level begin

    def y(self, position: int) -> float:
        return self.tops[position]

    def x(self, time: float) -> float:
        return self.left + time * self.column

    @property
    def right(self) -> float:
        return self.x(self.times)

    @property
    def bottom(self) -> float:
        return self.tops[-1] + self.row / 2


def svg(plan: _core.Plan, title: str | None = None) -> str:
    """Return the picture as a complete SVG document, headed by `title` or the collective.

    Raises TooLargeError past 256 ranks or 64 times.
    """
    job = plan.job
    title = title or plan.collective
    if job.size > MOST_RANKS:
        raise TooLargeError(f"{job.size} ranks don't fit in a picture of at most {MOST_RANKS}; draw fewer with --ranks")
    messages = plan.messages()
    times = max((message.time + 1 for message in messages), default=1)
    if times > MOST_TIMES:
        raise TooLargeError(
            f"{times} times don't fit in a picture of at most {MOST_TIMES}; draw fewer ranks with --ranks"
        )
    crossings = Crossings(job)
    frame = _frame(plan, times)
    colors = _colors(crossings)
    width = max(frame.right + _MARGIN + 8, 760.0)
    legend = _legend(plan, messages, crossings, colors, frame.bottom + 40, width)
    height = frame.bottom + 40 + legend.height + _MARGIN
    parts = [
        elements.document(width, height),
        f"<title>{escape(title)} {escape(plan.algorithm)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        elements.text(_MARGIN, 40, title, 22, elements.INK, weight=700),
        elements.text(
            _MARGIN + 13 * len(title) + 14, 40, _clipped(plan.algorithm, 15, width - 280), 15, elements.MUTED
        ),
        elements.text(_MARGIN, 62, _subtitle(plan), 12, elements.MUTED),
    ]
    parts += _groups(plan, frame)
    parts += _grid(plan, frame)
    parts += _arrows(plan, messages, crossings, frame, colors)
    return "\n".join([*parts, *legend.parts, "</svg>", ""])


def _subtitle(plan: _core.Plan) -> str:
    levels = [plural(level.count, level.name) for level in plan.job.levels]
    parts = [plural(plan.job.size, "rank"), *reversed(levels)]
    if _core.is_rooted(plan.collective):
        parts.append(f"root {plan.root}")
    if plan.block_bytes >= 0 and (size := size_phrase(plan.collective, plan.block_bytes)):
        parts.append(size)
    return "  ·  ".join(parts)


def _frame(plan: _core.Plan, times: int) -> _Frame:
    """Ranks of one node stand close together, nodes and outer groups apart."""
    job = plan.job
    row = max(5.0, min(20.0, 1100.0 / job.size))
    outer = [level for level in job.levels if level.name == "node" or not _is_inner(plan, level.name)]
    tops: list[float] = []
    y = _HEADER + row
    for position in range(job.size + plan.services):
        if position >= job.size:
            y += row * 1.45
        elif position:
            apart = sum(level.group_of(position) != level.group_of(position - 1) for level in outer)
            y += row + apart * (row * 0.35 if job.size > 64 else row * 0.45)
        tops.append(y)
    labels = [_MARGIN]
    for level in outer:
        labels.append(labels[-1] + min(max(len(name) for name in level.names) * 6.8, 110.0) + 26)
    column = max(26.0, min(150.0, 900.0 / times))
    return _Frame(labels[-1] + 36.0, row, column, tops, times, labels)


def _is_inner(plan: _core.Plan, name: str) -> bool:
    names = [level.name for level in plan.job.levels]
    return names.index(name) > names.index("node")


def _groups(plan: _core.Plan, frame: _Frame) -> list[str]:
    """Bands of nodes with the names of their outer groups to the left."""
    parts: list[str] = []
    outer = [level for level in plan.job.levels if not _is_inner(plan, level.name)]
    for depth, level in enumerate(outer):
        x, end = frame.labels[depth], frame.labels[depth + 1]
        for group, (name, size) in enumerate(zip(level.names, level.sizes, strict=True)):
            first = level.first(group)
            top, bottom = frame.y(first) - frame.row / 2, frame.y(first + size - 1) + frame.row / 2
            is_node = level.name == "node"
            if is_node:
                parts.append(_rect(x, top, frame.right - x + 8, bottom - top, _BAND, 4))
            else:
                parts.append(
                    f'<path d="M{end - 6:.1f} {top:.1f}h-6v{bottom - top:.1f}h6" fill="none"'
                    f' stroke="{elements.MUTED}"/>'
                )
            if bottom - top >= 9:
                label = _clipped(name, 11, end - x - 22)
                middle = (top + bottom) / 2 + 4
                parts.append(
                    elements.text(
                        x + 6 if is_node else end - 18, middle, label, 11, elements.INK, "start" if is_node else "end"
                    )
                )
    return parts


def _grid(plan: _core.Plan, frame: _Frame) -> list[str]:
    parts = []
    every = max(1, math.ceil(22 / frame.column))
    for time in range(frame.times + 1):
        x = frame.x(time)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_HEADER - 4:.1f}" x2="{x:.1f}" y2="{frame.bottom + 6:.1f}" stroke="{_LANE}" '
            'stroke-width="0.8" stroke-dasharray="2 4"/>'
        )
        if time < frame.times and time % every == 0:
            parts.append(elements.text(x + frame.column / 2, _HEADER - 10, f"{time + 1}", 11, elements.MUTED, "middle"))
    parts.append(
        elements.text(frame.left, _HEADER - 26, "time, in messages that wait for each other →", 11, elements.MUTED)
    )
    labelled = frame.row >= 9
    if labelled:
        parts.append(elements.text(frame.left - 10, _HEADER - 10, "rank", 11, elements.MUTED, "end"))
    for position in range(plan.job.size + plan.services):
        service = position - plan.job.size
        y, rank = frame.y(position), position if service >= 0 else plan.job.rank_at(position)
        is_root = _core.is_rooted(plan.collective) and rank == plan.root
        color = elements.INK if is_root else _LANE
        parts.append(
            f'<line x1="{frame.left:.1f}" y1="{y:.1f}" x2="{frame.right:.1f}" y2="{y:.1f}" stroke="{color}" '
            f'stroke-width="{1.4 if is_root else 0.8}"/>'
        )
        if labelled or is_root:
            size = min(11.0, max(8.0, frame.row * 0.62))
            parts.append(
                elements.text(
                    frame.left - 10,
                    y + size * 0.36,
                    f"agg{service}" if service >= 0 else str(rank),
                    size,
                    elements.INK,
                    "end",
                    700 if is_root else 400,
                )
            )
    return parts


def _colors(crossings: Crossings) -> dict[str | None, str]:
    colors: dict[str | None, str] = {None: elements.GRAY}
    node = crossings.levels.index("node")
    for index, level in enumerate(crossings.levels):
        palette, away = (_OUTWARDS, node - index) if index <= node else (_INWARDS, index - node - 1)
        colors[level] = palette[away % len(palette)]
    return colors


def _stroke(message: _core.Message) -> float:
    """Width by the logarithm of the number of blocks, whole blocks and parts alike."""
    blocks = message.block_count / message.parts
    return max(0.8, min(5.0, 1.2 + 0.55 * math.log2(max(blocks, 0.5))))


def _arrows(
    plan: _core.Plan,
    messages: list[_core.Message],
    crossings: Crossings,
    frame: _Frame,
    colors: dict[str | None, str],
) -> list[str]:
    order: list[str | None] = [None, *reversed(crossings.levels)]
    drawn: list[tuple[int, str]] = []
    fade = 0.55 if len(messages) > 400 else 0.85
    alike = Counter((message.sender, message.receiver, message.time) for message in messages)
    seen: Counter[tuple[int, int, int]] = Counter()
    for message in messages:
        # Parts of one message, or several between the same two ranks at one time, lie side by side.
        way = (message.sender, message.receiver, message.time)
        before, after = (count / alike[way] * frame.column * 0.25 for count in (seen[way], alike[way] - 1 - seen[way]))
        seen[way] += 1
        level = crossings.between(message.sender, message.receiver)
        y1, y2 = (
            frame.y(plan.job.position_of(rank) if rank < plan.job.size else rank)
            for rank in (message.sender, message.receiver)
        )
        x1, x2 = frame.x(message.time) + 2 + before, frame.x(message.time + 1) - 2 - after
        stroke, color = _stroke(message), colors[level]
        angle = math.atan2(y2 - y1, x2 - x1)
        head = min(5.0 + stroke, frame.row * 0.6 + 2, frame.column * 0.3)
        tip = [
            (x2 - head * math.cos(angle + side * 0.42), y2 - head * math.sin(angle + side * 0.42)) for side in (1, -1)
        ]
        points = f"{x2:.1f},{y2:.1f} " + " ".join(f"{x:.1f},{y:.1f}" for x, y in tip)
        end_x, end_y = x2 - head * 0.7 * math.cos(angle), y2 - head * 0.7 * math.sin(angle)
        contents = contents_text(plan, message)
        ends = f"{crossings.name(message.sender)} to {crossings.name(message.receiver)}"
        note = f"{ends}: " + (f"{contents}, " if contents else "") + message.stage
        dashes = f' stroke-dasharray="{_DASHES}"' if message.pulled else ""
        drawn.append(
            (
                order.index(level),
                f'<g opacity="{fade}"><title>{escape(note)}</title>'
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}" stroke="{color}" '
                f'stroke-width="{stroke:.2f}"{dashes}/><polygon points="{points}" fill="{color}"/></g>',
            )
        )
    # Outer levels are few and matter most: they lie on top.
    return [part for _, part in sorted(drawn, key=lambda item: item[0])]


@dataclass(frozen=True)
class _Legend:
    parts: list[str]
    height: float


def _legend(
    plan: _core.Plan,
    messages: list[_core.Message],
    crossings: Crossings,
    colors: dict[str | None, str],
    top: float,
    width: float,
) -> _Legend:
    counts = Counter((crossings.between(message.sender, message.receiver), message.pulled) for message in messages)
    parts: list[str] = []
    x, y = _MARGIN, top
    entries = [key for level in [*crossings.levels, None] for key in ((level, False), (level, True)) if key in counts]
    for level, pulled in entries:
        text = f"{crossings.phrase(level)}: {plural(counts[level, pulled], 'pull' if pulled else 'message')}"
        needed = 40 + 6.6 * len(text) + 24
        if x + needed > width - _MARGIN and x > _MARGIN:
            x, y = _MARGIN, y + 22
        dashes = f' stroke-dasharray="{_DASHES}"' if pulled else ""
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + 28:.1f}" y2="{y:.1f}" stroke="{colors[level]}" stroke-width="3"'
            f"{dashes}/>"
        )
        parts.append(elements.text(x + 36, y + 4, text, 12, elements.INK))
        x += needed
    reduced = sum(plan.step_counts.get(kind, 0) for kind in ("reduce", "pull_reduce"))
    if reduced:
        y += 24
        parts.append(
            elements.text(_MARGIN, y + 4, f"{plural(reduced, 'step')} combine contributions", 12, elements.MUTED)
        )
    blocks = sorted({message.block_count for message in messages})
    if any(blocks):
        y += 24
        text = (
            f"every message carries {plural(blocks[0], 'block')}"
            if blocks[0] == blocks[-1]
            else f"the thicker an arrow, the more blocks it carries: {blocks[0]} to {blocks[-1]}"
        )
        parts.append(elements.text(_MARGIN, y + 4, text, 12, elements.MUTED))
    return _Legend(parts, y - top + 10)


def _rect(x: float, y: float, width: float, height: float, fill: str, radius: float) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" fill="{fill}"/>'


def _clipped(text: str, size: float, width: float) -> str:
    most = int(width / (size * 0.6))
    return text if len(text) <= most else text[: max(1, most - 1)] + "\u2026"
