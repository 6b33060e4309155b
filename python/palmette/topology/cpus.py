"""The inside of a node from sets of processors: boards, sockets, NUMA nodes, caches and cores as nested levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from palmette.topology.model import InsideGroup

ORDER = ("board", "socket", "die", "numa", "l4", "l3", "cluster", "l2", "l1", "core")
"""Levels inside a node, outermost first as most machines have them. Which one is outside of which is read from the
processors: a NUMA node may hold several sockets.
"""
_FIRST = ("socket", "core", "numa", "l3", "die", "l2", "l4", "l1", "board", "cluster")
"""Which one's name a level has that several describe, and which one stays where two cut across each other."""
_ALWAYS = ("socket", "core")


@dataclass(slots=True)
class NodeGroups:
    """The groups of a node, equal neighbours folded, and what of the given levels isn't among them.

    `same` maps a level to the one whose groups hold the same processors, `node` for the whole and `part` where one
    group is known and others aren't; `crossing` are those that overlap or cut across another one.
    """

    groups: list[InsideGroup]
    same: dict[str, str] = field(default_factory=dict)
    crossing: list[str] = field(default_factory=list)

    def same_text(self) -> str:
        """Return `numa and l3 are the socket, l2 is the core`."""
        kinds: dict[str, list[str]] = {}
        for name, other in self.same.items():
            kinds.setdefault(other, []).append(name)
        parts = []
        for other, names in kinds.items():
            listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
            what = {"node": "the whole node", "part": "known of one part only"}.get(other, f"the {other}")
            parts.append(f"{listed} {'is' if len(names) == 1 else 'are'} {what}")
        return ", ".join(parts)


class _Masks:
    """The groups of one level: disjoint sets of processors, and which of them a processor belongs to."""

    def __init__(self, masks: Sequence[int]) -> None:
        self.masks = masks
        self.all = 0
        for mask in masks:
            self.all |= mask
        self.owners: dict[int, int] | None = None

    def hold(self, inner: _Masks) -> bool:
        """Whether each set of `inner` lies in one of these, or touches none."""
        owners = self._owners()
        for mask in inner.masks:
            group = owners.get(_lowest(mask))
            if mask & self.all if group is None else mask & ~group:
                return False
        return True

    def _owners(self) -> dict[int, int]:
        """Return the set of each processor, the latter as a mask of one bit."""
        if self.owners is None:
            self.owners = {}
            for mask in self.masks:
                left = mask
                while left:
                    self.owners[_lowest(left)] = mask
                    left &= left - 1
        return self.owners


def nested_groups(sets: Mapping[str, Sequence[int]]) -> NodeGroups:
    """Return the groups of a node from bit masks of processors per level.

    socket and core stay whenever they are known, others only where they divide the enclosing group and aren't another
    level's. One that cuts across others is left out. Cost: about one step for each processor and level.
    """
    levels: list[tuple[str, _Masks]] = []
    found = NodeGroups([])
    everything = 0
    for masks in sets.values():
        for mask in masks:
            everything |= mask
    for name in sorted(sets, key=_priority):
        mine = _disjoint(sets[name])
        if mine is None:
            found.crossing.append(name)
        elif mine.masks:
            _place(levels, name, mine, everything, found)
    order = {name: index for index, name in enumerate(sets)}
    found.crossing.sort(key=lambda name: order[name])
    whole = 0
    for _, level in levels:
        whole |= level.all
    found.groups = _groups([(name, level.masks) for name, level in levels], whole)
    return found


def _priority(name: str) -> tuple[int, str]:
    plain = name.rstrip("0123456789") if name not in _FIRST else name
    return (_FIRST.index(plain) if plain in _FIRST else len(_FIRST), name)


def _disjoint(given: Sequence[int]) -> _Masks | None:
    """Return the sets in the order of their first processors; None where they overlap.

    With heterogeneous memory several NUMA nodes have the same processors: one of them is enough.
    """
    masks = sorted({mask for mask in given if mask}, key=_lowest)
    seen = 0
    for mask in masks:
        if seen & mask:
            return None
        seen |= mask
    return _Masks(masks)


def _place(levels: list[tuple[str, _Masks]], name: str, mine: _Masks, everything: int, found: NodeGroups) -> None:
    """Insert a level below those that hold it and above those that it holds."""
    if name not in _ALWAYS:
        # One NUMA node with some of the processors separates them from the others, which have no local memory.
        if len(mine.masks) == 1 and (name != "numa" or mine.all == everything):
            found.same[name] = "node" if mine.all == everything else "part"
            return
        twin = next((other for other, level in levels if set(mine.masks) <= set(level.masks)), None)
        if twin is not None:
            found.same[name] = twin
            return
    at = 0
    while at < len(levels) and levels[at][1].hold(mine):
        at += 1
    if any(not mine.hold(level) for _, level in levels[at:]):
        found.crossing.append(name)
        return
    levels.insert(at, (name, mine))


def _groups(levels: Sequence[tuple[str, Sequence[int]]], within: int) -> list[InsideGroup]:
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


def without_level(groups: Sequence[InsideGroup], level: str) -> list[InsideGroup]:
    """Return the groups with those of `level` replaced by what is in them."""
    result: list[InsideGroup] = []
    for group in groups:
        below = without_level(group.children, level)
        if group.level != level:
            _append(result, InsideGroup(group.level, group.count, below, group.up_bytes_per_s))
            continue
        for _ in range(group.count):
            for one in below:
                _append(result, InsideGroup(one.level, one.count, one.children, one.up_bytes_per_s))
    return result


def nesting(groups: Sequence[InsideGroup]) -> list[tuple[str, str]]:
    """Return which level is right outside of which, each pair once."""
    pairs: dict[tuple[str, str], None] = {}
    for group in groups:
        for child in group.children:
            pairs[group.level, child.level] = None
        pairs |= dict.fromkeys(nesting(group.children))
    return list(pairs)


def level_names(groups: Sequence[InsideGroup]) -> list[str]:
    """Return the names of all levels, in the order in which they are met."""
    names: dict[str, None] = {}
    for group in groups:
        names |= dict.fromkeys([group.level, *level_names(group.children)])
    return list(names)
