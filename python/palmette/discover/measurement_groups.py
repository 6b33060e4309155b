"""Hierarchical clustering of hosts by message times (distances), from few measured pairs.

Sampling: a host (a landmark) is measured against all others, whose distances are split into classes at gaps. The
nearest class may be its group, a farther one is a union of groups; each is sampled recursively by a landmark of its
own, until several landmarks in a row find no gap. So the number of pairs grows with hosts times groups per level, not
with the square of the hosts.

Groups: single linkage over the measured pairs, by the minimum spanning tree (Gower and Ross, Minimum spanning trees and
single linkage cluster analysis, 1969). The merge heights are split at gaps again: these are the levels. Distances in a
tree are ultrametric, d(x, z) <= max(d(x, y), d(y, z)), so unmeasured pairs aren't needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

SMALLEST_GAP = 1.15
"""Distances whose ratio is smaller are of one class, however quiet the machine."""
GAP_PER_NOISE = 4.0
"""A gap exceeds this multiple of the noise of distances of similar length."""
LEAST_NOISE = 0.01
"""Lower bound on the assumed noise of a distance."""
SIMILAR_FACTOR, MIN_SIMILAR = 2.0, 5
"""Distances within this factor are of similar length; with fewer of them the noise of all distances is used as well."""
PASSES = 2
"""Measurements of each distance, of which the minimum is used: disturbances only lengthen."""
EPOCHS = 4
"""Later remeasurements of the pairs that the groups are based on: a disturbance may outlast all passes."""

Measure = Callable[[int, Sequence[int]], Sequence[float]]
"""Measures one host against others; returns their distances."""


@dataclass(frozen=True)
class Level:
    """A partition of the hosts: `group_of[host]`, and the median distance between groups of one parent group.

    `noise` is the relative spread of one distance of similar length.
    """

    group_of: list[int]
    distance: float
    noise: float


@dataclass(frozen=True)
class Groups:
    """Levels, outermost first; in the last each host is a group of its own. `pairs` of `all_pairs` were measured.

    `noise` is the largest relative spread of a distance, `gap` the ratio from which distances were separated there.
    """

    levels: list[Level]
    distances: Distances
    all_pairs: int
    noise: float
    gap: float

    @property
    def pairs(self) -> int:
        """Number of measured pairs."""
        return len(self.distances.of_pair)

    @property
    def separation(self) -> float:
        """The smallest step between adjacent levels as a multiple of the noise; 0 for one level."""
        steps = [
            math.log(outer.distance / inner.distance) / max(outer.noise, inner.noise, LEAST_NOISE)
            for outer, inner in itertools.pairwise(self.levels)
        ]
        return max(0.0, min(steps, default=0.0))


class Distances:
    """The measured pairs and their distances; measures missing ones on demand."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self.of_pair: dict[tuple[int, int], float] = {}
        self._lengths: list[float] = []
        self._changes: list[float] = []

    def row(self, centre: int, others: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the distances of `centre` from `others`, measuring missing ones."""
        unknown = [other for other in others if _pair(centre, other) not in self.of_pair]
        if unknown:
            passes = [np.asarray(self._measure(centre, unknown), float) for _ in range(PASSES)]
            shortest = np.min(passes, axis=0)
            self._changes.extend(np.abs(np.log(passes[0] / passes[1])))
            self._lengths.extend(shortest)
            for other, distance in zip(unknown, shortest, strict=True):
                self.of_pair[_pair(centre, other)] = float(distance)
        return np.array([self.of_pair[_pair(centre, other)] for other in others])

    def measure_again(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Measure known pairs once more, keeping the minimum."""
        rows: dict[int, list[int]] = {}
        for centre, other in pairs:
            rows.setdefault(centre, []).append(other)
        for centre, others in rows.items():
            for other, distance in zip(others, self._measure(centre, others), strict=True):
                pair = _pair(centre, other)
                self._changes.append(abs(math.log(distance / self.of_pair[pair])))
                self.of_pair[pair] = min(self.of_pair[pair], distance)
                self._lengths.append(self.of_pair[pair])

    def noise(self, length: float) -> float:
        """The relative spread of one measurement of similar length: short times are disturbed more than long ones.

        A robust estimate (MAD) from the differences between passes.
        """
        changes, lengths = np.array(self._changes), np.array(self._lengths)
        similar = changes[(lengths > length / SIMILAR_FACTOR) & (lengths < length * SIMILAR_FACTOR)]
        spreads = [
            np.median(some) for some in (similar, changes[: None if len(similar) < MIN_SIMILAR else 0]) if len(some)
        ]
        return float(1.4826 * max(spreads, default=0.0) / math.sqrt(2))

    def gap(self, length: float) -> float:
        """The ratio from which a distance is in another class than `length`."""
        return max(SMALLEST_GAP, math.exp(GAP_PER_NOISE * self.noise(length)))


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def find_groups(hosts: int, measure: Measure, seed: int = 1) -> Groups:
    """Return the levels of hosts numbered from 0. Raises ValueError for fewer than 2 or an invalid distance."""
    if hosts < 2:
        raise ValueError(f"{hosts} hosts have no distances")
    distances = Distances(measure)
    _sample(distances, hosts, np.random.default_rng(seed))
    for _ in range(EPOCHS):
        tree = _spanning_tree(distances, hosts)
        distances.measure_again(list(zip(map(int, tree.row), map(int, tree.col), strict=True)))
    if not all(math.isfinite(d) and d > 0 for d in distances.of_pair.values()):
        raise ValueError("a distance is not a time above zero")
    levels = _levels(distances, hosts)
    noise, gap = (max(of(level.distance) for level in levels) for of in (distances.noise, distances.gap))
    return Groups(levels, distances, hosts * (hosts - 1) // 2, noise, gap)


def _sample(distances: Distances, hosts: int, random: np.random.Generator) -> None:
    """Measure until several landmarks of every part find no gap in it."""
    parts = [list(range(hosts))]
    while parts:
        part = parts.pop()
        # To a host that is alone in its group all others are equally far: other landmarks must separate those.
        landmarks = 3 + math.ceil(math.log2(len(part))) if len(part) > 1 else 0
        for landmark in map(int, random.permutation(part)[:landmarks]):
            others = [host for host in part if host != landmark]
            classes = split(distances.row(landmark, others), distances.gap)
            if len(classes) > 1:
                parts += [[others[i] for i in one] for one in classes[1:]]
                parts.append([landmark, *(others[i] for i in classes[0])])
                break


def split(values: npt.NDArray[np.float64], gap: Callable[[float], float]) -> list[list[int]]:
    """Return the indices of `values` in classes, smallest values first; a class ends where the next value is `gap`
    times larger.
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    steps = np.flatnonzero(ranked[1:] > SMALLEST_GAP * ranked[:-1])
    ends = [int(i) + 1 for i in steps if ranked[i + 1] > gap(float(ranked[i])) * ranked[i]]
    return [[int(i) for i in one] for one in np.split(order, ends)]


def _spanning_tree(distances: Distances, hosts: int) -> coo_array:
    """Return the minimum spanning tree of the pairs that were measured."""
    pairs = np.array(list(distances.of_pair))
    lengths = np.array(list(distances.of_pair.values()))
    return coo_array(minimum_spanning_tree(coo_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(hosts, hosts))))


def _levels(distances: Distances, hosts: int) -> list[Level]:
    tree = _spanning_tree(distances, hosts)
    heights = np.asarray(tree.data)
    classes = split(heights, distances.gap)
    partitions = [list(range(hosts))]
    for one in classes[:-1]:
        kept = heights <= heights[one].max()
        joined = coo_array((heights[kept], (tree.row[kept], tree.col[kept])), shape=(hosts, hosts))
        partitions.append(connected_components(joined, directed=False)[1].tolist())
    return with_distances(partitions[::-1], distances)


def with_distances(partitions: Sequence[Sequence[int]], distances: Distances) -> list[Level]:
    """Return partitions, outermost first, with the distances of their levels; measures a pair where none is known."""
    levels = []
    outer = np.zeros(len(partitions[-1]), int)
    for partition in partitions:
        inner = np.asarray(partition)
        lengths = _between(inner, outer, distances)
        if not len(lengths):
            centre, others = _some_pairs(inner, outer)
            distances.row(centre, others)
            lengths = _between(inner, outer, distances)
        distance = float(np.median(lengths))
        levels.append(Level([int(group) for group in inner], distance, distances.noise(distance)))
        outer = inner
    return levels


def _between(inner: npt.NDArray[np.int_], outer: npt.NDArray[np.int_], distances: Distances) -> npt.NDArray[np.float64]:
    """The known distances between hosts in different groups of `inner` and the same one of `outer`."""
    pairs = np.array(list(distances.of_pair))
    between = (inner[pairs[:, 0]] != inner[pairs[:, 1]]) & (outer[pairs[:, 0]] == outer[pairs[:, 1]])
    return np.array(list(distances.of_pair.values()), float)[np.flatnonzero(between)]


def _some_pairs(inner: npt.NDArray[np.int_], outer: npt.NDArray[np.int_]) -> tuple[int, list[int]]:
    """A host and up to three others in its group of `outer`, but not in its group of `inner`."""
    for centre in range(len(inner)):
        others = np.flatnonzero((inner != inner[centre]) & (outer == outer[centre]))
        if len(others):
            return centre, [int(other) for other in others[:3]]
    raise ValueError("a level joins no groups")


def joined(some: Groups, others: Groups) -> list[list[int]]:
    """Return the partitions of both, outermost first. Raises ValueError where they aren't nested."""
    partitions = {tuple(_numbered(level.group_of)) for groups in (some, others) for level in groups.levels}
    ranked = sorted(partitions, key=lambda one: (len(set(one)), one))
    for outer, inner in itertools.pairwise(ranked):
        if len(set(zip(outer, inner, strict=True))) > len(set(inner)):
            raise ValueError("the groups of one cross those of the other")
    return [list(one) for one in ranked]


def _numbered(group_of: Sequence[int]) -> list[int]:
    """Return the groups renumbered by first occurrence."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in group_of]
