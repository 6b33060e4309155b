"""Merging several sources into one topology: the fabric from one, the intra-node topology from another.

The first source with a tree of hosts provides the tree. Later ones fill in missing capacities and the fabric section;
hosts that only one of them has are reported. Intra-node topologies (insides) go to the hosts that they name, and the
first one to all hosts without.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from palmette.discover.inside_order import order_levels
from palmette.topology.cpus import inside_name, level_names
from palmette.topology.found import DiscoverError, SourceResult, some_names
from palmette.topology.model import MOST_LEVELS, Level, Machine, Topology, TreeNode


def merge(founds: Sequence[SourceResult], name: str) -> Topology:
    """Merge the sources' findings in their order. Raises DiscoverError when none has a host."""
    trees = [found for found in founds if found.machine is not None and not _only_inside(found, founds)]
    if trees:
        base = trees[0]
    else:
        base = _host_alone(founds)
    machine = base.machine
    assert machine is not None
    _check_nesting(machine, base)
    for other in trees[1:]:
        _fill(base, machine, other)
    _add_insides(machine, founds)
    fabric = next((found.fabric for found in founds if found.fabric is not None), None)
    return Topology(
        name=name,
        machine=machine,
        fabric=fabric,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sources=[found.source for found in founds],
        warnings=[note for found in founds for note in found.warnings],
        left_out=[item for found in founds for item in found.left_out],
    )


def _check_nesting(machine: Machine, base: SourceResult) -> None:
    """Raise DiscoverError for a tree that topology.json can't hold: too deep, or with a level inside of itself."""
    rank = {level.name: index for index, level in enumerate(machine.levels)}
    waiting = [(machine.tree, -1, 0)]
    where = base.source.path or base.source.kind
    while waiting:
        node, outer, depth = waiting.pop()
        if depth > MOST_LEVELS:
            raise DiscoverError(
                f"more than {MOST_LEVELS} levels below each other, down to {node.name}, {where}; leave out those that "
                "group nothing, or give another source"
            )
        own = rank[node.level] if node.level is not None else outer
        if node.level is not None and own <= outer:
            raise DiscoverError(
                f"{node.level} {node.name} is in a group of its own level, or of one that is inside of it elsewhere, "
                f"{where}; give each level a name of its own"
            )
        waiting += [(child, own, depth + 1) for child in node.children]


def _only_inside(found: SourceResult, founds: Sequence[SourceResult]) -> bool:
    """A synthetic machine of one host, next to another tree, is meant as the inside of that tree's hosts."""
    return found.inside is not None and any(
        other is not found and other.machine is not None and other.inside is None for other in founds
    )


def _host_alone(founds: Sequence[SourceResult]) -> SourceResult:
    """The machine of hosts that only have an inside."""
    insides = [found for found in founds if found.inside is not None]
    if not insides:
        raise DiscoverError("no source has any host; add one, for instance --from hwloc")
    root = TreeNode("machine")
    for found in insides:
        assert found.inside is not None
        host = found.inside.host or f"h{len(root.children)}"
        if all(child.name != host for child in root.children):
            root.children.append(TreeNode(host, "node"))
    insides[0].machine = Machine([Level("node")], root)
    return insides[0]


def _fill(base: SourceResult, machine: Machine, other: SourceResult) -> None:
    """Capacities that `machine` lacks, from another tree with the same hosts."""
    assert other.machine is not None
    theirs = {host.name: host for host in other.machine.tree.hosts()}
    groups = {_hosts_key(node): node for node in other.machine.tree.walk() if node.level != "node" and node.children}
    filled = 0
    mine: set[str] = set()
    for node in machine.tree.walk():
        twin = theirs.get(node.name) if node.level == "node" else groups.get(_hosts_key(node))
        if node.level == "node":
            mine.add(node.name)
        if twin is None:
            continue
        if node.level is not None and node.up_bytes_per_s is None and twin.up_bytes_per_s is not None:
            node.up_bytes_per_s = twin.up_bytes_per_s
            filled += 1
        node.can_reduce = node.can_reduce or twin.can_reduce
        node.switches = node.switches or twin.switches
    first, second = base.source.path or base.source.kind, other.source.path or other.source.kind
    for names, here, lacking in ((mine - theirs.keys(), first, second), (theirs.keys() - mine, second, first)):
        if names:
            other.warn(f"{len(names)} host(s) are in {here} and not in {lacking}: {some_names(names)}")
    missing = len(theirs.keys() - mine)
    other.leave_out(missing, "hosts", f"the tree is that of {first}, which doesn't have them")
    other.source.detail = f"{other.source.detail or ''}; {filled} capacities taken".lstrip("; ")


def _hosts_key(node: TreeNode) -> frozenset[str]:
    return frozenset(host.name for host in node.hosts())


def _add_insides(machine: Machine, founds: Sequence[SourceResult]) -> None:
    before = {level.name for level in machine.levels}
    order_levels(machine, founds)
    insides = [found for found in founds if found.inside is not None]
    if not insides:
        return
    by_host = {found.inside.host: found for found in insides if found.inside and found.inside.host}
    short = {host.split(".")[0]: found for host, found in by_host.items() if host}
    default = insides[0]
    guessed: list[str] = []
    for host in machine.tree.hosts():
        known = by_host.get(host.name) or short.get(host.name.split(".")[0])
        if host.inside is not None and known is None:
            continue
        found = known or default
        if known is None:
            guessed.append(host.name)
        assert found.inside is not None
        host.inside = inside_name(found.inside.groups)
        machine.insides[host.inside] = found.inside.groups
    # Hosts of which only the inside was given aren't in the tree.
    used = before.union(*map(level_names, machine.insides.values()))
    machine.levels = [level for level in machine.levels if level.name in used]
    if guessed and default.source.kind == "hwloc":
        assert default.inside is not None
        default.warn(
            f"{len(guessed)} host(s) are taken to be like {default.inside.host or 'this node'} inside: "
            f"{some_names(guessed)}"
        )
