"""Chassis as a level: leaves that ibnetdiscover lists under one heading, where that heading is a place.

`ibnetdiscover -g` heads with "Chassis N" whatever shares a system GUID: a director's boards, but a single switch or a
card of two ports as well. It is a level where the chassis' switches connect several leaves among each other, without a
way outside, and where other groups stand beside it; else it tells nothing that the tree doesn't.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from palmette.discover.clean import CleanFabric
from palmette.discover.fabric import Cable
from palmette.discover.tiers import Groups
from palmette.topology.model import TreeNode
from palmette.topology.names import natural_key

CHASSIS = "chassis"


def add_chassis(root: TreeNode, fabric: CleanFabric, trunks: Collection[Cable]) -> None:
    """Put the leaves of each chassis under a group of its own, in place."""
    of_id = {device.id: device.chassis for device in fabric.switches.values()}
    inside: dict[int, list[int]] = defaultdict(list)
    for guid, device in fabric.switches.items():
        if device.chassis is not None:
            inside[device.chassis].append(guid)
    part = _connected(fabric, trunks)
    part_of = {device.id: part.find(guid) for guid, device in fabric.switches.items()}
    number = 0
    for node in list(root.walk()):
        found: dict[int, list[TreeNode]] = defaultdict(list)
        for child in node.children:
            chassis = _chassis_of(child, of_id)
            if chassis is not None:
                found[chassis].append(child)
        for chassis, leaves in sorted(found.items(), key=lambda item: natural_key(item[1][0].name)):
            connected = len({part_of[switch] for leaf in leaves for switch in leaf.switches}) == 1
            if len(leaves) < 2 or len(leaves) == len(node.children) or not connected:
                continue
            number += 1
            group = TreeNode(f"{CHASSIS}{number}", CHASSIS, _leaving(inside[chassis], trunks))
            group.can_reduce = all(leaf.can_reduce for leaf in leaves)
            leading = {switch for leaf in leaves for switch in leaf.switches}
            group.switches = sorted({fabric.switches[guid].id for guid in inside[chassis]} - leading)
            group.children = leaves
            at = node.children.index(leaves[0])
            gone = {id(leaf) for leaf in leaves}
            node.children = [
                other
                for index, child in enumerate(node.children)
                for other in ([group] if index == at else [] if id(child) in gone else [child])
            ]


def _connected(fabric: CleanFabric, trunks: Iterable[Cable]) -> Groups:
    """Switches that reach each other inside of their chassis."""
    part = Groups(fabric.switches)
    for cable in trunks:
        a, b = fabric.switches.get(cable.a), fabric.switches.get(cable.b)
        if a is not None and b is not None and a.chassis is not None and a.chassis == b.chassis:
            part.join(cable.a, cable.b)
    return part


def _chassis_of(leaf: TreeNode, of_id: dict[str, int | None]) -> int | None:
    """The chassis of all switches of a leaf; None where they have several, or it is none."""
    places = {of_id.get(switch) for switch in leaf.switches} if leaf.level == "leaf" else set()
    return next(iter(places)) if len(places) == 1 else None


def _leaving(switches: Collection[int], trunks: Iterable[Cable]) -> float | None:
    """The sum of the rates of cables that leave a chassis; None where one is unknown, or there is none."""
    own, total = set(switches), 0.0
    for cable in trunks:
        if (cable.a in own) == (cable.b in own):
            continue
        if cable.bytes_per_s is None:
            return None
        total += cable.bytes_per_s
    return total or None
