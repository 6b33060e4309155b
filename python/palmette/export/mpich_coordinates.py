"""Export of MPICH's coordinates file, with the variables that enable its topology-aware trees (trees by switches)."""

from __future__ import annotations

from palmette import _core
from palmette.export.coordinates import coordinates_text
from palmette.export.match import Export

COORDINATES = "mpich-coordinates.txt"

TREES: dict[str, dict[str, str]] = {
    "bcast": {
        "MPIR_CVAR_BCAST_COMPOSITION": "3",
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "tree",
        "MPIR_CVAR_BCAST_TREE_TYPE": "topology_aware",
    },
    "reduce": {
        "MPIR_CVAR_REDUCE_COMPOSITION": "3",
        "MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "nb",
        "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM": "tsp_tree",
        "MPIR_CVAR_IREDUCE_TREE_TYPE": "topology_aware",
    },
    "allreduce": {
        "MPIR_CVAR_ALLREDUCE_COMPOSITION": "2",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "tree",
        "MPIR_CVAR_ALLREDUCE_TREE_TYPE": "topology_aware",
    },
}
"""Variables that select MPICH's trees by switches: flat, without the composition of intra- and inter-node parts. Reduce
has one only as a nonblocking algorithm, which the program's own MPI_Ireduce then uses, too."""

UNORDERED = ("allreduce",)
"""MPICH 5.0 combines in tree order there, also for operations that don't commute: wrong results."""


def trees(*, commutative: bool) -> dict[str, str]:
    """Return the variables of all functions with such a tree; of UNORDERED ones only where all operations commute."""
    found: dict[str, str] = {}
    for function, variables in TREES.items():
        if commutative or function not in UNORDERED:
            found |= variables
    return found


def export_coordinates(job: _core.Job, *, commutative: bool = False) -> Export:
    """Return the file, with the variables that select MPICH's trees by switches for calls of every size."""
    variables = {"MPIR_CVAR_COORDINATES_FILE": COORDINATES, **trees(commutative=commutative)}
    notes = ["These variables force the trees for every size; the files of mpich-tuning choose by size."]
    if not commutative:
        notes.append(
            "Allreduce is left out: MPICH's tree by switches is wrong for operations that don't commute. Where all of"
            " the program's do, --commutative takes it."
        )
    return Export("mpich-coordinates", "MPICH", {COORDINATES: coordinates_text(job)}, variables, [], notes)
