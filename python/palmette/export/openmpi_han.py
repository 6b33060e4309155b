"""Open MPI's rule file of the `han` component: coll_han_dynamic_rules_filename, for version 5.0.

HAN composes a collective of two levels, intra-node and inter-node. A rule selects the component of a level; for the
whole communicator `han` itself (with an algorithm after `@`), or the flat component `tuned`, which then uses the rules
of its own file.
"""

from __future__ import annotations

from collections.abc import Sequence

from palmette.export.decisions import WITHOUT_SIZE, Place, Spec
from palmette.export.match import Export, Line, Match, nothing, scope
from palmette.export.openmpi_tuned import RULES as TUNED_RULES

RULES = "openmpi-han.rules"

COLLECTIVES = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")
"""The collectives of HAN; all others are served by `tuned` anyway."""

_ALGORITHMS = {
    "allgather": ("intra", "simple"),
    "allreduce": ("intra", "simple"),
    "barrier": ("simple",),
    "bcast": ("intra", "simple"),
    "gather": ("intra", "simple"),
    "reduce": ("intra", "simple"),
    "scatter": ("intra", "simple"),
}
"""HAN's algorithms: `intra` pipelines segments, `simple` doesn't."""

_OF_ALL_RANKS = ("allgather", "gather", "scatter")


def match(function: str, spec: Spec, place: Place) -> Match:
    """Return HAN for algorithms with node leaders, and `tuned` for others."""
    if function not in COLLECTIVES:
        return nothing("not one of HAN's collectives")
    if not _has_node_leaders(spec):
        return Match("tuned", remark="without levels; see the tuned rules")
    if not place.even_nodes:
        return nothing("HAN disables itself where nodes have different numbers of ranks")
    names = _ALGORITHMS[function]
    name = "intra" if spec.segment and "intra" in names else "simple"
    return Match("han", {"algorithm": name}, _levels(spec))


def _has_node_leaders(spec: Spec) -> bool:
    return spec.name == "leaders" or (spec.name in ("by_topology", "reduce_bcast") and spec.keys.get("node") != "none")


def _levels(spec: Spec) -> str:
    above = [key for key in spec.keys if key in ("leaf", "pod", "spine", "chassis")]
    if above or spec.keys.get("level", "node") != "node":
        return "two levels, intra- and inter-node; it is unaware of switches"
    return ""


def han(lines: Sequence[Line], place: Place, tuned: Export) -> Export:
    """Return HAN's rule file with the `tuned` one that it needs."""
    functions = [
        name for name in COLLECTIVES if any(line.match.name for line in lines if line.decision.function == name)
    ]
    out = [f"{len(functions)}  # collectives; written by palmette for {scope(place)}"]
    for function in functions:
        mine = [line for line in lines if line.decision.function == function]
        out += _collective(function, mine, place)
    files = {RULES: "\n".join(out) + "\n", **tuned.files}
    variables = {
        "OMPI_MCA_coll_han_use_dynamic_file_rules": "1",
        "OMPI_MCA_coll_han_dynamic_rules_filename": RULES,
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": TUNED_RULES,
    }
    notes = ["HAN is aware of nodes, not of switches: what palmette does at switch level is not in these files."]
    return Export("openmpi-han", "Open MPI", files, variables, list(lines), notes)


def _collective(function: str, lines: Sequence[Line], place: Place) -> list[str]:
    factor = place.ranks if function in _OF_ALL_RANKS else 1
    rules = []
    for line in lines[:1] if function in WITHOUT_SIZE else lines:
        match = line.match
        algorithm = match.parameters.get("algorithm")
        what = f"{match.name or 'han'}{f' @{algorithm}' if algorithm else ''}"
        remark = f"; {match.remark}" if match.remark else ""
        rules.append(
            f"{line.decision.min_bytes * factor} {what}  # palmette: {line.decision.algorithm or 'mpi'}{remark}"
        )
    return [
        function,
        "1  # topological levels",
        "global_communicator",
        "3  # communicator sizes",
        "1 1  # fewer ranks: HAN by default",
        "0 han",
        f"{place.ranks} {len(rules)}  # ranks, rules: bytes, component",
        *rules,
        f"{place.ranks + 1} 1  # more ranks: HAN by default",
        "0 han",
    ]
