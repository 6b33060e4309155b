"""The messages of a plan as lines of text, time by time, with what is alike folded."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palmette import _core
from palmette.plan.crossing import Crossings
from palmette.units import plural

WIDTH = 80
MOST_EACH = 4
"""Up to so many messages of one kind get a line each, with their blocks."""
MOST_PAIRS = 24
MOST_TIMES = 16


@dataclass(frozen=True)
class Kind:
    """Messages of one time that do the same: one stage, across one level."""

    stage: str
    level: str | None
    messages: tuple[_core.Message, ...]

    def sizes(self, block_bytes: int) -> str:
        """`1K`, or `1K to 8K`."""
        sizes = sorted({message.size_bytes(block_bytes) for message in self.messages})
        low, high = _core.format_size(sizes[0]), _core.format_size(sizes[-1])
        return low if low == high else f"{low} to {high}"

    def signature(self, block_bytes: int) -> tuple[str, str | None, int, str]:
        """What must be equal for two times to look alike."""
        return self.stage, self.level, len(self.messages), self.sizes(block_bytes)


def stage_lines(plan: _core.Plan, everything: bool = False) -> list[str]:
    """Describe every message of a verified plan.

    Times count the messages that must be through before; consecutive times that differ only in partners and blocks are
    told once, and a long plan loses its middle, unless `everything` is wanted.
    """
    crossings = Crossings(plan.job)
    times = _times(plan.messages(), crossings)
    if not times:
        return ["no messages: the only rank copies its block"]
    entries = [
        _entry(plan, crossings, first, last, times[first], everything) for first, last in _runs(plan, times, everything)
    ]
    if everything or len(entries) <= MOST_TIMES:
        return [line for entry in entries for line in entry]
    kept = MOST_TIMES // 2
    left_out = len(entries) - 2 * kept
    lines = [line for entry in entries[:kept] for line in entry]
    lines += [f"... {plural(left_out, 'time')} like these left out; --all shows them"]
    return lines + [line for entry in entries[-kept:] for line in entry]


def _times(messages: Sequence[_core.Message], crossings: Crossings) -> list[list[Kind]]:
    """Sort messages by time, then stage and level."""
    by_time: dict[int, dict[tuple[str, str | None], list[_core.Message]]] = defaultdict(lambda: defaultdict(list))
    for message in messages:
        level = crossings.between(message.sender, message.receiver)
        by_time[message.time][message.stage, level].append(message)
    order: list[str | None] = [*crossings.levels, None]
    return [
        [
            Kind(stage, level, tuple(found))
            for (stage, level), found in sorted(
                by_time[time].items(), key=lambda item: (order.index(item[0][1]), item[0][0])
            )
        ]
        for time in sorted(by_time)
    ]


def _runs(plan: _core.Plan, times: list[list[Kind]], everything: bool) -> Iterator[tuple[int, int]]:
    """Yield first and last index of times that are told together."""
    size = plan.block_bytes
    signatures = [[kind.signature(size) for kind in kinds] for kinds in times]
    first = 0
    while first < len(times):
        last = first
        while not everything and last + 1 < len(times) and signatures[last + 1] == signatures[first]:
            last += 1
        yield first, last
        first = last + 1


def _entry(
    plan: _core.Plan, crossings: Crossings, first: int, last: int, kinds: list[Kind], everything: bool
) -> list[str]:
    if first == last:
        lines = [f"time {first + 1}"]
    else:
        lines = [f"times {first + 1} to {last + 1}, alike but for partners and blocks; time {first + 1}:"]
    for kind in kinds:
        lines.append(
            f"  {kind.stage}, {crossings.phrase(kind.level)}: {plural(len(kind.messages), 'message')} of "
            f"{kind.sizes(plan.block_bytes)}"
        )
        if len(kind.messages) <= MOST_EACH:
            lines += [_one(plan, message) for message in kind.messages]
        else:
            lines += _pairs(kind.messages, everything)
    return lines


def _one(plan: _core.Plan, message: _core.Message) -> str:
    owners = sorted(plan.owner_of(block) for first, count in message.blocks for block in range(first, first + count))
    part = f", part {message.part + 1}/{message.parts}" if message.parts > 1 else ""
    blocks = "block" if len(owners) == 1 else "blocks"
    line = f"{message.sender}→{message.receiver}: {blocks} of {ranks_text(owners)}{part}"
    return "    " + textwrap.shorten(line, WIDTH - 4, placeholder=" ...")


def _pairs(messages: Sequence[_core.Message], everything: bool) -> list[str]:
    together = Counter((message.sender, message.receiver) for message in messages)
    pairs = [f"{a}→{b}" if count == 1 else f"{a}→{b}×{count}" for (a, b), count in together.items()]
    shown = pairs if everything else pairs[:MOST_PAIRS]
    text = "  ".join(shown)
    if len(shown) < len(pairs):
        text += f"  and {len(pairs) - len(shown):,} more"
    return textwrap.wrap(
        text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def ranks_text(ranks: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> `0-2 5`."""
    parts: list[str] = []
    first = previous = None
    for rank in [*ranks, None]:
        if previous is not None and rank == previous + 1:
            previous = rank
            continue
        if first is not None and previous is not None:
            parts.append(str(first) if first == previous else f"{first}-{previous}")
        first = previous = rank
    return " ".join(parts)
