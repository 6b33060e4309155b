"""Mapping by graph partitioning: METIS splits the ranks along the tree, level by level.

Groups of a level may be uneven: METIS is given the target weight of each. Its parts only approximate these, so that a
rebalancing step moves the vertices with the least loss from overfull groups to underfull ones. docs/decisions/0012 says
why METIS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from palmette import _core
from palmette.map.pattern import Pattern
from palmette.map.traffic import groups_of_positions

Nodes = npt.NDArray[np.int64]
_LARGEST = 1_000_000
"""METIS counts weights in integers of 32 bits."""


def is_available() -> bool:
    """Whether METIS can be called: its Python package is an optional dependency."""
    return find_spec("pymetis") is not None


@dataclass(frozen=True)
class _Graph:
    """A graph in CSR form, both directions summed: the neighbours of node i are at first[i] to first[i + 1]."""

    first: Nodes
    to: Nodes
    weight: Nodes


def partition_on_job(job: _core.Job, pattern: Pattern) -> list[int]:
    """Return the order by hierarchical partitioning of the pattern's messages along the job's tree."""
    levels = [_Level(groups_of_positions(level), np.array(level.sizes)) for level in job.levels]
    positions = _positions(levels, 0, _graph(pattern))
    return [job.rank_at(int(position)) for position in positions]


@dataclass(frozen=True)
class _Level:
    group_of: npt.NDArray[np.int32]
    sizes: Nodes


def _graph(pattern: Pattern) -> _Graph:
    p = pattern.ranks
    one = np.concatenate([pattern.source, pattern.target]).astype(np.int64)
    other = np.concatenate([pattern.target, pattern.source]).astype(np.int64)
    keys, where = np.unique(one * p + other, return_inverse=True)
    weight = np.bincount(where, weights=np.concatenate([pattern.bytes, pattern.bytes]), minlength=len(keys))
    largest = float(weight.max(initial=0.0)) or 1.0
    whole = np.maximum(np.rint(weight / largest * _LARGEST), 1).astype(np.int64)
    first = np.searchsorted(keys // p, np.arange(p + 1))
    return _Graph(first.astype(np.int64), keys % p, whole)


def _positions(levels: Sequence[_Level], begin: int, graph: _Graph) -> Nodes:
    """Return the position of each node of `graph`; they take those from `begin` on."""
    count = len(graph.first) - 1
    for depth, level in enumerate(levels):
        groups = range(int(level.group_of[begin]), int(level.group_of[begin + count - 1]) + 1)
        if len(groups) == 1:
            continue
        sizes = level.sizes[groups.start : groups.stop]
        part_of = _split(graph, sizes)
        positions = np.empty(count, dtype=np.int64)
        number = np.empty(count, dtype=np.int64)
        for part, size in enumerate(sizes):
            members = np.flatnonzero(part_of == part)
            positions[members] = _positions(levels[depth + 1 :], begin, _part(graph, members, part_of, number))
            begin += int(size)
        return positions
    return begin + np.arange(count, dtype=np.int64)


def _part(graph: _Graph, members: Nodes, part_of: Nodes, number: Nodes) -> _Graph:
    """Return the graph of the nodes of one part, with the edges among them. `number` is scratch, one number a node."""
    number[members] = np.arange(len(members))
    degrees = graph.first[members + 1] - graph.first[members]
    offset = np.arange(degrees.sum()) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    index = np.repeat(graph.first[members], degrees) + offset
    owner = np.repeat(np.arange(len(members)), degrees)
    kept = part_of[graph.to[index]] == part_of[members[0]] if len(members) else np.zeros(0, dtype=bool)
    first = np.searchsorted(owner[kept], np.arange(len(members) + 1))
    return _Graph(first.astype(np.int64), number[graph.to[index]][kept], graph.weight[index][kept])


def _split(graph: _Graph, sizes: Nodes) -> Nodes:
    """Return the part of each node, parts being exactly as large as `sizes` says."""
    if len(graph.to) == 0:
        return np.repeat(np.arange(len(sizes)), sizes)
    import pymetis

    total = int(sizes.sum())
    shares = [float(size) / total for size in sizes]
    shares[-1] += 1.0 - sum(shares)
    _, found = pymetis.part_graph(
        len(sizes),
        pymetis.CSRAdjacency(graph.first, graph.to),
        eweights=graph.weight,
        tpwgts=shares,
        recursive=True,
        options=pymetis.Options(seed=1, ufactor=1, ncuts=4),
    )
    part_of = np.array(found, dtype=np.int64)
    _make_exact(graph, sizes, part_of)
    return part_of


def _make_exact(graph: _Graph, sizes: Nodes, part_of: Nodes) -> None:
    """Move nodes from parts with too many to parts with too few, each time the one with the least loss."""
    excess = np.bincount(part_of, minlength=len(sizes)) - sizes
    for part in np.flatnonzero(excess > 0):
        while excess[part] > 0:
            wanting = excess < 0
            best: tuple[int, int, int] | None = None
            for node in np.flatnonzero(part_of == part):
                edges = slice(graph.first[node], graph.first[node + 1])
                bound = np.bincount(part_of[graph.to[edges]], weights=graph.weight[edges], minlength=len(sizes))
                target = int(np.where(wanting, bound, -1.0).argmax())
                gain = int(bound[target] - bound[part])
                if best is None or gain > best[0]:
                    best = gain, int(node), target
            assert best is not None
            part_of[best[1]] = best[2]
            excess[part] -= 1
            excess[best[2]] += 1
