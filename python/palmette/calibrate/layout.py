"""Placement of a job's ranks in the machine tree, and the choice of rank pairs and flows to measure for each level.

A pair is of level L when L is the outermost level at which its ranks are in different groups: its messages leave a
group of L and stay in the parent group. A level may be missing on a path; then the next group inwards substitutes for
it, as in the core's jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from palmette.measure.errors import CalibrateError
from palmette.measure.session import JobLine, Pair
from palmette.topology.model import InsideGroup, Machine, TreeNode

MOST_PAIRS = 3
"""Pairs of ranks that are measured as representatives of a level."""
MOST_CLASSES = 3
"""Kinds of edges of a level (by their known capacity) that are measured."""
MOST_FLOWS = 32


@dataclass(frozen=True)
class EdgePlan:
    """An edge on which contention is measured: that of the group `node`, as the representative of all of `alike`.

    `flows[i]` goes from a rank inside to one outside; the first k of them are k flows that share only this edge where
    possible. Where `alike` is empty, they go between ranks of the host `node` and share its memory.
    """

    node: TreeNode
    alike: list[TreeNode]
    flows: list[Pair]


@dataclass(frozen=True)
class LevelPlan:
    """What is measured of a level. `name` is None for ranks of one host that no level separates.

    `why_not`: the reason why nothing can be measured here.
    """

    name: str | None
    pairs: list[Pair] = field(default_factory=list)
    edges: list[EdgePlan] = field(default_factory=list)
    why_not: str | None = None


class Layout:
    """The ranks of a job in a machine. `paths[rank]`: the number of the rank's group at each level, outermost first."""

    def __init__(self, machine: Machine, job: JobLine, file: str) -> None:
        """Assign the ranks of `job` to slots; `file` names the machine in errors. Raises CalibrateError."""
        self.machine = machine
        self.levels = [level.name for level in machine.levels]
        self._place = {name: index for index, name in enumerate(self.levels)}
        self._numbers = count()
        tree_paths = dict(self._tree_paths(machine.tree, [None] * len(self.levels)))
        self.nodes: list[TreeNode] = [
            _host_of(rank, names, tree_paths, file)
            for rank, names in enumerate(zip(job.processors, job.hosts, strict=True))
        ]
        self.paths: list[tuple[int, ...]] = []
        free: dict[str, _FreeSlots] = {}
        for host, socket in zip(self.nodes, job.sockets, strict=True):
            if host.name not in free:
                slots = list(self._slots(machine.insides.get(host.inside or "", [])))
                free[host.name] = _FreeSlots(slots, self._place.get("socket", self._place.get("package")))
            path = [*tree_paths[host.name][1]]
            for level, number in free[host.name].take(socket).items():
                path[level] = number
            self.paths.append(_filled(path))

    @property
    def ranks(self) -> int:
        """Size of the job."""
        return len(self.paths)

    def separating_level(self, a: int, b: int) -> int | None:
        """Return the index of the outermost level that separates a pair of ranks, None where none does."""
        return next((i for i, (x, y) in enumerate(zip(self.paths[a], self.paths[b], strict=True)) if x != y), None)

    def plan(self) -> list[LevelPlan]:
        """Return what to measure of each level, outermost first, then of ranks that no level separates."""
        plans = [self._plan_level(index) for index in range(len(self.levels))]
        same: dict[tuple[int, ...], list[int]] = {}
        for rank, path in enumerate(self.paths):
            same.setdefault(path, []).append(rank)
        pairs = [(ranks[0], ranks[1]) for ranks in same.values() if len(ranks) > 1]
        if pairs:
            plans.append(LevelPlan(None, _spread(pairs, MOST_PAIRS), list(self._edges(None))))
        return plans

    def _plan_level(self, index: int) -> LevelPlan:
        name = self.levels[index]
        parents: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for rank, path in enumerate(self.paths):
            parents.setdefault(path[:index], {}).setdefault(path[index], []).append(rank)
        split = [list(groups.values()) for groups in parents.values() if len(groups) > 1]
        if not split:
            groups = sum(len(inner) for inner in parents.values())
            where = "the job is in one group of it" if groups == 1 else "no two of its groups in the job share a parent"
            return LevelPlan(name, why_not=f"{where}, so it can't be measured here")
        split.sort(key=lambda groups: -sum(map(len, groups)))
        return LevelPlan(name, _pairs_of(split), list(self._edges(index)))

    def _edges(self, index: int | None) -> Iterator[EdgePlan]:
        """Yield the edges of a level to measure: for each capacity the one that the most flows can share.

        Inside of a node there are no edges: the memory of the host with the most pairs of this level is measured.
        """
        if index is None or index > self._place["node"]:
            inner = [EdgePlan(host, [], self._flows_inside(host, index)[:MOST_FLOWS]) for host in self.hosts()]
            yield max(inner, key=lambda edge: len(edge.flows))
            return
        parents = {id(child): node for node in self.machine.tree.walk() for child in node.children}
        kinds: dict[float | None, list[TreeNode]] = {}
        for node in self.machine.tree.walk():
            if node.level == self.levels[index]:
                kinds.setdefault(node.up_bytes_per_s, []).append(node)
        inside: dict[str, list[int]] = {}
        for rank, host in enumerate(self.nodes):
            inside.setdefault(host.name, []).append(rank)
        for nodes in sorted(kinds.values(), key=len, reverse=True)[:MOST_CLASSES]:
            best: EdgePlan | None = None
            for node in nodes:
                ranks = _interleaved([inside.get(host.name, []) for host in node.hosts()])
                siblings = [child for child in parents[id(node)].children if child is not node]
                others = [_interleaved([inside.get(host.name, []) for host in child.hosts()]) for child in siblings]
                flows = list(zip(ranks, _interleaved(others), strict=False))[:MOST_FLOWS]
                if flows and (best is None or len(flows) > len(best.flows)):
                    best = EdgePlan(node, nodes, flows)
            if best is not None:
                yield best

    def hosts(self) -> list[TreeNode]:
        """Return the hosts of the job, each once, by their first rank."""
        return list({id(host): host for host in self.nodes}.values())

    def ranks_on(self, host: TreeNode) -> list[int]:
        """Return the ranks on a host."""
        return [rank for rank, on in enumerate(self.nodes) if on is host]

    def _flows_inside(self, host: TreeNode, index: int | None) -> list[Pair]:
        """Return disjoint pairs of the host's ranks that are separated at a level (None: at none)."""
        parents: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for rank in self.ranks_on(host):
            path = self.paths[rank]
            group = rank if index is None else path[index]
            parents.setdefault(path if index is None else path[:index], {}).setdefault(group, []).append(rank)
        flows: list[Pair] = []
        for children in parents.values():
            groups = list(children.values())
            half = len(groups) // 2
            flows += zip(_interleaved(groups[:half]), _interleaved(groups[half:]), strict=False)
        return flows

    def _tree_paths(
        self, node: TreeNode, above: list[int | None]
    ) -> Iterator[tuple[str, tuple[TreeNode, list[int | None]]]]:
        stack = [(node, above)]
        while stack:
            group, outer = stack.pop()
            path = list(outer)
            if group.level is not None:
                path[self._place[group.level]] = next(self._numbers)
            if group.level == "node":
                yield group.name, (group, path)
            stack.extend((child, path) for child in reversed(group.children))

    def _slots(self, groups: Sequence[InsideGroup]) -> Iterator[dict[int, int]]:
        """Yield the group number by level of each slot of a host."""
        if not groups:
            yield {}
        for group in groups:
            for _ in range(group.count):
                number = next(self._numbers)
                for slot in self._slots(group.children):
                    yield {self._place[group.level]: number, **slot}


class _FreeSlots:
    """The slots of one host, each a group number by level, assigned to its ranks in their order.

    A rank that is bound to a socket gets a slot there while one is free; slots are reused where ranks outnumber them.
    """

    def __init__(self, slots: list[dict[int, int]], socket_level: int | None) -> None:
        self._slots = slots
        self._free = list(range(len(slots)))
        sockets = list(dict.fromkeys(slot[socket_level] for slot in slots if socket_level in slot))
        self._socket = [sockets.index(slot[socket_level]) if socket_level in slot else -1 for slot in slots]

    def take(self, socket: int) -> dict[int, int]:
        if not self._free:
            self._free = list(range(len(self._slots)))
        chosen = next((slot for slot in self._free if socket >= 0 and self._socket[slot] == socket), self._free[0])
        self._free.remove(chosen)
        return self._slots[chosen]


def _host_of(
    rank: int,
    names: tuple[str, str],
    known: Mapping[str, tuple[TreeNode, list[int | None]]],
    file: str,
) -> TreeNode:
    """Return the host of a rank: by its full names, then by the names up to the first dot."""
    short = {name.split(".")[0]: node for name, (node, _) in reversed(list(known.items()))}
    for name in names:
        if name in known:
            return known[name][0]
    for name in names:
        if name.split(".")[0] in short:
            return short[name.split(".")[0]]
    raise CalibrateError(
        f"host '{names[0]}' of rank {rank} is not in {file}; run on its hosts, or make it anew: palmette discover"
        " --from measurement"
    )


def _filled(path: Sequence[int | None]) -> tuple[int, ...]:
    """Return a path in which the next group inwards substitutes for a missing level; below the last one, that group."""
    filled: list[int] = []
    last = next((number for number in reversed(path) if number is not None), -1)
    for number in reversed(path):
        last = number if number is not None else last
        filled.append(last)
    return tuple(reversed(filled))


def _interleaved(groups: Sequence[Sequence[int]]) -> list[int]:
    """Return the members of all groups, round-robin over the groups."""
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]


def _pairs_of(parents: Sequence[Sequence[Sequence[int]]]) -> list[Pair]:
    """Return pairs of ranks in different groups of one parent, each group in at most one, spread over all of them."""
    pairs: list[Pair] = []
    turn = 0
    while len(pairs) < MOST_PAIRS:
        more = [groups for groups in parents if len(groups) >= 2 * (turn + 1)]
        for groups in more:
            # The first with the one in the middle, and so on: adjacent groups may be closer to each other than most.
            a, b = groups[turn], groups[turn + len(groups) // 2]
            pairs.append((a[0], b[0]))
        turn += 1
        if not more:
            break
    return _spread(pairs, MOST_PAIRS)


def _spread(items: Sequence[Pair], most: int) -> list[Pair]:
    """Return at most `most` items, evenly spaced."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]
