"""Mapping methods, each of which computes a rank order, and the selection of the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from palmette import _core
from palmette.map.errors import MapError
from palmette.map.matrix import Matrix
from palmette.map.partition import is_available, partition_on_job
from palmette.map.pattern import HEURISTICS, Pattern
from palmette.map.traffic import Traffic, count_traffic

METHODS = {
    "auto": "the best of all that apply, by the busiest link's time, then hop-bytes",
    "as_placed": "leave ranks where they are",
    "topology": "ranks in topology order: host by host, leaf by leaf",
    "greedy": "from rank 0 on, the nearest free place comes next",
    "optimal": "ring: the slowest edge is as fast as possible (bottleneck-optimal)",
    "heuristic": "ring, recursive_doubling, gather, bcast: Mirsadeghi's heuristic for the pattern",
    "grid": "stencil: bisection of the grid along the tree, as in MPI_Cart_create",
    "bisection": "bisection of the graph of messages along the tree, as in MPI_Graph_create",
    "partition": "METIS splits the graph of messages, level by level",
}
"""Name -> sentence, in the order in which `auto` tries them."""

MOST_REFINED = 4096
"""Most ranks whose order is refined by pairwise exchange."""


@dataclass(frozen=True)
class RankOrder:
    """An order, the method that found it, and the resulting link loads."""

    order: list[int]
    method: str
    traffic: Traffic
    note: str | None = None
    """What was left out of the search, and why."""


@dataclass(frozen=True)
class DistanceOrder:
    """An order of places of which only distances are known."""

    order: list[int]
    method: str
    bound: float | None = None
    """Lower bound of a ring's slowest edge in any order; None: unknown."""


def map_by_distance(distances: Matrix, pattern: Pattern, method: str) -> DistanceOrder:
    """Find an order for places given by their distances. Raises MapError for a method that needs a tree."""
    p, values = len(distances), distances.ravel().tolist()
    heuristic = pattern.name if pattern.name in HEURISTICS else None
    if method == "as_placed":
        return DistanceOrder(list(range(p)), method)
    if method == "greedy":
        return DistanceOrder(_core.order_by_distance("ring", p, values), method)
    if method in ("auto", "optimal") and pattern.name == "ring":
        ring = _core.bottleneck_ring(p, values)
        return DistanceOrder(ring.order, "optimal", ring.bound)
    if method in ("auto", "heuristic") and heuristic is not None:
        return DistanceOrder(_core.order_by_distance(heuristic, p, values), "heuristic")
    if method == "auto":
        order = _core.order_by_distance("ring", p, values)
        better = bytes_times_distance(distances, pattern, order) < bytes_times_distance(distances, pattern, range(p))
        return DistanceOrder(order, "greedy") if better else DistanceOrder(list(range(p)), "as_placed")
    usable = [
        "as_placed",
        "greedy",
        *(["heuristic"] if heuristic else []),
        *(["optimal"] if heuristic == "ring" else []),
    ]
    raise MapError(
        f"method {method} can't map '{pattern.name}' by distances alone; take one of {', '.join(usable)}, or give the "
        "tree with --topology or --machine"
    )


def bytes_times_distance(distances: Matrix, pattern: Pattern, order: Sequence[int]) -> float:
    """Return the sum over all messages of their bytes times how far they go; the worse direction counts."""
    places = np.array(order)
    along = np.maximum(distances, distances.T)[places[pattern.source], places[pattern.target]]
    return float((along * pattern.bytes).sum())


def map_on_job(job: _core.Job, pattern: Pattern, method: str) -> RankOrder:
    """Find an order for a job's seats. Raises MapError for a method that doesn't apply to the pattern."""
    makers = _makers(job, pattern)
    if method == "auto":
        note = None
        if not is_available():
            del makers["partition"]
            note = "partition was not tried: pymetis isn't installed (pip install pymetis)"
        candidates = [_mapped(job, pattern, name, make) for name, make in makers.items()]
        best = candidates[0]
        for candidate in candidates[1:]:
            if _clearly_better(candidate.traffic, best.traffic):
                best = candidate
        return replace(best, note=note)
    if method not in makers:
        raise MapError(f"method {method} is not for '{pattern.name}'; take one of auto, {', '.join(makers)}")
    return _mapped(job, pattern, method, makers[method])


def _makers(job: _core.Job, pattern: Pattern) -> dict[str, Callable[[], Sequence[int]]]:
    """Return the methods that apply to the pattern."""
    messages = pattern.source.tolist(), pattern.target.tolist(), pattern.bytes.tolist()

    def refined(order: Sequence[int]) -> Sequence[int]:
        return _core.refined_on_job(job, *messages, list(order)) if job.size <= MOST_REFINED else order

    makers: dict[str, Callable[[], Sequence[int]]] = {
        "as_placed": lambda: range(job.size),
        "topology": lambda: [job.rank_at(position) for position in range(job.size)],
        "greedy": lambda: _core.order_on_job("ring", job),
    }
    if pattern.name == "ring":
        # Any ring crosses each group's edge at least once each way, and the nested one no more: optimal on a tree.
        makers["optimal"] = makers["greedy"]
    if pattern.name in HEURISTICS:
        makers["heuristic"] = lambda: _core.order_on_job(pattern.name, job)
    if pattern.extents:
        makers["grid"] = lambda: refined(_with_rest(job, _core.grid_on_job(job, pattern.extents, pattern.periodic)))
    makers["bisection"] = lambda: refined(_core.graph_on_job(job, *messages))
    makers["partition"] = lambda: refined(partition_on_job(job, pattern))
    return {name: makers[name] for name in METHODS if name in makers}


def _with_rest(job: _core.Job, order: list[int]) -> list[int]:
    """Return the order with the places that the grid doesn't use at its end, in topology order."""
    taken = set(order)
    return order + [place for place in map(job.rank_at, range(job.size)) if place not in taken]


def _mapped(job: _core.Job, pattern: Pattern, name: str, make: Callable[[], Sequence[int]]) -> RankOrder:
    order = list(make())
    return RankOrder(order, name, count_traffic(job, pattern, order))


def _clearly_better(one: Traffic, other: Traffic) -> bool:
    (time, hops), (other_time, other_hops) = one.cost, other.cost
    if time < other_time * (1 - 1e-6):
        return True
    return time <= other_time * (1 + 1e-6) and hops < other_hops * (1 - 1e-6)
