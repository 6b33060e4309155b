"""MPICH's JSON tuning files: algorithms (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE), and compositions of intra- and
inter-node parts (MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE).

A file is a decision tree: of the keys of an object MPICH follows the first whose condition holds. It rejects unknown
keys, but its parser skips comments: what couldn't be exported is listed in one at the top.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from palmette.export.decisions import WITHOUT_SIZE, Place
from palmette.export.match import Export, Line, nothing, scope
from palmette.export.mpich_coordinates import COORDINATES, TREES, UNORDERED
from palmette.export.mpich_defaults import Defaults, Tree
from palmette.export.mpich_match import BY_SWITCHES

ALGORITHMS, COMPOSITIONS = "mpich-algorithms.json", "mpich-compositions.json"

_FLAT = {
    "bcast": "MPIDI_Bcast_intra_composition_gamma",
    "reduce": "MPIDI_Reduce_intra_composition_gamma",
    "allreduce": "MPIDI_Allreduce_intra_composition_beta",
    "barrier": "MPIDI_Barrier_intra_composition_beta",
}
"""The flat compositions, in which an algorithm runs over all ranks and not over one of each node."""

_OF_ALL_RANKS = ("allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block")
"""MPICH's size of these is the bytes of all ranks together; of the others it is palmette's."""

_UNMEASURED = ("gather", "scatter", "scan", "exscan")
"""MPICH has no size for scans and aborts the program where a rule uses one; those of gather and scatter count elements
of each rank's own type, so that ranks could disagree."""

_REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
_HALVED = ("MPIR_Allreduce_intra_reduce_scatter_allgather", "MPIR_Reduce_intra_reduce_scatter_gather")
"""Recursive halving algorithms: not for fewer elements than ranks, nor for user-defined operations."""

_LONGEST = 2**31 - 1
"""MPICH reads limits as int."""

Leaf = Callable[[Line], Tree]


def tuning(
    lines: Sequence[Line], place: Place, defaults: Defaults, coordinates: str, *, commutative: bool = False
) -> Export:
    """Return the files for communicators of the job's size; others keep MPICH's own tuning, and so do calls without a
    match.

    `coordinates` is the text of the coordinates file, used where a function takes a tree by switches for all sizes.
    `commutative`: all operations of the program commute.
    """
    algorithms, compositions = dict(defaults.algorithms), dict(defaults.compositions)
    lines = _without_some_trees(_with_one_rule(lines), commutative)
    by_switches: list[str] = []
    for function in dict.fromkeys(line.decision.function for line in lines):
        mine = [line for line in lines if line.decision.function == function]
        if mine[0].match.name == BY_SWITCHES:
            by_switches.append(function)
        elif any(line.match.name for line in mine):
            _overlay(algorithms, function, mine, place, _algorithm)
            if function in _FLAT:
                _overlay(compositions, function, mine, place, _composition)
    head = _head(lines, place)
    files = {ALGORITHMS: head + _text(algorithms), COMPOSITIONS: head + _text(compositions)}
    variables = {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": ALGORITHMS,
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": COMPOSITIONS,
    }
    notes = []
    if by_switches:
        files[COORDINATES] = coordinates
        variables["MPIR_CVAR_COORDINATES_FILE"] = COORDINATES
        for function in by_switches:
            variables |= TREES[function]
        notes.append(
            "The coordinates file is valid for this placement only; its trees serve MPI_COMM_WORLD, and MPICH gives no"
            " warning where it can't use it."
        )
    return Export("mpich-tuning", "MPICH", files, variables, lines, notes)


def _without_some_trees(lines: Sequence[Line], commutative: bool) -> list[Line]:
    """The lines without trees by switches where variables can't select them, or results would be wrong."""
    result = []
    for line in lines:
        function = line.decision.function
        names = {one.match.name for one in lines if one.decision.function == function}
        if line.match.name == BY_SWITCHES and len(names) > 1:
            why = "files can't name trees by switches, and variables force them for all sizes"
            line = replace(line, match=nothing(why))
        elif line.match.name == BY_SWITCHES and function in UNORDERED and not commutative:
            why = "MPICH's tree by switches is wrong for operations that don't commute: --commutative takes it"
            line = replace(line, match=nothing(why))
        result.append(line)
    return result


def _head(lines: Sequence[Line], place: Place) -> str:
    """A comment, which MPICH's JSON parser skips."""
    text = [f"/* written by palmette for {scope(place)}; all others have MPICH's own tuning"]
    for line in lines:
        if line.match.name is None:
            decision = line.decision
            what = f"palmette takes {decision.algorithm}; " if decision.algorithm else ""
            text.append(
                f"   {decision.function} from {decision.min_bytes} bytes: default kept; {what}{line.match.remark}"
            )
    return "\n".join(text) + " */\n"


def _with_one_rule(lines: Sequence[Line]) -> list[Line]:
    """The lines without those of functions that MPICH has no sizes for, where the match depends on the size."""
    result = []
    for line in lines:
        function = line.decision.function
        matches = {(one.match.name, str(one.match.parameters)) for one in lines if one.decision.function == function}
        if function in _UNMEASURED and len(matches) > 1 and line.match.name is not None:
            line = replace(line, match=nothing(f"MPICH can't distinguish sizes of {function}"))
        result.append(line)
    return result


def _algorithm(line: Line) -> Tree:
    return {f"algorithm={line.match.name}": {f"{key}={value}": {} for key, value in line.match.parameters.items()}}


def _composition(line: Line) -> Tree:
    return {f"composition={_FLAT[line.decision.function]}": {}}


def _overlay(document: Tree, function: str, lines: Sequence[Line], place: Place, leaf: Leaf) -> None:
    """Insert rules for communicators of exactly the job's size at the root of a collective's tree."""
    key = f"collective={function}"
    if key not in document:
        return
    whole: Tree = document[key]
    intra = whole.get("comm_type=intra", whole)
    document[key] = {
        "comm_type=intra": {
            f"comm_size<{place.ranks}": intra,
            f"comm_size<={place.ranks}": _by_size(function, lines, place, leaf, intra),
            "comm_size=any": intra,
        }
    }
    if "comm_type=inter" in whole:
        document[key]["comm_type=inter"] = whole["comm_type=inter"]
    elif intra is whole:
        document[key]["comm_type=inter"] = whole


def _by_size(function: str, lines: Sequence[Line], place: Place, leaf: Leaf, default: Tree) -> Tree:
    """The rules of a collective by increasing size; adjacent equal ones are merged."""
    if function in (*WITHOUT_SIZE, *_UNMEASURED):
        return _guarded(function, lines[0], leaf, default)
    measure, factor = ("total_msg_size", place.ranks) if function in _OF_ALL_RANKS else ("avg_msg_size", 1)
    rules: list[tuple[int | None, Tree]] = []
    for line in lines:
        end = line.decision.max_bytes
        limit = None if end is None or (end + 1) * factor > _LONGEST else (end + 1) * factor
        branch = _guarded(function, line, leaf, default)
        if rules and rules[-1][1] == branch:
            rules.pop()
        rules.append((limit, branch))
        if limit is None:
            break
    return {f"{measure}=any" if limit is None else f"{measure}<{limit}": branch for limit, branch in rules}


def _guarded(function: str, line: Line, leaf: Leaf, default: Tree) -> Tree:
    """The branch of one line, guarded by the conditions that its algorithm requires; MPICH checks none itself."""
    if line.match.name is None:
        return default
    branch = leaf(line)
    if line.match.name in _HALVED:
        branch = {"count<pow2": default, "count=any": branch}
        branch = {"is_op_built_in=yes": branch, "is_op_built_in=no": default}
    elif function in _REDUCTIONS and not line.match.name.endswith("_recursive_doubling"):
        branch = {"is_commutative=yes": branch, "is_commutative=no": default}
    if function in ("alltoall", "alltoallv"):
        branch = {"is_sendbuf_inplace=no": branch, "is_sendbuf_inplace=yes": default}
    return branch


def _text(document: Tree) -> str:
    return json.dumps(document, indent=1) + "\n"
