"""A plan as an SVG picture: ranks in topology order downwards, time to the right, an arrow for each message.

Pulls, which read another rank's memory, are dashed, from the owner to the reader.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from palmette import _core
from palmette.plan.contents import contents_text, size_phrase
from palmette.plan.crossing import Crossings
from palmette.present.charts import stroke
from palmette.present.picture import MARGIN, Picture, text_width
from palmette.units import plural

MOST_RANKS = 256
MOST_TIMES = 64

_OUTWARDS = ("curve0", "curve1", "curve4", "curve3")
_INWARDS = ("curve2", "curve6")
"""Colors of levels, from nodes outwards and from nodes inwards: a level looks the same in every picture."""
_PULLED = "5 3"
_HEADER = 112.0


class TooLargeError(ValueError):
    """The plan has more ranks or times than a picture can show."""


@dataclass(frozen=True)
class _Frame:
    """Position of ranks and times in the picture."""

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
    picture = Picture(f"{title} {plan.algorithm}")
    picture.head(title, _subtitle(plan), max(frame.right, 720.0))
    after = MARGIN + text_width(title, 20) + 14
    picture.text(after, 40, plan.algorithm, 15, "muted", most=max(frame.right, 720.0) - after)
    _groups(picture, plan, frame)
    _grid(picture, plan, frame)
    _arrows(picture, plan, messages, crossings, frame, colors)
    width = max(frame.right + MARGIN + 8, 760.0)
    height = _legend(picture, plan, messages, crossings, colors, frame.bottom + 40, width)
    return picture.document(width, height + MARGIN)


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
    labels = [MARGIN]
    for level in outer:
        labels.append(labels[-1] + min(max(len(name) for name in level.names) * 6.8, 110.0) + 26)
    column = max(26.0, min(150.0, 900.0 / times))
    return _Frame(labels[-1] + 36.0, row, column, tops, times, labels)


def _is_inner(plan: _core.Plan, name: str) -> bool:
    names = [level.name for level in plan.job.levels]
    return names.index(name) > names.index("node")


def _groups(picture: Picture, plan: _core.Plan, frame: _Frame) -> None:
    """Bands of nodes with the names of their outer groups to the left."""
    outer = [level for level in plan.job.levels if not _is_inner(plan, level.name)]
    for depth, level in enumerate(outer):
        x, end = frame.labels[depth], frame.labels[depth + 1]
        is_node = level.name == "node"
        for group, (name, size) in enumerate(zip(level.names, level.sizes, strict=True)):
            first = level.first(group)
            top, bottom = frame.y(first) - frame.row / 2, frame.y(first + size - 1) + frame.row / 2
            if is_node:
                picture.rect(x, top, frame.right - x + 8, bottom - top, "soft", radius=4)
            else:
                picture.path(f"M{end - 6:.1f} {top:.1f}h-6v{bottom - top:.1f}h6", "muted")
            if bottom - top >= 9:
                at, anchor = (x + 6, "start") if is_node else (end - 18, "end")
                picture.text(at, (top + bottom) / 2 + 4, name, 11, anchor=anchor, most=end - x - 22)


def _grid(picture: Picture, plan: _core.Plan, frame: _Frame) -> None:
    every = max(1, math.ceil(22 / frame.column))
    for time in range(frame.times + 1):
        x = frame.x(time)
        picture.line(x, _HEADER - 4, x, frame.bottom + 6, "line", 0.8, "2 4")
        if time < frame.times and time % every == 0:
            picture.text(x + frame.column / 2, _HEADER - 10, f"{time + 1}", 11, "muted", "middle")
    picture.text(frame.left, _HEADER - 26, "time, in messages that wait for each other →", 11, "muted")
    labelled = frame.row >= 9
    if labelled:
        picture.text(frame.left - 10, _HEADER - 10, "rank", 11, "muted", "end")
    for position in range(plan.job.size + plan.services):
        service = position - plan.job.size
        y, rank = frame.y(position), position if service >= 0 else plan.job.rank_at(position)
        is_root = _core.is_rooted(plan.collective) and rank == plan.root
        picture.line(frame.left, y, frame.right, y, "ink" if is_root else "line", 1.4 if is_root else 0.8)
        if labelled or is_root:
            size = round(min(11.0, max(8.0, frame.row * 0.62)), 1)
            name = f"agg{service}" if service >= 0 else str(rank)
            picture.text(frame.left - 10, y + size * 0.36, name, size, anchor="end", weight=700 if is_root else 400)


def _colors(crossings: Crossings) -> dict[str | None, str]:
    colors: dict[str | None, str] = {None: "link"}
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
    picture: Picture, plan: _core.Plan, messages: list[_core.Message], crossings: Crossings, frame: _Frame,
    colors: dict[str | None, str],
) -> None:  # fmt: skip
    order: list[str | None] = [None, *reversed(crossings.levels)]
    fade = 0.55 if len(messages) > 400 else 0.85
    alike = Counter((message.sender, message.receiver, message.time) for message in messages)
    seen: Counter[tuple[int, int, int]] = Counter()
    levels = [crossings.between(message.sender, message.receiver) for message in messages]
    # Outer levels are few and matter most: they lie on top.
    for level, message in sorted(zip(levels, messages, strict=True), key=lambda pair: order.index(pair[0])):
        # Parts of one message, or several between the same two ranks at one time, lie side by side.
        way = (message.sender, message.receiver, message.time)
        before, after = (count / alike[way] * frame.column * 0.25 for count in (seen[way], alike[way] - 1 - seen[way]))
        seen[way] += 1
        y1, y2 = (
            frame.y(plan.job.position_of(rank) if rank < plan.job.size else rank)
            for rank in (message.sender, message.receiver)
        )
        x1, x2 = frame.x(message.time) + 2 + before, frame.x(message.time + 1) - 2 - after
        width = _stroke(message)
        angle = math.atan2(y2 - y1, x2 - x1)
        head = min(5.0 + width, frame.row * 0.6 + 2, frame.column * 0.3)
        sides = [(x2 - head * math.cos(angle + side), y2 - head * math.sin(angle + side)) for side in (0.42, -0.42)]
        contents = contents_text(plan, message)
        ends = f"{crossings.name(message.sender)} to {crossings.name(message.receiver)}"
        with picture.group(f"{ends}: " + (f"{contents}, " if contents else "") + message.stage, fade):
            end = (x2 - head * 0.7 * math.cos(angle), y2 - head * 0.7 * math.sin(angle))
            picture.line(x1, y1, *end, colors[level], width, _PULLED if message.pulled else "")
            picture.polygon([(x2, y2), *sides], colors[level])


def _legend(
    picture: Picture, plan: _core.Plan, messages: list[_core.Message], crossings: Crossings,
    colors: dict[str | None, str], top: float, width: float,
) -> float:  # fmt: skip
    """Draw what the arrows mean; return the height below."""
    counts = Counter((crossings.between(message.sender, message.receiver), message.pulled) for message in messages)
    keys = [key for level in [*crossings.levels, None] for key in ((level, False), (level, True)) if key in counts]
    entries = [
        (
            stroke(picture, colors[level], 3, _PULLED if pulled else ""),
            f"{crossings.phrase(level)}: {plural(counts[level, pulled], 'pull' if pulled else 'message')}",
        )
        for level, pulled in keys
    ]
    y = picture.legend(entries, top, width)
    said = []
    if reduced := sum(plan.step_counts.get(kind, 0) for kind in ("reduce", "pull_reduce")):
        said.append(f"{plural(reduced, 'step')} combine contributions")
    blocks = sorted({message.block_count for message in messages})
    if any(blocks):
        said.append(
            f"every message carries {plural(blocks[0], 'block')}"
            if blocks[0] == blocks[-1]
            else f"the thicker an arrow, the more blocks it carries: {blocks[0]} to {blocks[-1]}"
        )
    for words in said:
        picture.text(MARGIN, y + 6, words, color="muted")
        y += 24
    return y
