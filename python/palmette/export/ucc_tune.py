"""UCC's tuning strings: UCC_TL_UCP_TUNE, UCC_CL_HIER_TUNE and UCC_CL_BASIC_TUNE.

Rules joined by `#`, each `COLLECTIVE:FROM-TO:MEMORY:[RANKS]:SCORE:@ALGORITHM`; `inf` is the highest score. Sizes are
bytes as UCC measures them, ranges inclusive. UCC ignores the whole string if one rule is unknown to it, so there are no
rules for collectives with a single algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence

from palmette.export.decisions import WITHOUT_SIZE, Place, Spec
from palmette.export.match import Export, Line, Match, kin_of, nothing, order_remark

SETTINGS = "ucc.env"

OF_ALL_RANKS = ("allgather", "allgatherv", "alltoall", "reduce_scatter")
"""UCC's size of these is the bytes of all ranks together; of reduce_scatter_block that of one."""

_ONE = {"barrier": "knomial", "gather": "knomial"}
"""Collectives with a single algorithm, which no rule may name."""

NAMES = {"reduce_scatter_block": "reduce_scatter", "reduce_scatter": "reduce_scatterv"}
"""UCC's reduce_scatter has blocks of one length."""

_HIER = ("rab", "2step")
"""Algorithms of the hierarchical layer; all others belong to UCP's."""


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return UCC's nearest algorithm for `spec`: knomial trees and exchanges, rings, and two levels for some."""
    if function in _ONE:
        return nothing(f"UCC has one algorithm for it, {_ONE[function]}")
    key = (function, kin_of(function, spec.name))
    if key == ("allreduce", "ring"):
        return Match("sra_knomial", remark="exchanges that move as many bytes as a ring")
    if key in PLAIN:
        return Match(PLAIN[key], remark=order_remark(place))
    if key in TWO_LEVELS:
        return Match(TWO_LEVELS[key], remark="two levels, intra- and inter-node; it is unaware of switches")
    return nothing("UCC has nothing near for this")


PLAIN = {
    ("allgather", "ring"): "ring",
    ("allgather", "neighbor_exchange"): "neighbor",
    ("allgather", "bruck"): "bruck",
    ("allgather", "recursive_doubling"): "knomial",
    ("allgather", "linear"): "linear",
    ("allgatherv", "ring"): "ring",
    ("allgatherv", "recursive_doubling"): "knomial",
    ("bcast", "k_nomial"): "knomial",
    ("bcast", "scatter_allgather"): "sag_knomial",
    ("bcast", "leaders"): "sag_knomial",
    ("reduce", "k_nomial"): "knomial",
    ("reduce", "reduce_scatter_gather"): "srg",
    ("allreduce", "recursive_doubling"): "knomial",
    ("allreduce", "recursive_multiplying"): "knomial",
    ("allreduce", "rabenseifner"): "sra_knomial",
    ("reduce_scatter", "ring"): "ring",
    ("reduce_scatter_block", "ring"): "ring",
    ("reduce_scatter_block", "recursive_halving"): "knomial",
    ("alltoall", "pairwise"): "pairwise",
    ("alltoall", "linear"): "pairwise",
    ("alltoall", "bruck"): "bruck",
    ("alltoallv", "pairwise"): "pairwise",
}
TWO_LEVELS = {
    ("allreduce", "leaders"): "rab",
    ("allreduce", "reduce_bcast"): "rab",
    ("bcast", "by_topology"): "2step",
    ("reduce", "by_topology"): "2step",
}


def tune(lines: Sequence[Line], place: Place) -> Export:
    """Return the strings as variables, and as a file that a shell can read."""
    mapped = [line for line in lines if line.match.name is not None]
    plain = [line for line in mapped if line.match.name not in _HIER]
    levels = [line for line in mapped if line.match.name in _HIER]
    variables = {"OMPI_MCA_coll_ucc_enable": "1", "OMPI_MCA_coll_ucc_priority": "100"}
    if levels:
        variables["UCC_CLS"] = "basic,hier"
        variables["UCC_CL_HIER_TUNE"] = _joined(levels, place)
    if plain:
        variables["UCC_TL_UCP_TUNE"] = _joined(plain, place)
    if levels and plain:
        # Scores of the transport layer don't compete with the hierarchical collective layer (hier): only those of the
        # basic collective layer do.
        variables["UCC_CL_BASIC_TUNE"] = _joined(plain, place, name_algorithms=False)
    text = ["# written by palmette; read it with a shell: set -a; . ./" + SETTINGS]
    text += [
        f"# {line.decision.function} from {line.decision.min_bytes} bytes: default kept; {line.match.remark}"
        for line in lines
        if line.match.name is None
    ]
    text += [f"{name}='{value}'" for name, value in variables.items()]
    notes = ["The wheels of Open MPI carry no UCC; these strings are tested with UCC 1.9 by itself."]
    return Export("ucc-tune", "UCC", {SETTINGS: "\n".join(text) + "\n"}, variables, list(lines), notes)


def _joined(lines: Sequence[Line], place: Place, *, name_algorithms: bool = True) -> str:
    """Return rules for `lines`; adjacent ranges of one algorithm are merged."""
    ranges: list[tuple[str, str | None, int, int | None]] = []
    for line in lines:
        mine, end = line.decision, line.decision.max_bytes
        function, name, start, before = ranges[-1] if ranges else ("", None, 0, None)
        if (function, name) == (mine.function, line.match.name) and before == mine.min_bytes - 1:
            ranges[-1] = (function, name, start, end)
        else:
            ranges.append((mine.function, line.match.name, mine.min_bytes, end))
    return "#".join(
        _rule(function, start, end, place) + (f":@{name}" if name_algorithms else "")
        for function, name, start, end in ranges
    )


def _rule(function: str, start: int, end: int | None, place: Place) -> str:
    factor = place.ranks if function in OF_ALL_RANKS else 1
    words = [NAMES.get(function, function)]
    if function not in WITHOUT_SIZE:
        upper = "inf" if end is None else str((end + 1) * factor - 1)
        words.append(f"{start * factor}-{upper}")
    return ":".join([*words, "host", f"[{place.ranks}-{place.ranks}]", "inf"])
