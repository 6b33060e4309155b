"""UCC's tuning strings: UCC_TL_UCP_TUNE and UCC_CL_HIER_TUNE.

Rules joined by `#`, each `COLLECTIVE:FROM-TO:MEMORY:[RANKS]:SCORE:@ALGORITHM`; `inf` as a score wins over everything.
Sizes are bytes as UCC measures them.
"""

from __future__ import annotations

from collections.abc import Sequence

from palmette.export.decisions import WITHOUT_SIZE, Place, Spec
from palmette.export.match import Export, Line, Match, nothing

SETTINGS = "ucc.env"

_OF_ALL_RANKS = ("allgather", "allgatherv", "alltoall", "gather", "scatter", "reduce_scatter", "reduce_scatter_block")
"""UCC measures these by the bytes of all ranks together."""

_NAMES = {"reduce_scatter_block": "reduce_scatter", "reduce_scatter": "reduce_scatterv"}
"""UCC's reduce_scatter has blocks of one length."""

_HIER = ("rab", "2step")
"""Algorithms of the hierarchical layer; all others belong to UCP's."""


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return what UCC has for `spec`: knomial trees and exchanges, rings, and two levels for some."""
    order = "in the order of ranks, which isn't that of hosts here" if place.scattered else ""
    key = (function, spec.name)
    if key in _PLAIN:
        return Match(_PLAIN[key], remark=order)
    if spec.name in ("leaders", "by_topology", "reduce_bcast") and function in _TWO_LEVELS:
        return Match(_TWO_LEVELS[function], remark="two levels, nodes and what is inside; it knows no switches")
    return nothing("UCC has nothing near for this")


_PLAIN = {
    ("allgather", "ring"): "ring",
    ("allgather", "neighbor_exchange"): "neighbor",
    ("allgather", "bruck"): "bruck",
    ("allgather", "recursive_doubling"): "knomial",
    ("allgather", "linear"): "linear",
    ("allgatherv", "ring"): "ring",
    ("allgatherv", "recursive_doubling"): "knomial",
    ("bcast", "k_nomial"): "knomial",
    ("bcast", "scatter_allgather"): "sag_knomial",
    ("reduce", "k_nomial"): "knomial",
    ("reduce", "reduce_scatter_gather"): "srg",
    ("allreduce", "recursive_doubling"): "knomial",
    ("allreduce", "recursive_multiplying"): "knomial",
    ("allreduce", "rabenseifner"): "sra_knomial",
    ("reduce_scatter", "ring"): "ring",
    ("reduce_scatter_block", "ring"): "ring",
    ("alltoall", "pairwise"): "pairwise",
    ("alltoall", "linear"): "pairwise",
    ("alltoall", "bruck"): "bruck",
    ("alltoallv", "pairwise"): "pairwise",
    ("barrier", "dissemination"): "knomial",
    ("gather", "k_nomial"): "knomial",
}
_TWO_LEVELS = {"allreduce": "rab", "bcast": "2step", "reduce": "2step"}


def tune(lines: Sequence[Line], place: Place) -> Export:
    """Return the strings as variables, and as a file that a shell can read. Not checked by the library."""
    plain = [_token(line, place) for line in lines if line.match.name is not None and line.match.name not in _HIER]
    levels = [_token(line, place) for line in lines if line.match.name in _HIER]
    variables = {"OMPI_MCA_coll_ucc_enable": "1", "OMPI_MCA_coll_ucc_priority": "100"}
    if levels:
        variables["UCC_CLS"] = "basic,hier"
        variables["UCC_CL_HIER_TUNE"] = "#".join(levels)
    if plain:
        variables["UCC_TL_UCP_TUNE"] = "#".join(plain)
    text = ["# written by palmette; read it with a shell: set -a; . ./" + SETTINGS]
    text += [
        f"# {line.decision.function} from {line.decision.min_bytes} bytes: default kept; {line.match.remark}"
        for line in lines
        if line.match.name is None
    ]
    text += [f"{name}='{value}'" for name, value in variables.items()]
    notes = ["The wheels of Open MPI carry no UCC, so no library has read these strings."]
    return Export("ucc-tune", "UCC", {SETTINGS: "\n".join(text) + "\n"}, variables, list(lines), notes)


def _token(line: Line, place: Place) -> str:
    function, end = line.decision.function, line.decision.max_bytes
    factor = place.ranks if function in _OF_ALL_RANKS else 1
    ranks = f"[{place.ranks}-{place.ranks}]"
    sizes = []
    if function not in WITHOUT_SIZE:
        upper = "inf" if end is None else str((end + 1) * factor)
        sizes = [f"{line.decision.min_bytes * factor}-{upper}"]
    return ":".join([_NAMES.get(function, function), *sizes, "cpu", ranks, "inf", f"@{line.match.name}"])
