"""Folding of a machine tree: equal siblings become one, with a count and their names.

Two groups are equal when they have the same level, capacity, inside and equal children in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from palmette.discover.hostlist import fold as fold_names
from palmette.topology.model import Aggregator, TreeNode


@dataclass(slots=True)
class SiblingGroup:
    """Siblings that are drawn once. `members` are all nodes that it represents, under all parents.

    each: fewest and most of them under one parent. alike: False when different groups of one level were
    merged.
    """

    level: str | None
    each: tuple[int, int]
    members: list[TreeNode]
    children: list[SiblingGroup] = field(default_factory=list)
    alike: bool = True
    hosts_each: tuple[int, int] = (0, 0)

    @property
    def count(self) -> int:
        """The most of them under one parent."""
        return self.each[1]

    @property
    def count_text(self) -> str:
        """`4`, or `2 to 4` where parents differ."""
        few, many = self.each
        return f"{many:,}" if few == many else f"{few:,} to {many:,}"

    @property
    def names(self) -> str:
        return fold_names([member.name for member in self.members])

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Least and most capacity upwards; None when none is known."""
        known = [member.up_bytes_per_s for member in self.members if member.up_bytes_per_s is not None]
        return (min(known), max(known)) if known else (None, None)

    @property
    def switches_each(self) -> tuple[int, int]:
        counts = [len(member.switches) for member in self.members]
        return min(counts), max(counts)

    @property
    def can_reduce(self) -> bool:
        return all(member.can_reduce for member in self.members)

    @property
    def aggregators(self) -> list[Aggregator]:
        """Aggregators of one member, where all members have the same number."""
        counts = {len(member.aggregators) for member in self.members}
        return self.members[0].aggregators if len(counts) == 1 else []

    def inside(self) -> str | None:
        """The inside that all members share."""
        names = {member.inside for member in self.members}
        return next(iter(names)) if len(names) == 1 else None

    def to_json(self) -> dict[str, Any]:
        low, high = self.rates
        return {
            "level": self.level,
            "count": list(self.each),
            "names": self.names,
            "hosts_each": list(self.hosts_each),
            "up_bytes_per_s": None if low is None else [low, high],
            "can_reduce": self.can_reduce,
            "aggregators": [one.up_bytes_per_s for one in self.aggregators],
            "inside": self.inside(),
            "children": [child.to_json() for child in self.children],
        }


class Folder:
    """Folds one tree. The signatures and numbers of hosts of all nodes are computed once."""

    def __init__(self, root: TreeNode) -> None:
        self.root = root
        self._signature: dict[int, int] = {}
        self._hosts: dict[int, int] = {}
        interned: dict[Any, int] = {}
        for node in reversed(list(root.walk())):
            below = tuple(sorted(self._signature[id(child)] for child in node.children))
            links = tuple(one.up_bytes_per_s for one in node.aggregators)
            own_parts = (node.level, node.up_bytes_per_s, node.can_reduce, node.inside, node.slots, len(node.switches))
            key = (*own_parts, links, below)
            self._signature[id(node)] = interned.setdefault(key, len(interned))
            own = 1 if node.level == "node" else 0
            self._hosts[id(node)] = own + sum(self._hosts[id(child)] for child in node.children)

    def hosts(self, node: TreeNode) -> int:
        """Hosts at or below a node."""
        return self._hosts[id(node)]

    def fold(self, equal: bool = True, by_level_above: int | None = None) -> SiblingGroup:
        """The folded tree.

        equal: fold equal siblings; otherwise only hosts are folded. by_level_above: where a parent has more
        different children than this, those of one level are merged though they differ.
        """
        return self._fold([self.root], (1, 1), equal, by_level_above)

    def _fold(self, members: list[TreeNode], each: tuple[int, int], equal: bool, most: int | None) -> SiblingGroup:
        hosts = [self._hosts[id(member)] for member in members]
        folded = SiblingGroup(members[0].level, each, members, hosts_each=(min(hosts), max(hosts)))
        folded.alike = len({self._signature[id(member)] for member in members}) == 1
        groups = self._group(members, equal)
        if most is not None and len(groups) > most:
            by_level: dict[Any, list[TreeNode]] = {}
            for group in groups:
                by_level.setdefault(group[0].level, []).extend(group)
            groups = list(by_level.values())
        parent = {id(child): index for index, member in enumerate(members) for child in member.children}
        for group in groups:
            counts = [0] * len(members)
            for child in group:
                counts[parent[id(child)]] += 1
            folded.children.append(self._fold(group, (min(counts), max(counts)), equal, most))
        return folded

    def _group(self, members: Iterable[TreeNode], equal: bool) -> list[list[TreeNode]]:
        groups: dict[Any, list[TreeNode]] = {}
        for member in members:
            for child in member.children:
                key = self._signature[id(child)] if equal else ("host" if child.level == "node" else id(child))
                groups.setdefault(key, []).append(child)
        return list(groups.values())
