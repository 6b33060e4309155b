"""What MPI functions do, by the table of them: which send, which receive, which only start what completes later."""

from __future__ import annotations

from functools import cache

from palmette import _core

ENDS = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")
"""A job's start and end are nobody's."""


def _operations(*kinds: str) -> frozenset[str]:
    return frozenset(one.operation for one in _core.mpi_functions() if one.kind in kinds)


COLLECTIVES = _operations("barrier", "all_to_all", "one_to_all", "all_to_one", "scan")
SENDS, RECEIVES = _operations("send"), _operations("receive")
PARTITIONED = frozenset({"psend", "precv"})
"""Partitioned operations, which match among themselves."""


@cache
def operation(function: str) -> str:
    """Return MPI_Iallgather_c's "allgather": without the marks of nonblocking, persistent and large-count forms."""
    return _core.mpi_function(function).operation or function.removeprefix("MPI_").lower().removesuffix("_c")


@cache
def only_starts(function: str) -> bool:
    """Whether what a function does is done by the request that it makes.

    The receive of a matched message is recorded as a request, which begins with the probe.
    """
    return _core.mpi_function(function).by_request


@cache
def is_started_later(function: str) -> bool:
    """Whether the requests that a function makes are started by others."""
    return _core.mpi_function(function).persistent
