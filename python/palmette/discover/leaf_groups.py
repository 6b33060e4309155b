"""Which leaf switches serve the same hosts, and to which group of leaves a host belongs.

With several rails a host hangs at one leaf per rail, and all hosts of a rack or scalable unit share one set of leaves.
That set is the group; a few hosts with cables elsewhere don't merge two leaves (docs/decisions/0003).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

from palmette.discover.tiers import Groups


def leaf_groups(host_switches: Mapping[str, Mapping[int, float]], leaves: set[int]) -> dict[int, int]:
    """The group of every leaf, named by its smallest GUID.

    host_switches: for each host its switches and the capacity towards each. Two leaves are one group when at least
    half of the hosts of either one hang at the other too.
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


def home_of(switches: Mapping[int, float], group_of: Mapping[int, int]) -> tuple[int, bool]:
    """The switch (a group's name for a leaf) that a host stands under, and whether it has cables elsewhere too.

    The place with most capacity wins, a leaf before an upper switch, then the smallest GUID.
    """
    capacity: dict[int, float] = {}
    cables_at_leaf: dict[int, bool] = {}
    for switch, rate in switches.items():
        place = group_of.get(switch, switch)
        capacity[place] = capacity.get(place, 0.0) + rate
        cables_at_leaf[place] = switch in group_of
    best = min(capacity, key=lambda place: (not cables_at_leaf[place], -capacity[place], place))
    return best, len(capacity) > 1
