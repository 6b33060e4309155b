"""The source `synthetic`: machines from a line of text, `2leaf@50Mbit/s:4node:2socket:4core`.

The form is described in docs/reference/topology-json.md. Hosts are called h0, h1, ..., groups leaf0, leaf1, ...
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from palmette.topology.cpus import inside_name
from palmette.topology.found import DiscoverError, Found, Inside
from palmette.topology.model import InsideGroup, Level, Machine, Source, TreeNode
from palmette.topology.reader import LEAST_RATE, MOST_RATE, MOST_SECONDS

MAX_HOSTS = 1_000_000
_LEVEL = re.compile(r"(\d+(?:\+\d+)*)\s*([A-Za-z_][\w-]*)(?:@([^~]+))?(?:~(.+))?")
_RATE = re.compile(r"([\d.]+)\s*([kMGT]?)(bit/s|B/s)")
_TIME = re.compile(r"([\d.]+)\s*(s|ms|us|ns)")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(slots=True)
class _LevelSpec:
    counts: list[int]
    name: str
    bytes_per_s: float | None
    latency_s: float | None
    next: int = 0
    made: int = 0

    def take(self) -> int:
        """The count for the next parent; the list starts again at its end."""
        count = self.counts[self.next % len(self.counts)]
        self.next += 1
        return count


def discover_synthetic(argument: str | None) -> Found:
    """The machine that a synthetic form describes; with a single host its inside too, to go with another fabric.

    Raises DiscoverError naming the part that can't be read.
    """
    if not argument:
        raise DiscoverError('synthetic needs a form; for instance --from synthetic "2leaf:4node:2socket:4core"')
    found = Found(Source("synthetic", argument))
    specs = [_level(part.strip(), argument) for part in argument.split(":")]
    names = [spec.name for spec in specs]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise DiscoverError(f'level "{repeated}" stands twice in {argument}; give each level one name')
    if "node" not in names:
        specs[-1].name = "node"
        names[-1] = "node"
    split = names.index("node")
    most = 1
    for spec in specs[: split + 1]:
        most *= max(spec.counts)
        if most > MAX_HOSTS:
            raise DiscoverError(f"{argument} has more than {MAX_HOSTS:,} hosts; make it smaller")
    root = TreeNode("fabric")
    insides: dict[str, list[InsideGroup]] = {}
    _grow(root, specs, split, 0, insides)
    levels = [
        Level(spec.name, spec.latency_s, source="given" if spec.latency_s is not None else None) for spec in specs
    ]
    found.machine = Machine(levels, root, insides)
    hosts = sum(1 for _ in root.hosts())
    found.source.detail = f"{hosts} host{'s' if hosts != 1 else ''}"
    if hosts == 1 and insides:
        found.inside = Inside(next(iter(insides.values())))
    return found


def _level(part: str, form: str) -> _LevelSpec:
    match = _LEVEL.fullmatch(part)
    if match is None:
        raise DiscoverError(
            f'"{part}" in {form} is no level; write COUNT NAME [@RATE] [~LATENCY], as in 4node@12.5GB/s'
        )
    counts = [int(count) for count in match[1].split("+")]
    if 0 in counts:
        raise DiscoverError(f'"{part}" in {form} has a count of zero; a group holds at least one')
    return _LevelSpec(counts, match[2], _rate(match[3], part), _latency(match[4], part))


def _rate(text: str | None, part: str) -> float | None:
    if text is None:
        return None
    match = _RATE.fullmatch(text.strip())
    value = _number(match[1]) if match else 0.0
    rate = value * _PREFIX[match[2]] / (8 if match[3] == "bit/s" else 1) if match else 0.0
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise DiscoverError(f'"@{text}" in {part} is no rate; write 100Mbit/s or 12.5GB/s')
    return rate


def _latency(text: str | None, part: str) -> float | None:
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip())
    value = _number(match[1]) if match else -1.0
    seconds = value * _SECONDS[match[2]] if match else -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise DiscoverError(f'"~{text}" in {part} is no time; write 5ms or 2us')
    return seconds


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if math.isfinite(value) else -1.0


def _grow(
    parent: TreeNode, specs: list[_LevelSpec], split: int, depth: int, insides: dict[str, list[InsideGroup]]
) -> None:
    spec = specs[depth]
    for _ in range(spec.take()):
        name = f"h{spec.made}" if depth == split else f"{spec.name}{spec.made}"
        spec.made += 1
        node = TreeNode(name, spec.name, spec.bytes_per_s)
        parent.children.append(node)
        if depth < split:
            _grow(node, specs, split, depth + 1, insides)
        elif split + 1 < len(specs):
            groups = _inside(specs[split + 1 :])
            node.inside = inside_name(groups)
            insides.setdefault(node.inside, groups)


def _inside(specs: list[_LevelSpec]) -> list[InsideGroup]:
    groups: list[InsideGroup] = []
    if not specs:
        return groups
    spec = specs[0]
    for _ in range(spec.take()):
        group = InsideGroup(spec.name, 1, _inside(specs[1:]), spec.bytes_per_s)
        if groups and groups[-1].children == group.children:
            groups[-1].count += 1
        else:
            groups.append(group)
    return groups
