"""Open MPI's rule file of the `tuned` component: coll_tuned_dynamic_rules_filename, for versions 4.1 and 5.0.

Numbers with comments after `#`: for each collective its communicator sizes, for each of those its message sizes, for
each of those algorithm, fan-out and segment size. A rule applies from its size on, up to the next; algorithm 0 is the
component's own decision.
"""

from __future__ import annotations

from collections.abc import Sequence

from palmette.export.decisions import WITHOUT_SIZE, Place
from palmette.export.match import Export, Line, nothing, scope
from palmette.export.openmpi_match import NUMBERS

RULES = "openmpi-tuned.rules"

COLLECTIVES = {
    "allgather": 0,
    "allgatherv": 1,
    "allreduce": 2,
    "alltoall": 3,
    "alltoallv": 4,
    "barrier": 6,
    "bcast": 7,
    "exscan": 8,
    "gather": 9,
    "reduce": 11,
    "reduce_scatter": 12,
    "reduce_scatter_block": 13,
    "scan": 14,
    "scatter": 15,
}
"""Function -> number in rule files of Open MPI 4 and 5."""

_OF_ALL_RANKS = ("allgather", "alltoall", "reduce_scatter", "reduce_scatter_block", "gather", "scatter")
"""The size of these is the bytes of a rank's blocks for all ranks together; of the others it is palmette's."""

_UNMEASURED = ("scan", "exscan")
"""Functions that rule files have no effect on."""


def tuned(lines: Sequence[Line], place: Place, *, without_han: bool = True) -> Export:
    """Return the rule file for communicators of the job's size.

    `without_han`: the HAN component has precedence over `tuned` where a communicator spans nodes, so the variables
    disable it.
    """
    lines = [_unmeasured(line) for line in lines]
    functions = [
        name for name in COLLECTIVES if any(line.match.name for line in lines if line.decision.function == name)
    ]
    out = [
        f"{len(functions)}  # collectives; written by palmette for {scope(place)}",
    ]
    for function in functions:
        mine = [line for line in lines if line.decision.function == function]
        out += _collective(function, mine, place)
    for line in lines:
        if line.match.name is None:
            out.append(
                f"# {line.decision.function} from {line.decision.min_bytes} bytes: default kept; {line.match.remark}"
            )
    variables = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_dynamic_rules_filename": RULES}
    notes = []
    if without_han:
        variables["OMPI_MCA_coll"] = "^han"
        notes.append(
            "HAN has precedence over tuned where a communicator spans nodes: OMPI_MCA_coll=^han disables it."
            " With the files of openmpi-han both work together."
        )
    return Export("openmpi-tuned", "Open MPI", {RULES: "\n".join(out) + "\n"}, variables, list(lines), notes)


def _unmeasured(line: Line) -> Line:
    if line.decision.function in _UNMEASURED and line.match.name is not None:
        return Line(line.decision, nothing("rule files have no effect on it"))
    return line


def _collective(function: str, lines: Sequence[Line], place: Place) -> list[str]:
    rules = _rules(function, lines, place)
    out = [
        f"{COLLECTIVES[function]}  # {function}",
        "3  # communicator sizes",
        "0 1  # fewer ranks: own decision",
        "0 0 0 0",
        f"{place.ranks} {len(rules)}  # ranks, rules: bytes, algorithm, fan-out, segment",
    ]
    out += rules
    out += [f"{place.ranks + 1} 1  # more ranks: own decision", "0 0 0 0"]
    return out


def _rules(function: str, lines: Sequence[Line], place: Place) -> list[str]:
    factor = place.ranks if function in _OF_ALL_RANKS else 1
    rules = []
    for line in lines[:1] if function in WITHOUT_SIZE else lines:
        match = line.match
        number = NUMBERS[function][match.name] if match.name is not None else 0
        segment = match.parameters.get("segment", "0")
        what = match.name or "own decision"
        remark = f"; {match.remark}" if match.remark else ""
        start = line.decision.min_bytes * factor
        rules.append(f"{start} {number} 0 {segment}  # {what}, palmette: {line.decision.algorithm or 'mpi'}{remark}")
    return rules
