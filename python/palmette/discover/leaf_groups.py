"""Multi-rail leaf groups: leaf switches that serve the same hosts, and the group of each host.

With several rails a host is connected to one leaf per rail, and all hosts of a rack or scalable unit share one set of
leaves. That set is the group; a few hosts with cables elsewhere don't merge two leaves (docs/decisions/0003).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import combinations

from palmette.discover.tiers import Groups


def off_tree_leaves(
    host_switches: Mapping[str, Mapping[int, float]], leaves: set[int], trunks: Collection[tuple[int, int]]
) -> set[int]:
    """The leaves that carry no locality information: each serves hosts that other leaves separate.

    Such a switch belongs to a separate storage or management network, or to a rail with larger switches than another
    one. More than half of its hosts are also connected to smaller leaves, which share most of their hosts with it, few
    with each other, and have a path to each other without it.
    """
    hosts_at: dict[int, set[str]] = {leaf: set() for leaf in leaves}
    for host, switches in host_switches.items():
        for switch in switches:
            if switch in leaves:
                hosts_at[switch].add(host)
    found = set()
    for leaf, hosts in hosts_at.items():
        near = {other for host in hosts for other in host_switches[host] if other in leaves and other != leaf}
        inside = [
            other
            for other in sorted(near)
            if len(hosts_at[other]) < len(hosts) and 2 * len(hosts_at[other] & hosts) >= len(hosts_at[other])
        ]
        pairs = combinations(inside, 2)
        apart = next(((a, b) for a, b in pairs if 2 * len(hosts_at[a] & hosts_at[b]) < _fewer(hosts_at, a, b)), None)
        covered = set().union(*(hosts_at[other] for other in inside))
        if apart and 2 * len(hosts & covered) > len(hosts) and _connected(*apart, leaf, trunks):
            found.add(leaf)
    return found


def _fewer(hosts_at: Mapping[int, set[str]], a: int, b: int) -> int:
    return min(len(hosts_at[a]), len(hosts_at[b]))


def _connected(a: int, b: int, without: int, trunks: Collection[tuple[int, int]]) -> bool:
    groups = Groups({a, b, *(switch for pair in trunks for switch in pair)})
    for one, other in trunks:
        if without not in (one, other):
            groups.join(one, other)
    return groups.find(a) == groups.find(b)


def leaf_groups(host_switches: Mapping[str, Mapping[int, float]], leaves: set[int]) -> dict[int, int]:
    """The group of every leaf, named by its smallest GUID.

    host_switches: for each host its switches and the capacity towards each. Two leaves are in one group when at least
    half of the hosts of each are connected to the other too.
    """
    hosts_at: Counter[int] = Counter()
    shared: Counter[tuple[int, int]] = Counter()
    for switches in host_switches.values():
        mine = sorted(switch for switch in switches if switch in leaves)
        hosts_at.update(mine)
        if len(mine) > 1:
            shared.update(combinations(mine, 2))
    groups = Groups(leaves)
    for (a, b), count in shared.items():
        if 2 * count >= max(hosts_at[a], hosts_at[b]):
            groups.join(a, b)
    return {leaf: groups.find(leaf) for leaf in leaves}


def home_of(switches: Mapping[int, float], group_of: Mapping[int, int], order: Mapping[int, int]) -> tuple[int, bool]:
    """The switch (for a leaf, its group) that a host is placed under, and whether it has cables elsewhere too.

    The place with most capacity wins, a leaf before an upper switch, then the first in `order`, which ranks the places
    independently of GUIDs.
    """
    capacity: dict[int, float] = {}
    cables_at_leaf: dict[int, bool] = {}
    for switch, rate in switches.items():
        place = group_of.get(switch, switch)
        capacity[place] = capacity.get(place, 0.0) + rate
        cables_at_leaf[place] = switch in group_of
    best = min(capacity, key=lambda place: (not cables_at_leaf[place], -capacity[place], order[place]))
    return best, len(capacity) > 1
