"""From named groups (Slurm's switches with their children) to a machine tree."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from palmette.discover.tree import tier_name
from palmette.topology.found import DiscoverError, SourceResult, some_names
from palmette.topology.model import Level, Machine, TreeNode
from palmette.topology.names import natural_key


@dataclass(slots=True)
class Group:
    """A switch as listed in a file: hosts and other switches below it, and the line number."""

    name: str
    hosts: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    line: int | None = None


def machine_of_groups(groups: dict[str, Group], found: SourceResult) -> Machine:
    """The machine of a set of switches that list their children.

    A level is a switch's height above hosts: 1 leaf, 2 pod, 3 tier3. Upper switches that list the same children are
    rails of one group. Raises DiscoverError for a switch below itself and for a file without hosts.
    """
    _drop_unknown(groups, found)
    _drop_upward(groups, found)
    heights = _heights(groups, found)
    groups = _join_rails(groups, found)
    parent: dict[str, str] = {}
    several: set[str] = set()
    for name in sorted(groups, key=lambda name: (heights[name], natural_key(name))):
        for child in groups[name].below:
            if parent.setdefault(child, name) != name:
                several.add(child)
    if several:
        found.warn(
            f"{len(several)} switch(es) are below several switches; each is kept below the first of the lowest: "
            f"{some_names(several)}"
        )
    homes, repeated = _homes(groups, heights)
    if repeated:
        found.warn(
            f"{len(repeated)} host(s) are listed at several switches; each is kept at the lowest, first listed: "
            f"{some_names(repeated)}"
        )
    if not homes:
        raise DiscoverError(f"no host in it, {found.source.path}; it needs lines with Nodes=")
    at: dict[str, list[str]] = {}
    for host, home in homes.items():
        at.setdefault(home, []).append(host)
    nodes = {name: _node(group, heights[name], at.get(name, [])) for name, group in groups.items()}
    # Lowest first, so that a switch without hosts below is removed before its parent is processed.
    empty = 0
    for name in sorted(groups, key=lambda name: (heights[name], natural_key(name))):
        below = [nodes[child] for child in groups[name].below if parent[child] == name and nodes[child].children]
        nodes[name].children = below + nodes[name].children
        empty += not nodes[name].children
    found.leave_out(empty, "switches", "no host is below them")
    return _machine([nodes[name] for name in groups if name not in parent and nodes[name].children], found)


def _machine(tops: list[TreeNode], found: SourceResult) -> Machine:
    if len(tops) == 1 and tops[0].level != "leaf":
        root = tops[0]
        root.level = None
    else:
        if len(tops) > 1:
            found.warn(
                f"{len(tops)} switches have no common root; a virtual root of unknown capacity joins them: "
                f"{some_names(top.name for top in tops)}"
            )
        root = TreeNode("fabric", children=tops)
    return Machine(level_list(root), root)


def level_list(root: TreeNode) -> list[Level]:
    """Levels of a tree made of tiers and hosts, outermost first."""
    used = {node.level for node in root.walk()}
    tallest = len(used) + 1
    numbers = [int(name[4:]) for name in used if name and name.startswith("tier")]
    names = [tier_name(number) for number in range(max([tallest, *numbers]), 0, -1)]
    return [*(Level(name) for name in names if name in used), Level("node")]


def _drop_unknown(groups: dict[str, Group], found: SourceResult) -> None:
    for group in groups.values():
        unknown = [child for child in group.below if child not in groups]
        if unknown:
            found.warn(
                f'switch "{group.name}" lists {len(unknown)} unknown one(s), the first: {unknown[0]}', group.line
            )
            group.below = [child for child in group.below if child in groups]


def _drop_upward(groups: dict[str, Group], found: SourceResult) -> None:
    """Some files list each link at both of its ends: then the end closer to hosts is below."""
    both = [
        (name, child)
        for name, group in groups.items()
        for child in group.below
        if name in groups[child].below and name != child
    ]
    if not both:
        return
    near: dict[str, set[str]] = {name: set(group.below) for name, group in groups.items()}
    for name, group in groups.items():
        for child in group.below:
            near[child].add(name)
    distance = {name: 0 for name, group in groups.items() if group.hosts}
    queue = deque(distance)
    while queue:
        name = queue.popleft()
        for other in near[name]:
            if other not in distance:
                distance[other] = distance[name] + 1
                queue.append(other)
    far = len(groups)
    for name, child in both:
        here, there = distance.get(name, far), distance.get(child, far)
        if here == there:
            place = f"{found.source.path}:{groups[name].line}" if groups[name].line else found.source.path
            raise DiscoverError(
                f'switches "{name}" and "{child}" list each other and are as far from hosts: a ring or torus is no '
                f"topology.conf, {place}; give the fabric by ibnetdiscover or the synthetic form"
            )
        if here < there:
            groups[name].below.remove(child)
    found.warn(
        f"{len(both) // 2} link(s) between switches are listed at both ends; the one closer to hosts is below: "
        f"{some_names(name for name, _ in both)}"
    )


def _heights(groups: dict[str, Group], found: SourceResult) -> dict[str, int]:
    heights: dict[str, int] = {}
    open_groups: set[str] = set()
    for start in groups:
        stack = [start]
        while stack:
            name = stack[-1]
            if name in heights:
                stack.pop()
                continue
            waiting = [child for child in groups[name].below if child not in heights]
            if not waiting:
                heights[name] = 1 + max((heights[child] for child in groups[name].below), default=0)
                open_groups.discard(name)
                stack.pop()
                continue
            open_groups.add(name)
            loop = next((child for child in waiting if child in open_groups), None)
            if loop is not None:
                place = f"{found.source.path}:{groups[loop].line}" if groups[loop].line else found.source.path
                raise DiscoverError(
                    f'switch "{loop}" is below itself, {place}; mend its Switches= line '
                    "(a ring or torus is no topology.conf)"
                )
            stack.extend(waiting)
    return heights


def _join_rails(groups: dict[str, Group], found: SourceResult) -> dict[str, Group]:
    same: dict[frozenset[str], list[str]] = {}
    for name, group in groups.items():
        if group.below:
            same.setdefault(frozenset(group.below), []).append(name)
    rails = [names for names in same.values() if len(names) > 1]
    if not rails:
        return groups
    gone: dict[str, str] = {}
    for names in rails:
        for other in names[1:]:
            gone[other] = names[0]
            groups[names[0]].hosts.extend(groups[other].hosts)
    found.warn(
        f"{len(gone)} switch(es) list the same switches as another one and are taken as its rails: {some_names(gone)}"
    )
    kept = {name: group for name, group in groups.items() if name not in gone}
    for group in kept.values():
        group.below = list(dict.fromkeys(gone.get(child, child) for child in group.below))
    return kept


def _homes(groups: dict[str, Group], heights: dict[str, int]) -> tuple[dict[str, str], set[str]]:
    """The lowest switch of every host, and the hosts that several switches of that height list.

    `scontrol show topology` lists hosts at every switch above them too.
    """
    homes: dict[str, str] = {}
    repeated: set[str] = set()
    for name in sorted(groups, key=lambda name: heights[name]):
        for host in groups[name].hosts:
            first = homes.setdefault(host, name)
            if first != name and heights[first] == heights[name]:
                repeated.add(host)
    return homes, repeated


def _node(group: Group, height: int, hosts: list[str]) -> TreeNode:
    children = [TreeNode(host, "node") for host in sorted(hosts, key=natural_key)]
    return TreeNode(group.name, tier_name(height), children=children)
