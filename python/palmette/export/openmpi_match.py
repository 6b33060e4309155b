"""Mapping of palmette's algorithms to those of Open MPI 5's `tuned` component.

A match's name is the component's, as `ompi_info --param coll tuned` lists it; rule files have its number.
`fanout` and `segment` are the two parameters of a rule.
"""

from __future__ import annotations

from palmette.export.decisions import Place, Spec
from palmette.export.match import IN_RANK_ORDER, Match, nothing, order_remark

NUMBERS: dict[str, dict[str, int]] = {
    "allgather": {"bruck": 2, "recursive_doubling": 3, "ring": 4, "neighbor": 5, "linear": 1},
    "allgatherv": {"bruck": 2, "ring": 3, "neighbor": 4},
    "allreduce": {
        "nonoverlapping": 2, "recursive_doubling": 3, "ring": 4, "segmented_ring": 5, "rabenseifner": 6,
    },
    "alltoall": {"linear": 1, "pairwise": 2, "modified_bruck": 3, "linear_sync": 4},
    "alltoallv": {"basic_linear": 1, "pairwise": 2},
    "barrier": {"recursive_doubling": 3, "bruck": 4, "tree": 6},
    "bcast": {
        "basic_linear": 1, "chain": 2, "pipeline": 3, "binary_tree": 5, "binomial": 6, "knomial": 7,
        "scatter_allgather": 8, "scatter_allgather_ring": 9,
    },
    "reduce": {"linear": 1, "chain": 2, "pipeline": 3, "binary": 4, "binomial": 5, "rabenseifner": 7},
    "reduce_scatter": {"recursive_halving": 2, "ring": 3},
    "reduce_scatter_block": {"recursive_doubling": 2, "recursive_halving": 3},
    "gather": {"basic_linear": 1, "binomial": 2, "linear_sync": 3},
    "scatter": {"basic_linear": 1, "binomial": 2, "linear_nb": 3},
    "scan": {"linear": 1, "recursive_doubling": 2},
    "exscan": {"linear": 1, "recursive_doubling": 2},
}  # fmt: skip
"""Function -> name -> number in version 5.0; a test compares them with the library."""


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return `tuned`'s nearest algorithm for `spec`."""
    return _MATCHERS[function](spec, place)


def _gather(spec: Spec, place: Place) -> Match:
    if spec.name == "linear":
        return Match("basic_linear")
    if spec.name in ("k_nomial", "bine") and spec.number("radix", 2) == 2:
        return Match("binomial", remark=order_remark(place))
    return nothing("the tuned component is unaware of nodes and switches")


def _allgather(spec: Spec, place: Place) -> Match:
    if spec.name == "ring":
        return Match("ring", remark=order_remark(place))
    if spec.name == "neighbor_exchange" and place.ranks % 2 == 0:
        return Match("neighbor", remark=order_remark(place))
    if spec.name in ("recursive_doubling", "bine") and place.power_of_two:
        return Match("recursive_doubling", remark=order_remark(place))
    if spec.name in ("bruck", "circulant", "pat") and spec.number("radix", 2) == 2:
        return Match("bruck", remark=order_remark(place))
    if spec.name == "linear":
        return Match("linear")
    return nothing("the tuned component has no leaders")


def _allgatherv(spec: Spec, place: Place) -> Match:
    found = _allgather(spec, place)
    return found if found.name in NUMBERS["allgatherv"] else nothing("the tuned component has nothing near for this")


def _bcast(spec: Spec, place: Place) -> Match:
    segment = _segment(spec)
    if spec.name == "by_topology":
        if spec.keys.get("top") == "chain" and not place.scattered:
            return Match("pipeline", segment, "one chain through all ranks, in their order")
        return nothing("the tuned component is unaware of nodes and switches")
    if spec.name == "linear":
        return Match("basic_linear")
    if spec.name == "chain":
        return Match("pipeline", segment or {"segment": "16384"}, order_remark(place))
    if spec.name in ("k_nomial", "bine"):
        radix = spec.number("radix", 2)
        if radix == 2:
            return Match("binomial", segment, order_remark(place))
        return nothing("the radix of Open MPI's k-nomial tree is one setting for all sizes")
    if spec.name == "k_ary" and spec.number("radix", 2) == 2:
        return Match("binary_tree", segment or {"segment": "16384"}, order_remark(place))
    if spec.name == "scatter_allgather":
        ring = spec.keys.get("allgather", "ring") == "ring"
        return Match("scatter_allgather_ring" if ring else "scatter_allgather", remark=order_remark(place))
    return nothing("the tuned component has nothing near for this")


def _reduce(spec: Spec, place: Place) -> Match:
    segment = _segment(spec)
    if spec.name == "by_topology" and spec.keys.get("top") == "chain" and not place.scattered:
        return Match("pipeline", segment, "one chain through all ranks, in their order", commutative=True)
    if spec.name == "linear":
        return Match("linear")
    if spec.name == "chain":
        return Match("pipeline", segment or {"segment": "16384"}, order_remark(place), commutative=True)
    if spec.name in ("k_nomial", "bine") and spec.number("radix", 2) == 2:
        return Match("binomial", segment, order_remark(place), commutative=True)
    if spec.name in ("reduce_scatter_gather", "ring_gather"):
        return Match("rabenseifner", remark=order_remark(place))
    return nothing("the tuned component is unaware of nodes and switches")


def _allreduce(spec: Spec, place: Place) -> Match:
    if spec.name in ("recursive_doubling", "recursive_multiplying"):
        other = "" if spec.name == "recursive_doubling" else "pairs instead of larger groups"
        return Match("recursive_doubling", remark=other or order_remark(place))
    if spec.name == "rabenseifner":
        return Match("rabenseifner", remark=order_remark(place))
    if spec.name == "ring":
        if spec.segment:
            return Match("segmented_ring", _segment(spec), order_remark(place), commutative=True)
        return Match("ring", remark=order_remark(place), commutative=True)
    return nothing("the tuned component has no leaders")


def _reduce_scatter(spec: Spec, place: Place) -> Match:
    if spec.name == "ring":
        return Match("ring", remark=order_remark(place), commutative=True)
    if spec.name == "recursive_halving":
        return Match("recursive_halving", remark=order_remark(place), commutative=True)
    return nothing("the tuned component has nothing near for this")


def _reduce_scatter_block(spec: Spec, place: Place) -> Match:
    if spec.name == "recursive_halving":
        return Match("recursive_halving", remark=order_remark(place), commutative=True)
    return nothing("the tuned component has nothing near for this")


def _alltoall(spec: Spec, place: Place) -> Match:
    if spec.name == "linear":
        return Match("linear", remark=IN_RANK_ORDER)
    if spec.name == "pairwise":
        return Match("linear_sync", {"requests": str(spec.number("window", 5))}, IN_RANK_ORDER)
    if spec.name == "bruck" and spec.number("radix", 2) == 2:
        return Match("modified_bruck")
    return nothing("the tuned component doesn't combine messages for a node")


def _alltoallv(spec: Spec, place: Place) -> Match:
    if spec.name in ("linear", "pairwise"):
        return Match("basic_linear" if spec.name == "linear" else "pairwise", remark=IN_RANK_ORDER)
    return nothing("the tuned component doesn't combine messages for a node")


def _barrier(spec: Spec, place: Place) -> Match:
    if spec.name == "dissemination" and "inside" not in spec.keys and spec.number("radix", 2) == 2:
        return Match("bruck", remark=order_remark(place))
    if spec.name == "by_topology":
        return Match("tree", remark="a binomial tree in the order of ranks")
    return nothing("the tuned component is unaware of nodes and switches")


def _scan(spec: Spec, place: Place) -> Match:
    if spec.name == "recursive_doubling":
        return Match("recursive_doubling")
    if spec.name == "linear":
        return Match("linear", remark="without segments" if spec.segment else "")
    return nothing("the tuned component has nothing near for this")


def _segment(spec: Spec) -> dict[str, str]:
    return {"segment": str(spec.segment)} if spec.segment else {}


_MATCHERS = {
    "gather": _gather,
    "scatter": _gather,
    "allgather": _allgather,
    "allgatherv": _allgatherv,
    "bcast": _bcast,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_block": _reduce_scatter_block,
    "alltoall": _alltoall,
    "alltoallv": _alltoallv,
    "barrier": _barrier,
    "scan": _scan,
    "exscan": _scan,
}
