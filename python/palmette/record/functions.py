"""What MPI functions do, as their names say: which send, which receive, which only start what completes later."""

from __future__ import annotations

from functools import cache

ENDS = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")
"""A job's start and end are nobody's."""
COLLECTIVES = frozenset({
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
    "alltoallw", "allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
})  # fmt: skip
SENDS = frozenset({"send", "ssend", "rsend", "bsend", "psend", "sendrecv", "sendrecv_replace"})
RECEIVES = frozenset({"recv", "mrecv", "precv"})
PARTITIONED = frozenset({"psend", "precv"})
"""They match among themselves."""


@cache
def operation(function: str) -> str:
    """Return MPI_Iallgather_c's "allgather": without the marks of nonblocking, persistent and large-count forms."""
    name = function.removeprefix("MPI_").lower().removesuffix("_c").removesuffix("_init")
    plain = COLLECTIVES | SENDS | RECEIVES
    return name[1:] if name not in plain and name.startswith("i") and name[1:] in plain else name


@cache
def only_starts(function: str) -> bool:
    """Whether what a function does is done by the request that it makes.

    The receive of a matched message is recorded as a request, which begins with the probe.
    """
    return function.startswith(("MPI_I", "MPI_Mrecv")) or "_init" in function


@cache
def is_started_later(function: str) -> bool:
    """Whether the requests that a function makes are started by others."""
    return "_init" in function
