"""The tier of every switch: its distance from hosts. Tier 1 (leaf) serves hosts.

An upper switch often serves a host or two (subnet manager, storage, log-in); taken as a leaf it would collapse the
whole fabric to one tier. So distances are first computed from the switches that serve many hosts, and a switch with few
hosts is a leaf only if it doesn't connect parts of the fabric that are separate without it (docs/decisions/0003).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from statistics import median

FEW_DIVISOR = 2
"""A switch serves few hosts if it serves fewer than 1/FEW_DIVISOR of the median of all host-serving switches."""


class Groups:
    """Union-find with path halving; the smallest member represents a set, so that the result is order-independent."""

    def __init__(self, members: Iterable[int]) -> None:
        self._parent = {member: member for member in members}

    def find(self, member: int) -> int:
        parent = self._parent
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    def join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            self._parent[max(a, b)] = min(a, b)


def neighbours(trunks: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    """Adjacent switches of every switch."""
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in trunks:
        near[a].add(b)
        near[b].add(a)
    return near


def tiers(served: Mapping[int, int], near: Mapping[int, set[int]]) -> dict[int, int]:
    """Tier by switch, for all that reach a host.

    served: number of adapters at a switch, for those that serve any. near: adjacent switches.
    """
    if not served:
        return {}
    typical = median(served.values())
    strong = [switch for switch, count in served.items() if count * FEW_DIVISOR >= typical]
    distance = _distances(strong, near)
    leaves = set(strong)
    upper: dict[int, int] = {}
    for switch in sorted(set(served) - leaves):
        far = distance.get(switch)
        if far is not None and _joins(switch, far, distance, near):
            upper[switch] = far
        else:
            leaves.add(switch)
    return _distances(sorted(leaves), near)


def _distances(starts: Iterable[int], near: Mapping[int, set[int]]) -> dict[int, int]:
    distance = dict.fromkeys(starts, 1)
    queue = deque(distance)
    while queue:
        switch = queue.popleft()
        for other in near.get(switch, ()):
            if other not in distance:
                distance[other] = distance[switch] + 1
                queue.append(other)
    return distance


def _joins(switch: int, far: int, distance: Mapping[int, int], near: Mapping[int, set[int]]) -> bool:
    """Whether this switch connects separate parts of the fabric made of the switches closer to hosts."""
    lower = Groups(other for other, d in distance.items() if d < far)
    for other, d in distance.items():
        for third in near.get(other, ()) if d < far else ():
            if distance[third] < far:
                lower.join(other, third)
    return len({lower.find(other) for other in near.get(switch, ()) if distance[other] < far}) > 1
