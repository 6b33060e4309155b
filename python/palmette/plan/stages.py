"""The messages of a plan as lines of text, time by time, with equal ones folded."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palmette import _core
from palmette.plan.contents import contents_text
from palmette.plan.crossing import Crossings
from palmette.present.words import wrapped
from palmette.units import plural, text_width

MAX_MESSAGE_LINES = 4
"""Most messages of one kind that get a line each, with their blocks."""
MOST_PAIRS = 24
MOST_TIMES = 16


@dataclass(frozen=True)
class Kind:
    """Messages, or pulls, of one time, stage and level. `sizes`: bytes of each."""

    stage: str
    level: str | None
    pulled: bool
    messages: tuple[_core.Message, ...]
    sizes: tuple[int, ...]

    @property
    def text(self) -> str:
        """`8 messages of 1K`, `2 pulls of 1K to 8K`, and of a barrier `8 messages`."""
        low, high = _core.format_size(min(self.sizes)), _core.format_size(max(self.sizes))
        text = plural(len(self.messages), "pull" if self.pulled else "message")
        if not any(message.block_count for message in self.messages):
            return text
        return f"{text} of {low}" if low == high else f"{text} of {low} to {high}"

    @property
    def signature(self) -> tuple[str, str | None, bool, str]:
        """Times with equal signatures are folded."""
        return self.stage, self.level, self.pulled, self.text


def stage_lines(plan: _core.Plan, everything: bool = False) -> list[str]:
    """Describe every message of a verified plan.

    The time of a message is its depth: the messages that must complete before. Consecutive times that differ only in
    partners and blocks are listed once, and the middle of a long plan is left out, unless `everything` is set.
    """
    crossings = Crossings(plan.job)
    times = _times(plan, crossings)
    if not times:
        return ["no messages: the only rank has it all"]
    entries = [
        _entry(plan, crossings, first, last, times[first], everything) for first, last in _runs(times, everything)
    ]
    if everything or len(entries) <= MOST_TIMES:
        return [line for entry in entries for line in entry]
    kept = MOST_TIMES // 2
    left_out = len(entries) - 2 * kept
    lines = [line for entry in entries[:kept] for line in entry]
    lines += [f"... {plural(left_out, 'time')} like these left out; --all shows them"]
    return lines + [line for entry in entries[-kept:] for line in entry]


def _times(plan: _core.Plan, crossings: Crossings) -> list[list[Kind]]:
    """Sort messages by time, then stage and level, pulls apart."""
    by_time: dict[int, dict[tuple[str, str | None, bool], list[_core.Message]]] = defaultdict(lambda: defaultdict(list))
    for message in plan.messages():
        level = crossings.between(message.sender, message.receiver)
        by_time[message.time][message.stage, level, message.pulled].append(message)
    order: list[str | None] = [*crossings.levels, None]
    return [
        [
            Kind(stage, level, pulled, tuple(found), tuple(plan.bytes_of(message) for message in found))
            for (stage, level, pulled), found in sorted(
                by_time[time].items(), key=lambda item: (order.index(item[0][1]), item[0][0], item[0][2])
            )
        ]
        for time in sorted(by_time)
    ]


def _runs(times: list[list[Kind]], everything: bool) -> Iterator[tuple[int, int]]:
    """Yield first and last index of times that are listed together."""
    signatures = [[kind.signature for kind in kinds] for kinds in times]
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
        lines.append(f"  {kind.stage}, {crossings.phrase(kind.level)}: {kind.text}")
        if len(kind.messages) <= MAX_MESSAGE_LINES:
            lines += [_one(plan, crossings, message) for message in kind.messages]
        else:
            lines += _pairs(crossings, kind.messages, everything)
    return lines


def _one(plan: _core.Plan, crossings: Crossings, message: _core.Message) -> str:
    contents = contents_text(plan, message)
    line = f"{crossings.name(message.sender)}→{crossings.name(message.receiver)}" + (
        f": {contents}" if contents else ""
    )
    return "    " + textwrap.shorten(line, text_width() - 4, placeholder=" ...")


def _pairs(crossings: Crossings, messages: Sequence[_core.Message], everything: bool) -> list[str]:
    together = Counter((crossings.name(one.sender), crossings.name(one.receiver)) for one in messages)
    pairs = [f"{a}→{b}" if count == 1 else f"{a}→{b}×{count}" for (a, b), count in together.items()]
    shown = pairs if everything else pairs[:MOST_PAIRS]
    text = "  ".join(shown)
    if len(shown) < len(pairs):
        text += f"  and {len(pairs) - len(shown):,} more"
    return wrapped(text, "    ", "    ")
