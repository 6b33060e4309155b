"""The inside of a node from sets of processors: sockets, NUMA nodes, L3 caches and cores as nested levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palmette.topology.model import InsideGroup

ORDER = ("socket", "numa", "l3", "core")
"""Levels inside a node, outermost first where two hold the same processors."""


def nested_groups(sets: Mapping[str, Sequence[int]]) -> tuple[list[InsideGroup], list[str]]:
    """Groups of a node from bit masks of processors per level, equal neighbours folded; and the levels left out.

    socket and core stay whenever they are known, numa and l3 only where they divide the enclosing group. A level that
    cuts across one outside it (a NUMA node over two sockets) is left out.
    """
    levels: list[tuple[str, list[int]]] = []
    crossing: list[str] = []
    whole = 0
    everything = 0
    for mask in (mask for name in ORDER for mask in sets.get(name, ())):
        everything |= mask
    for name in ORDER:
        masks = sorted({mask for mask in sets.get(name, ()) if mask}, key=_lowest)
        # One NUMA node with some of the processors separates them from the others, which have no local memory.
        one = len(masks) == 1 and (name == "l3" or (name == "numa" and masks[0] == everything))
        if not masks or one:
            continue
        # With heterogeneous memory several NUMA nodes have the same processors: one of them is enough.
        if any(a & b for index, a in enumerate(masks) for b in masks[index + 1 :]) or any(
            outer & mask and mask & ~outer for _, outers in levels for outer in outers for mask in masks
        ):
            crossing.append(name)
            continue
        divides = not levels or any(mask not in levels[-1][1] for mask in masks)
        if name in ("numa", "l3") and not divides:
            continue
        for mask in masks:
            whole |= mask
        levels.append((name, masks))
    # A private L3 of each core is no level of its own.
    if len(levels) > 1 and levels[-1][0] == "core" and levels[-2][0] == "l3" and levels[-1][1] == levels[-2][1]:
        del levels[-2]
    return _groups(levels, whole), crossing


def _groups(levels: Sequence[tuple[str, list[int]]], within: int) -> list[InsideGroup]:
    if not levels:
        return []
    name, masks = levels[0]
    groups: list[InsideGroup] = []
    left = within
    for mask in masks:
        if mask & within == mask:
            left &= ~mask
            _append(groups, InsideGroup(name, 1, _groups(levels[1:], mask)))
    if left:
        # Processors that no group of this level holds: the next levels hold them directly.
        for group in _groups(levels[1:], left):
            _append(groups, group)
    return groups


def _append(groups: list[InsideGroup], group: InsideGroup) -> None:
    if groups and groups[-1].level == group.level and groups[-1].children == group.children:
        groups[-1].count += group.count
    else:
        groups.append(group)


def _lowest(mask: int) -> int:
    return mask & -mask


def inside_name(groups: Sequence[InsideGroup]) -> str:
    """A short name of an inside in the synthetic form: `2socket:8core`; uneven parts are joined by `+`."""
    parts = []
    for group in groups:
        below = f":{inside_name(group.children)}" if group.children else ""
        parts.append(f"{group.count}{group.level}{below}")
    return "+".join(parts)


def inside_levels(groups: Sequence[InsideGroup]) -> list[str]:
    """All level names below, outermost first."""
    names: list[str] = []
    for group in groups:
        for name in (group.level, *inside_levels(group.children)):
            if name not in names:
                names.append(name)
    return sorted(names, key=lambda name: ORDER.index(name)) if set(names) <= set(ORDER) else names
