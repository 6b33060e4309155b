"""Source and target ranks of the patterns rail, fan, dense and self between groups of ranks.

With `w` the width, from group A to group B:

    rail    rank i of A to rank i of B, for the first w ranks
    fan     each of the first w ranks of A to all ranks of B
    dense   each of the first w ranks of A to each of the first w ranks of B
    self    the first w ranks of each group to themselves: the cost of copying; with both or all ways two at once

one: from the first group to all others; in: from all others to the first; both: these two concurrently; all: between
any two.
"""

from __future__ import annotations

from collections.abc import Sequence

from palmette.patterns.errors import PatternError

KINDS = ("rail", "fan", "dense", "self")
WAYS = ("one", "in", "both", "all")

Pair = tuple[int, int]
"""Source and target."""


def pairs(kind: str, groups: Sequence[Sequence[int]], width: int | None, way: str) -> list[Pair]:
    """Return source and target of each message, in the order in which they are sent. Raises PatternError."""
    widest = max(len(group) for group in groups)
    if width is None:
        width = widest
    if width > widest:
        raise PatternError(f"width={width}: the largest group has {widest} ranks; give 1 to {widest}")
    if kind == "self":
        own = [(rank, rank) for group in groups for rank in group[:width]]
        return own * 2 if way in ("both", "all") else own
    if len(groups) < 2:
        raise PatternError(f"{kind}: there is one group only; name more, as in {kind}:groups=2")
    outwards = [pair for other in groups[1:] for pair in _between(kind, groups[0], other, width)]
    inwards = [(target, source) for source, target in outwards]
    if way == "one":
        return outwards
    if way == "in":
        return inwards
    if way == "both":
        return outwards + inwards
    return [
        pair
        for distance in range(1, len(groups))
        for number, group in enumerate(groups)
        for pair in _between(kind, group, groups[(number + distance) % len(groups)], width)
    ]


def _between(kind: str, a: Sequence[int], b: Sequence[int], width: int) -> list[Pair]:
    if kind == "rail":
        return list(zip(a[:width], b[:width], strict=False))
    return [(source, target) for source in a[:width] for target in (b if kind == "fan" else b[:width])]
