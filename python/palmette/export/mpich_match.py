"""Mapping of palmette's algorithms to those of MPICH 5.

Names and parameters are those of its JSON tuning files, as its library lists them. Switch-aware trees exist for
broadcast, reduce and allreduce; files can't name them, only variables can, which then apply to all sizes.
"""

from __future__ import annotations

from palmette.export.decisions import Place, Spec
from palmette.export.match import IN_RANK_ORDER, Match, nothing, order_remark

BY_SWITCHES = "topology_aware tree"
"""Placeholder for a tree by the groups and switches of the coordinates file."""


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return MPICH's nearest algorithm for `spec`."""
    return _MATCHERS[function](spec, place)


def _gather(spec: Spec, place: Place) -> Match:
    """Of gather and scatter: there is one algorithm, and ranks may disagree on MPICH's measure of the size."""
    return nothing("MPICH has only its binomial tree for this")


def _allgather(spec: Spec, place: Place) -> Match:
    radix = spec.number("radix", 2)
    if spec.name in ("bruck", "circulant", "pat") and radix != 2:
        return Match("MPIR_Allgather_intra_k_brucks", {"k": str(radix)}, order_remark(place))
    return _allgather_as("MPIR_Allgather_intra", spec, place)


def _allgatherv(spec: Spec, place: Place) -> Match:
    return _allgather_as("MPIR_Allgatherv_intra", spec, place)


def _allgather_as(prefix: str, spec: Spec, place: Place) -> Match:
    if spec.name in ("ring", "neighbor_exchange"):
        return Match(f"{prefix}_ring", remark=order_remark(place))
    if spec.name in ("recursive_doubling", "bine") and place.power_of_two:
        return Match(f"{prefix}_recursive_doubling", remark=order_remark(place))
    if spec.name in ("bruck", "circulant", "pat"):
        return Match(f"{prefix}_brucks", remark=order_remark(place))
    return nothing("MPICH has no leaders for this")


def _bcast(spec: Spec, place: Place) -> Match:
    chunk = {"chunk_size": str(spec.segment)} if spec.segment else {}
    if spec.name == "by_topology":
        if spec.keys.get("top") == "chain" and chunk and not place.scattered:
            # Ranks are in topology order, so a chain by ranks leaves each host and switch once.
            return _tree("kary", 1, chunk, "one chain through all ranks, in their order")
        return Match(BY_SWITCHES, remark="not cut into segments" if chunk else "")
    if spec.name == "linear":
        return _tree("kary", place.ranks - 1, chunk, "")
    if spec.name in ("k_nomial", "bine"):
        radix = spec.number("radix", 2)
        if radix == 2 and not chunk:
            return Match("MPIR_Bcast_intra_binomial", remark=order_remark(place))
        return _tree("knomial_1", radix, chunk, order_remark(place))
    if spec.name in ("k_ary", "chain"):
        radix = 1 if spec.name == "chain" else spec.number("radix", 2)
        return _tree("kary", radix, chunk or {"chunk_size": "16384"}, order_remark(place))
    if spec.name == "scatter_allgather":
        if spec.keys.get("allgather") == "recursive_doubling" and place.power_of_two:
            return Match("MPIR_Bcast_intra_scatter_recursive_doubling_allgather", remark=order_remark(place))
        return Match("MPIR_Bcast_intra_scatter_ring_allgather", remark=order_remark(place))
    return nothing("MPICH has nothing near for this")


def _reduce(spec: Spec, place: Place) -> Match:
    if spec.name == "by_topology":
        return Match(BY_SWITCHES, remark="not cut into segments" if spec.segment else "")
    if spec.name in ("k_nomial", "bine") and spec.number("radix", 2) == 2 and not spec.segment:
        return Match("MPIR_Reduce_intra_binomial", remark=order_remark(place))
    if spec.name in ("reduce_scatter_gather", "ring_gather"):
        return Match("MPIR_Reduce_intra_reduce_scatter_gather", remark=order_remark(place))
    return nothing("MPICH has nothing near for this")


def _allreduce(spec: Spec, place: Place) -> Match:
    if spec.name == "recursive_doubling":
        return Match("MPIR_Allreduce_intra_recursive_doubling", remark=order_remark(place))
    if spec.name == "recursive_multiplying":
        radix = str(spec.number("radix", 4))
        return Match("MPIR_Allreduce_intra_recursive_multiplying", {"k": radix}, order_remark(place))
    if spec.name == "rabenseifner":
        return Match("MPIR_Allreduce_intra_reduce_scatter_allgather", remark=order_remark(place))
    if spec.name == "ring":
        return Match("MPIR_Allreduce_intra_ring", remark=order_remark(place))
    if spec.name == "leaders" and spec.keys.get("level", "node") == "node":
        return nothing("MPICH's default already: a leader on every node, and an exchange between them")
    if spec.name in ("leaders", "reduce_bcast"):
        return Match(BY_SWITCHES, remark="reduce up the tree, then broadcast down", commutative=True)
    return nothing("MPICH has nothing near for this")


def _reduce_scatter(spec: Spec, place: Place) -> Match:
    return _reduce_scatter_as("MPIR_Reduce_scatter_intra", spec, place)


def _reduce_scatter_block(spec: Spec, place: Place) -> Match:
    return _reduce_scatter_as("MPIR_Reduce_scatter_block_intra", spec, place)


def _reduce_scatter_as(prefix: str, spec: Spec, place: Place) -> Match:
    if spec.name == "recursive_halving":
        return Match(f"{prefix}_recursive_halving", remark=order_remark(place))
    if spec.name in ("pairwise", "direct"):
        return Match(f"{prefix}_pairwise", remark=order_remark(place))
    if spec.name == "ring":
        return Match(
            f"{prefix}_pairwise", remark="as many steps, but with every rank in turn instead of the neighbours"
        )
    return nothing("MPICH has no leaders for this")


def _alltoall(spec: Spec, place: Place) -> Match:
    if spec.name in ("linear", "pairwise"):
        return Match("MPIR_Alltoall_intra_scattered", remark=IN_RANK_ORDER)
    if spec.name == "bruck":
        radix = spec.number("radix", 2)
        if radix == 2:
            return Match("MPIR_Alltoall_intra_brucks")
        return Match("MPIR_Alltoall_intra_k_brucks", {"k": str(radix)})
    return nothing("MPICH doesn't combine messages for a node")


def _alltoallv(spec: Spec, place: Place) -> Match:
    if spec.name in ("linear", "pairwise"):
        return Match("MPIR_Alltoallv_intra_scattered", remark=IN_RANK_ORDER)
    return nothing("MPICH doesn't combine messages for a node")


def _barrier(spec: Spec, place: Place) -> Match:
    if spec.name == "dissemination" and "inside" not in spec.keys:
        return Match("MPIR_Barrier_intra_k_dissemination", {"k": str(spec.number("radix", 2))}, order_remark(place))
    return nothing("MPICH's own algorithm is aware of nodes, not of switches")


def _scan(spec: Spec, place: Place) -> Match:
    if spec.name == "recursive_doubling":
        return Match("MPIR_Scan_intra_recursive_doubling")
    return nothing("MPICH has nothing near for this")


def _exscan(spec: Spec, place: Place) -> Match:
    return nothing("MPICH has only recursive doubling for this")


def _tree(kind: str, radix: int, chunk: dict[str, str], remark: str) -> Match:
    name = "MPIR_Bcast_intra_pipelined_tree" if chunk else "MPIR_Bcast_intra_tree"
    return Match(name, {"tree_type": kind, "k": str(max(radix, 1)), **chunk}, remark)


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
    "exscan": _exscan,
}
