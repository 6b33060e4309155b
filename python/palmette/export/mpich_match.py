"""Mapping of palmette's algorithms to those of MPICH 5, by their kin.

Names and parameters are those of its JSON tuning files, as its library lists them. Switch-aware trees exist for
broadcast, reduce and allreduce; files can't name them, only variables can, which then apply to all sizes.
"""

from __future__ import annotations

from palmette.export.decisions import Place, Spec
from palmette.export.match import IN_RANK_ORDER, Kin, Match, nearest, nothing, order_remark, same

BY_SWITCHES = "topology_aware tree"
"""Placeholder for a tree by the groups and switches of the coordinates file."""


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return MPICH's nearest algorithm for `spec`."""
    return nearest(function, spec, place, *_KNOWN[function])


def _brucks(spec: Spec, place: Place) -> Match:
    radix = spec.number("radix", 2)
    if radix == 2:
        return Match("MPIR_Allgather_intra_brucks", remark=order_remark(place))
    return Match("MPIR_Allgather_intra_k_brucks", {"k": str(radix)}, order_remark(place))


def _chunk(spec: Spec) -> dict[str, str]:
    return {"chunk_size": str(spec.segment)} if spec.segment else {}


def _tree(kind: str, radix: int, chunk: dict[str, str], remark: str) -> Match:
    name = "MPIR_Bcast_intra_pipelined_tree" if chunk else "MPIR_Bcast_intra_tree"
    return Match(name, {"tree_type": kind, "k": str(max(radix, 1)), **chunk}, remark)


def _bcast_by_topology(spec: Spec, place: Place) -> Match:
    if spec.keys.get("top") == "chain" and spec.segment and not place.scattered:
        # Ranks are in topology order, so a chain by ranks leaves each host and switch once.
        return _tree("kary", 1, _chunk(spec), "one chain through all ranks, in their order")
    return _by_switches(spec, place)


def _by_switches(spec: Spec, place: Place) -> Match:
    return Match(BY_SWITCHES, remark="not cut into segments" if spec.segment else "")


def _bcast_linear(spec: Spec, place: Place) -> Match:
    return _tree("kary", place.ranks - 1, _chunk(spec), "")


def _bcast_k_nomial(spec: Spec, place: Place) -> Match:
    radix = spec.number("radix", 2)
    if radix == 2 and not spec.segment:
        return Match("MPIR_Bcast_intra_binomial", remark=order_remark(place))
    return _tree("knomial_1", radix, _chunk(spec), order_remark(place))


def _bcast_k_ary(spec: Spec, place: Place) -> Match:
    radix = 1 if spec.name == "chain" else spec.number("radix", 2)
    return _tree("kary", radix, _chunk(spec) or {"chunk_size": "16384"}, order_remark(place))


def _scatter_allgather(spec: Spec, place: Place) -> Match:
    doubling = spec.keys.get("allgather") == "recursive_doubling" and place.power_of_two
    how = "recursive_doubling" if doubling else "ring"
    return Match(f"MPIR_Bcast_intra_scatter_{how}_allgather", remark=order_remark(place))


def _reduce_k_nomial(spec: Spec, place: Place) -> Match | None:
    return None if spec.segment else same("MPIR_Reduce_intra_binomial", radix=2)(spec, place)


def _multiplying(spec: Spec, place: Place) -> Match:
    radix = str(spec.number("radix", 4))
    return Match("MPIR_Allreduce_intra_recursive_multiplying", {"k": radix}, order_remark(place))


def _allreduce_leaders(spec: Spec, place: Place) -> Match:
    if spec.keys.get("level", "node") == "node":
        return nothing("MPICH's default already: a leader on every node, and an exchange between them")
    return _reduce_bcast(spec, place)


def _reduce_bcast(spec: Spec, place: Place) -> Match:
    return Match(BY_SWITCHES, remark="reduce up the tree, then broadcast down", commutative=True)


def _alltoall_bruck(spec: Spec, place: Place) -> Match:
    radix = spec.number("radix", 2)
    if radix == 2:
        return Match("MPIR_Alltoall_intra_brucks")
    return Match("MPIR_Alltoall_intra_k_brucks", {"k": str(radix)})


def _dissemination(spec: Spec, place: Place) -> Match | None:
    if "inside" in spec.keys:
        return None
    return Match("MPIR_Barrier_intra_k_dissemination", {"k": str(spec.number("radix", 2))}, order_remark(place))


def _allgathers(prefix: str) -> dict[str, Kin]:
    return {
        "ring": same(f"{prefix}_ring"),
        "neighbor_exchange": same(f"{prefix}_ring"),
        "recursive_doubling": same(f"{prefix}_recursive_doubling", power_of_two=True),
        "bruck": same(f"{prefix}_brucks"),
    }


def _reduce_scatters(prefix: str) -> dict[str, Kin]:
    in_turn = "as many steps, but with every rank in turn instead of the neighbours"
    return {
        "recursive_halving": same(f"{prefix}_recursive_halving"),
        "pairwise": same(f"{prefix}_pairwise"),
        "direct": same(f"{prefix}_pairwise"),
        "ring": same(f"{prefix}_pairwise", in_turn),
    }


_ONE_TREE: tuple[dict[str, Kin], str] = {}, "MPICH has only its binomial tree for this"
"""Match of gather and scatter: there is one algorithm, and ranks may disagree on MPICH's measure of the size."""
_NO_LEADERS = "MPICH has no leaders for this"
_NOTHING_NEAR = "MPICH has nothing near for this"
_NOT_COMBINED = "MPICH doesn't combine messages for a node"
_SCATTERED = same("MPIR_Alltoall_intra_scattered", IN_RANK_ORDER)
_SCATTERED_V = same("MPIR_Alltoallv_intra_scattered", IN_RANK_ORDER)

_KNOWN: dict[str, tuple[dict[str, Kin], str]] = {
    "gather": _ONE_TREE,
    "scatter": _ONE_TREE,
    "allgather": ({**_allgathers("MPIR_Allgather_intra"), "bruck": _brucks}, _NO_LEADERS),
    "allgatherv": (_allgathers("MPIR_Allgatherv_intra"), _NO_LEADERS),
    "bcast": (
        {
            "by_topology": _bcast_by_topology,
            "linear": _bcast_linear,
            "k_nomial": _bcast_k_nomial,
            "k_ary": _bcast_k_ary,
            "chain": _bcast_k_ary,
            "scatter_allgather": _scatter_allgather,
        },
        _NOTHING_NEAR,
    ),
    "reduce": (
        {
            "by_topology": _by_switches,
            "k_nomial": _reduce_k_nomial,
            "reduce_scatter_gather": same("MPIR_Reduce_intra_reduce_scatter_gather"),
        },
        _NOTHING_NEAR,
    ),
    "allreduce": (
        {
            "recursive_doubling": same("MPIR_Allreduce_intra_recursive_doubling"),
            "recursive_multiplying": _multiplying,
            "rabenseifner": same("MPIR_Allreduce_intra_reduce_scatter_allgather"),
            "ring": same("MPIR_Allreduce_intra_ring"),
            "leaders": _allreduce_leaders,
            "reduce_bcast": _reduce_bcast,
        },
        _NOTHING_NEAR,
    ),
    "reduce_scatter": (_reduce_scatters("MPIR_Reduce_scatter_intra"), _NO_LEADERS),
    "reduce_scatter_block": (_reduce_scatters("MPIR_Reduce_scatter_block_intra"), _NO_LEADERS),
    "alltoall": ({"linear": _SCATTERED, "pairwise": _SCATTERED, "bruck": _alltoall_bruck}, _NOT_COMBINED),
    "alltoallv": ({"linear": _SCATTERED_V, "pairwise": _SCATTERED_V}, _NOT_COMBINED),
    "barrier": ({"dissemination": _dissemination}, "MPICH's own algorithm is aware of nodes, not of switches"),
    "scan": ({"recursive_doubling": same("MPIR_Scan_intra_recursive_doubling", "")}, _NOTHING_NEAR),
    "exscan": ({}, "MPICH has only recursive doubling for this"),
}
"""Function -> what MPICH has of which kin, and the reason why it has nothing for the others."""
