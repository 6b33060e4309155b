"""Mapping of palmette's algorithms to those of Open MPI 5's `tuned` component, by their kin.

A match's name is the component's, as `ompi_info --param coll tuned` lists it; rule files have its number.
`fanout` and `segment` are the two parameters of a rule.
"""

from __future__ import annotations

from palmette.export.decisions import Place, Spec
from palmette.export.match import IN_RANK_ORDER, Kin, Match, nearest, nothing, order_remark, same

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
    return nearest(function, spec, place, *_KNOWN[function])


def _segment(spec: Spec) -> dict[str, str]:
    return {"segment": str(spec.segment)} if spec.segment else {}


def _segmented(name: str, *, default: int = 0, radix: int | None = None, commutes: bool = False) -> Kin:
    """A kin that takes over the segment, or has one of `default` bytes."""

    def found(spec: Spec, place: Place) -> Match | None:
        if radix and spec.number("radix", 2) != radix:
            return None
        segment = _segment(spec) or ({"segment": str(default)} if default else {})
        return Match(name, segment, order_remark(place), commutes)

    return found


def _one_chain(*, commutes: bool) -> Kin:
    def found(spec: Spec, place: Place) -> Match | None:
        if spec.keys.get("top") != "chain" or place.scattered:
            return None
        return Match("pipeline", _segment(spec), "one chain through all ranks, in their order", commutes)

    return found


def _neighbor(spec: Spec, place: Place) -> Match | None:
    return None if place.ranks % 2 else Match("neighbor", remark=order_remark(place))


def _bcast_k_nomial(spec: Spec, place: Place) -> Match:
    one_radix = "the radix of Open MPI's k-nomial tree is one setting for all sizes"
    return _segmented("binomial", radix=2)(spec, place) or nothing(one_radix)


def _bcast_by_topology(spec: Spec, place: Place) -> Match:
    return _one_chain(commutes=False)(spec, place) or nothing(_UNAWARE)


def _scatter_allgather(spec: Spec, place: Place) -> Match:
    ring = spec.keys.get("allgather", "ring") == "ring"
    return Match("scatter_allgather_ring" if ring else "scatter_allgather", remark=order_remark(place))


def _multiplying(spec: Spec, place: Place) -> Match:
    return Match("recursive_doubling", remark="pairs instead of larger groups")


def _allreduce_ring(spec: Spec, place: Place) -> Match:
    return Match("segmented_ring" if spec.segment else "ring", _segment(spec), order_remark(place), commutative=True)


def _pairwise(spec: Spec, place: Place) -> Match:
    return Match("linear_sync", {"requests": str(spec.number("window", 5))}, IN_RANK_ORDER)


def _dissemination(spec: Spec, place: Place) -> Match | None:
    return None if "inside" in spec.keys else same("bruck", radix=2)(spec, place)


def _linear_scan(spec: Spec, place: Place) -> Match:
    return Match("linear", remark="without segments" if spec.segment else "")


_UNAWARE = "the tuned component is unaware of nodes and switches"
_NOTHING_NEAR = "the tuned component has nothing near for this"
_NO_LEADERS = "the tuned component has no leaders"
_NOT_COMBINED = "the tuned component doesn't combine messages for a node"

_ROOTED: dict[str, Kin] = {"linear": same("basic_linear", ""), "k_nomial": same("binomial", radix=2)}
_ALLGATHERV: dict[str, Kin] = {
    "ring": same("ring"),
    "neighbor_exchange": _neighbor,
    "bruck": same("bruck", radix=2),
}
_HALVING = {"recursive_halving": same("recursive_halving", commutes=True)}
_SCAN: dict[str, Kin] = {"recursive_doubling": same("recursive_doubling", ""), "linear": _linear_scan}

_KNOWN: dict[str, tuple[dict[str, Kin], str]] = {
    "gather": (_ROOTED, _UNAWARE),
    "scatter": (_ROOTED, _UNAWARE),
    "allgather": (
        {
            **_ALLGATHERV,
            "recursive_doubling": same("recursive_doubling", power_of_two=True),
            "linear": same("linear", ""),
        },
        _NO_LEADERS,
    ),
    "allgatherv": (_ALLGATHERV, _NOTHING_NEAR),
    "bcast": (
        {
            "by_topology": _bcast_by_topology,
            "linear": same("basic_linear", ""),
            "chain": _segmented("pipeline", default=16384),
            "k_nomial": _bcast_k_nomial,
            "k_ary": _segmented("binary_tree", default=16384, radix=2),
            "scatter_allgather": _scatter_allgather,
        },
        _NOTHING_NEAR,
    ),
    "reduce": (
        {
            "by_topology": _one_chain(commutes=True),
            "linear": same("linear", ""),
            "chain": _segmented("pipeline", default=16384, commutes=True),
            "k_nomial": _segmented("binomial", radix=2, commutes=True),
            "reduce_scatter_gather": same("rabenseifner"),
        },
        _UNAWARE,
    ),
    "allreduce": (
        {
            "recursive_doubling": same("recursive_doubling"),
            "recursive_multiplying": _multiplying,
            "rabenseifner": same("rabenseifner"),
            "ring": _allreduce_ring,
        },
        _NO_LEADERS,
    ),
    "reduce_scatter": ({"ring": same("ring", commutes=True), **_HALVING}, _NOTHING_NEAR),
    "reduce_scatter_block": (_HALVING, _NOTHING_NEAR),
    "alltoall": (
        {"linear": same("linear", IN_RANK_ORDER), "pairwise": _pairwise, "bruck": same("modified_bruck", "", radix=2)},
        _NOT_COMBINED,
    ),
    "alltoallv": (
        {"linear": same("basic_linear", IN_RANK_ORDER), "pairwise": same("pairwise", IN_RANK_ORDER)},
        _NOT_COMBINED,
    ),
    "barrier": (
        {
            "dissemination": _dissemination,
            "by_topology": same("tree", "a binomial tree in the order of ranks"),
        },
        _UNAWARE,
    ),
    "scan": (_SCAN, _NOTHING_NEAR),
    "exscan": (_SCAN, _NOTHING_NEAR),
}
"""Function -> what `tuned` has of which kin, and the reason why it has nothing for the others."""
