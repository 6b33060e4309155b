"""The payload of a message as text: whose blocks, or which part of a vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palmette import _core


def size_phrase(collective: str, block_bytes: int) -> str:
    """`1K a block`, `1K a pair`, `a vector of 1K`; nothing for a barrier."""
    size = _core.format_size(block_bytes)
    return {
        "per_rank": f"{size} a block",
        "pairs": f"{size} a pair",
        "cut": f"a vector of {size}",
    }.get(_core.space_of(collective), "")


def contents_text(plan: _core.Plan, message: _core.Message) -> str:
    """`blocks of 0-2 5, part 1/4`, `4 blocks of 0 2 for 1 3`, `blocks 0-3 of 16`; empty without blocks."""
    if not message.block_count:
        return ""
    part = f", part {message.part + 1}/{message.parts}" if message.parts > 1 else ""
    if plan.space in ("cut", "listed"):
        if plan.cut == 1:
            return ("the vector" if plan.space == "cut" else "the block") + part
        blocks = numbers_text(list(_numbers(message)))
        return f"{_blocks(message.block_count)} {blocks} of {plan.cut}{part}"
    if plan.space == "pairs":
        p = plan.job.size
        pairs = [(plan.owner_of(block // p), plan.owner_of(block % p)) for block in _numbers(message)]
        sources, targets = sorted({source for source, _ in pairs}), sorted({target for _, target in pairs})
        count = "block" if len(pairs) == 1 else f"{len(pairs)} blocks"
        return f"{count} of {numbers_text(sources)} for {numbers_text(targets)}{part}"
    owners = sorted(plan.owner_of(block) for block in _numbers(message))
    return f"{_blocks(len(owners))} of {numbers_text(owners)}{part}"


def _blocks(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _numbers(message: _core.Message) -> Iterator[int]:
    for first, count in message.blocks:
        yield from range(first, first + count)


def numbers_text(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> `0-2 5`."""
    parts: list[str] = []
    first = previous = None
    for number in [*numbers, None]:
        if previous is not None and number == previous + 1:
            previous = number
            continue
        if first is not None and previous is not None:
            parts.append(str(first) if first == previous else f"{first}-{previous}")
        first = previous = number
    return " ".join(parts)
