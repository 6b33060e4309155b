"""From a clean fabric to the machine tree: hosts, leaves, pods, up to the root.

A group of tier k is a connected component of the fabric restricted to switches up to tier k. Such components are always
nested, in regular and irregular fabrics; a tier that groups nothing gives no level
(docs/decisions/0003-fabric-to-tree.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from palmette.discover.chassis import CHASSIS, add_chassis
from palmette.discover.clean import CleanFabric
from palmette.discover.leaf_groups import home_of, leaf_groups, off_tree_leaves
from palmette.discover.tiers import Groups, neighbours, tiers
from palmette.topology.found import SourceResult, some_names
from palmette.topology.model import Level, Machine, TreeNode
from palmette.topology.names import natural_key


@dataclass(slots=True)
class FabricTree:
    """The machine and the tier of every switch that reaches a host."""

    machine: Machine
    tier: dict[int, int] = field(default_factory=dict)


def tier_name(tier: int) -> str:
    """The level name of switches of this tier."""
    return {1: "leaf", 2: "pod"}.get(tier, f"tier{tier}")


def build_tree(fabric: CleanFabric, found: SourceResult) -> FabricTree:
    """The machine tree of a fabric; ambiguities that had to be resolved are reported to `found`."""
    served: dict[int, int] = defaultdict(int)
    for cable in fabric.host_cables:
        served[cable.b] += 1
    near = neighbours((cable.a, cable.b) for cable in fabric.trunks)
    tier = tiers(served, near)
    found.leave_out(len(fabric.switches) - len(tier), "switches", "no path leads from them to a host")
    builder = _Builder(fabric, tier, found)
    return FabricTree(builder.build(), tier)


class _Builder:
    def __init__(self, fabric: CleanFabric, tier: dict[int, int], found: SourceResult) -> None:
        self.fabric = fabric
        self.tier = tier
        self.found = found
        self.top = max(tier.values(), default=1)
        leaves = {switch for switch, number in tier.items() if number == 1}
        everything, _ = self._host_rates(frozenset())
        off_tree = off_tree_leaves(everything, leaves, [(cable.a, cable.b) for cable in fabric.trunks])
        self.host_switches, self.host_rate = self._host_rates(off_tree)
        # Hosts without another switch are still placed there.
        self.off_tree = off_tree - {switch for switches in self.host_switches.values() for switch in switches}
        self.trunks = [cable for cable in fabric.trunks if not self.off_tree & {cable.a, cable.b}]
        self._warn_off_tree(off_tree)
        self.group_of = leaf_groups(self.host_switches, leaves - self.off_tree)

    def _warn_off_tree(self, off_tree: Collection[int]) -> None:
        if not off_tree:
            return
        self.found.warn(
            f"{len(off_tree)} switch(es) serve hosts of several leaves, as a storage or management network or another "
            f"rail does; their cables to those hosts are left out of the tree: "
            f"{some_names(self.fabric.names[guid] for guid in off_tree)}"
        )

    def _host_rates(self, off_tree: Collection[int]) -> tuple[dict[str, dict[int, float]], dict[str, float | None]]:
        """Each host's switches with the capacity towards them, and the sum; `off_tree` only where it has no others."""
        owner = {adapter: name for name, adapters in self.fabric.hosts.items() for adapter in adapters}
        switches: dict[str, dict[int, float]] = {name: {} for name in self.fabric.hosts}
        rate: dict[str, float | None] = dict.fromkeys(self.fabric.hosts, 0.0)
        in_tree = {owner[cable.a] for cable in self.fabric.host_cables if cable.a in owner and cable.b not in off_tree}
        for cable in self.fabric.host_cables:
            name = owner.get(cable.a)
            if name is None or (cable.b in off_tree and name in in_tree):
                continue
            speed = cable.bytes_per_s
            switches[name][cable.b] = switches[name].get(cable.b, 0.0) + (speed or 0.0)
            total = rate[name]
            rate[name] = None if total is None or speed is None else total + speed
        return switches, rate

    def build(self) -> Machine:
        partitions = self._partitions()
        ups = [self._capacity_leaving(part) for part in partitions]
        members = [self._members(part) for part in partitions]
        # groups[g] is the subtree of group g of the current partition.
        groups = self._leaves(ups[0], members[0])
        above = self._hosts_above()
        for number in range(1, len(partitions)):
            groups = self._merge(number, groups, partitions[number], ups[number], members[number], above)
        root = self._root(list(groups.values()))
        add_chassis(root, self.fabric, self.trunks)
        used = {node.level for node in root.walk()}
        names = [tier_name(number) for number in range(self.top, 1, -1)] + ["cabled", CHASSIS, "leaf"]
        levels = [Level(name) for name in ["island", *names] if name in used]
        return Machine([*levels, Level("node")], root)

    def _partitions(self) -> list[dict[int, int]]:
        """Partition 0 has the leaf groups (upper switches are singletons); partition k joins switches up to tier k."""
        groups = Groups(self.tier)
        for leaf, group in self.group_of.items():
            groups.join(leaf, group)
        partitions = [{switch: groups.find(switch) for switch in self.tier}]
        pairs = {(cable.a, cable.b) for cable in self.trunks if cable.a in self.tier}
        for number in range(1, self.top + 1):
            for a, b in pairs:
                if max(self.tier[a], self.tier[b]) == number:
                    groups.join(a, b)
            partitions.append({switch: groups.find(switch) for switch in self.tier})
        return partitions

    def _capacity_leaving(self, part: dict[int, int]) -> dict[int, float | None]:
        """Sum of the rates of cables that leave each group; None where one is unknown; missing where there is none."""
        total: dict[int, float | None] = {}
        for cable in self.trunks:
            a, b = part.get(cable.a), part.get(cable.b)
            if a is None or b is None or a == b:
                continue
            rate = cable.bytes_per_s
            for group in (a, b):
                so_far = total.get(group, 0.0)
                total[group] = None if so_far is None or rate is None else so_far + rate
        return total

    def _members(self, part: dict[int, int]) -> dict[int, list[int]]:
        members: dict[int, list[int]] = defaultdict(list)
        for switch, group in part.items():
            members[group].append(switch)
        return members

    def _host(self, name: str) -> TreeNode:
        return TreeNode(name, "node", self.host_rate[name] or None)

    def _leaves(self, ups: dict[int, float | None], members: dict[int, list[int]]) -> dict[int, TreeNode]:
        at: dict[int, list[str]] = defaultdict(list)
        elsewhere: list[str] = []
        self.above: dict[int, list[str]] = defaultdict(list)
        order = self._order_of_places()
        for name, switches in self.host_switches.items():
            if not switches:
                continue
            place, several = home_of(switches, self.group_of, order)
            if several:
                elsewhere.append(name)
            (at if self.tier[place] == 1 else self.above)[place].append(name)
        if elsewhere:
            self.found.warn(
                f"{len(elsewhere)} host(s) are connected to leaves of several groups; each is placed under the one "
                f"with most capacity: {some_names(elsewhere)}"
            )
        empty = 0
        groups = {}
        for group in sorted(set(self.group_of.values())):
            if not at[group]:
                empty += 1
                continue
            rails = sorted(members[group], key=lambda guid: natural_key(self.fabric.names[guid]))
            name = self.fabric.names[rails[0]] + (f" +{len(rails) - 1}" if len(rails) > 1 else "")
            leaf = TreeNode(name, "leaf", ups.get(group), self._can_reduce(rails))
            leaf.switches = [self.fabric.switches[guid].id for guid in rails]
            leaf.children = [self._host(host) for host in sorted(at[group], key=natural_key)]
            groups[group] = leaf
        self.found.leave_out(empty, "leaf groups", "no host with a name is connected there")
        return groups

    def _order_of_places(self) -> dict[int, int]:
        """Ranks of places, by first host, then by number of hosts: independent of GUIDs."""
        hosts: dict[int, list[str]] = defaultdict(list)
        for name, switches in self.host_switches.items():
            for switch in switches:
                hosts[self.group_of.get(switch, switch)].append(name)
        keys = {place: (min(map(natural_key, names)), len(names), sorted(names)) for place, names in hosts.items()}
        return {place: number for number, place in enumerate(sorted(keys, key=lambda place: keys[place]))}

    def _hosts_above(self) -> dict[int, list[TreeNode]]:
        """Hosts at switches above the leaves, by switch."""
        count = sum(len(names) for names in self.above.values())
        if count:
            names = some_names(name for names in self.above.values() for name in names)
            self.found.warn(
                f"{count} host(s) are connected to switches above the leaves and placed next to the groups there: "
                f"{names}"
            )
        return {place: [self._host(name) for name in names] for place, names in self.above.items()}

    def _can_reduce(self, switches: list[int]) -> bool:
        return bool(switches) and all(guid in self.fabric.can_reduce for guid in switches)

    def _merge(
        self,
        number: int,
        groups: dict[int, TreeNode],
        part: dict[int, int],
        ups: dict[int, float | None],
        members: dict[int, list[int]],
        above: dict[int, list[TreeNode]],
    ) -> dict[int, TreeNode]:
        """Merges `groups` into groups of tier `number`; a group of one child is replaced by that child."""
        children: dict[int, list[TreeNode]] = defaultdict(list)
        for place, group in groups.items():
            children[part[place]].append(group)
        for switch, hosts in above.items():
            if self.tier[switch] == number:
                children[part[switch]].extend(hosts)
        # Leaves that are linked directly, without a switch above them.
        level = "cabled" if number == 1 else tier_name(number)
        merged: dict[int, TreeNode] = {}
        fresh = []
        for place, inner in children.items():
            up = ups.get(place)
            if len(inner) == 1 and inner[0].level != "node":
                only = inner[0]
                if up is not None and only.up_bytes_per_s is not None:
                    up = min(up, only.up_bytes_per_s)
                only.up_bytes_per_s = up
                if only.level != "leaf":
                    # Switches above the only group still belong to it.
                    above_it = sorted(guid for guid in members[place] if self.tier[guid] == number > 1)
                    only.switches += [self.fabric.switches[guid].id for guid in above_it]
                merged[place] = only
                continue
            inner.sort(key=_order)
            # Cabled leaves have no switch above them.
            here = [guid for guid in members[place] if self.tier[guid] == number > 1]
            node = TreeNode("", level, up, self._can_reduce(here))
            node.switches = [self.fabric.switches[guid].id for guid in sorted(here)]
            node.children = inner
            merged[place] = node
            fresh.append(node)
        for index, node in enumerate(sorted(fresh, key=_order), 1):
            node.name = f"{level}{'-' if level[-1].isdigit() else ''}{index}"
        return merged

    def _root(self, tops: list[TreeNode]) -> TreeNode:
        bare = [self._host(name) for name, switches in self.host_switches.items() if not switches]
        if bare:
            self.found.warn(
                f"{len(bare)} host(s) are cabled to each other without a switch: "
                f"{some_names(host.name for host in bare)}"
            )
        tops.sort(key=_order)
        if len(tops) == 1 and tops[0].level not in ("leaf", "node") and not bare:
            root = tops[0]
            root.name, root.level, root.up_bytes_per_s = "fabric", None, None
            return root
        if len(tops) + bool(bare) > 1:
            self.found.warn(
                f"{len(tops) + bool(bare)} parts of the fabric have no link between them; a virtual root of unknown "
                "capacity joins them; hosts of each: "
                f"{some_names(next(iter(top.hosts())).name for top in tops + bare[:1])}"
            )
        for index, top in enumerate(tops, 1):
            # Parts may differ in height: each is an island, whatever its own top tier.
            if top.level not in ("leaf", "node"):
                top.name, top.level = f"island{index}", "island"
        bare.sort(key=_order)
        return TreeNode("fabric", children=tops + bare)


def _order(node: TreeNode) -> tuple[tuple[int, int, str], ...]:
    """Natural order of the names; a group without a name is sorted by its first host or leaf."""
    while not node.name and node.children:
        node = node.children[0]
    return natural_key(node.name)
