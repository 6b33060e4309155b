"""The source `synthetic`: machines from a line of text, `2leaf@50Mbit/s:4node:2socket:4core`.

The form is described in docs/reference/topology-json.md. Hosts are called h0, h1, ..., groups leaf0, leaf1, ...
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from palmette import _core
from palmette.topology.cpus import inside_name
from palmette.topology.found import DiscoverError, HostInside, SourceResult
from palmette.topology.model import Aggregator, InsideGroup, Level, Machine, Source, TreeNode


@dataclass(slots=True)
class _Level:
    counts: list[int]
    name: str
    bytes_per_s: float | None
    latency_s: float | None
    aggregators: list[float]
    next: int = 0
    made: int = 0

    def take(self) -> int:
        """The count for the next parent; the list starts again at its end."""
        count = self.counts[self.next % len(self.counts)]
        self.next += 1
        return count


def discover_synthetic(argument: str | None) -> SourceResult:
    """The machine that a synthetic form describes; with a single host its inside too, to go with another fabric.

    Raises DiscoverError naming the part that can't be read.
    """
    if not argument:
        raise DiscoverError('synthetic needs a form; for instance --from synthetic "2leaf:4node:2socket:4core"')
    found = SourceResult(Source("synthetic", argument))
    try:
        parsed = _core.parse_synthetic(argument)
    except _core.Error as problem:
        raise DiscoverError(str(problem)) from None
    levels = [
        _Level(one.counts, one.name, one.up_bytes_per_s or None, one.latency_s, one.aggregators)
        for one in parsed.levels
    ]
    split = next(depth for depth, level in enumerate(levels) if level.name == "node")
    numbers = itertools.count()
    root = TreeNode("fabric", aggregators=_aggregators(parsed.aggregators, numbers))
    insides: dict[str, list[InsideGroup]] = {}
    _grow(root, levels, split, 0, insides, numbers)
    costs = [Level(one.name, one.latency_s, source=None if one.latency_s is None else "given") for one in levels]
    found.machine = Machine(costs, root, insides)
    hosts = sum(1 for _ in root.hosts())
    found.source.detail = f"{hosts} host{'s' if hosts != 1 else ''}"
    if hosts == 1 and insides:
        found.inside = HostInside(next(iter(insides.values())))
    return found


def _aggregators(rates: list[float], numbers: Iterator[int]) -> list[Aggregator]:
    return [Aggregator(f"aggregator{next(numbers)}", rate or None) for rate in rates]


def _grow(
    parent: TreeNode,
    levels: list[_Level],
    split: int,
    depth: int,
    insides: dict[str, list[InsideGroup]],
    numbers: Iterator[int],
) -> None:
    level = levels[depth]
    for _ in range(level.take()):
        name = f"h{level.made}" if depth == split else f"{level.name}{level.made}"
        level.made += 1
        node = TreeNode(name, level.name, level.bytes_per_s, aggregators=_aggregators(level.aggregators, numbers))
        parent.children.append(node)
        if depth < split:
            _grow(node, levels, split, depth + 1, insides, numbers)
        elif split + 1 < len(levels):
            groups = _inside(levels[split + 1 :])
            node.inside = inside_name(groups)
            insides.setdefault(node.inside, groups)


def _inside(levels: list[_Level]) -> list[InsideGroup]:
    groups: list[InsideGroup] = []
    if not levels:
        return groups
    level = levels[0]
    for _ in range(level.take()):
        group = InsideGroup(level.name, 1, _inside(levels[1:]), level.bytes_per_s)
        if groups and groups[-1].children == group.children:
            groups[-1].count += 1
        else:
            groups.append(group)
    return groups
