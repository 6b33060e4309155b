"""Communicators that follow the machine, for mpi4py: those of a level's groups, and ranks in an order."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from palmette.compose.errors import ComposeError
from palmette.compose.library import call, handle_of, mpi


def comm_split(comm: Any, level: str, key: int = 0) -> tuple[Any, Any]:
    """Split a communicator by a level of the machine; return this rank's group, and the communicator of leaders.

    `level` is one of topology.json's, such as "leaf", "node" or "socket"; "switch" and "leaf" also mean the innermost
    one outside of hosts. The group's ranks come in order of `key`, then of rank. Leaders are rank 0 of each group, in
    topology order; elsewhere they are `MPI.COMM_NULL`. The caller frees both.

    Collective: all ranks pass the same level. Raises ComposeError on all ranks where the machine has no such level, and
    where levels differ. Cost: two splits.
    """
    group, leaders = mpi().Intracomm(), mpi().Intracomm()
    call("comm_split", handle_of(comm), level.encode(), key, _place_of(group), _place_of(leaders))
    return group, leaders


def comm_reorder(comm: Any, order: str, distances: npt.ArrayLike | None = None) -> Any:
    """Return a communicator with the same processes in an order that suits a pattern; rank 0 stays.

    `order` is greedy (each rank the nearest to the one before), ring (the slowest edge as fast as can be found),
    recursive_doubling, binomial_gather or binomial_bcast. `distances`, which rank 0 passes: a square matrix, from rank
    i to rank j, in any unit, of which the larger of both directions counts; without it the topology decides. The caller
    frees the communicator.

    Collective. Raises ComposeError on all ranks where the order is unknown, or the matrix isn't square or has numbers
    that aren't finite or are negative. Cost: on rank 0 the square of ranks, for a ring by distances up to some seconds;
    a split.
    """
    made = mpi().Intracomm()
    matrix = None
    if distances is not None and comm.rank == 0:
        matrix = np.ascontiguousarray(distances, dtype=np.float64)
        if matrix.shape != (comm.size, comm.size):
            # Found wrong by the library, and told to the other ranks.
            matrix = np.full((comm.size, comm.size), -1.0)
    address = None if matrix is None else matrix.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    call("reorder", handle_of(comm), order.encode(), address, _place_of(made))
    return made


def comm_distances(comm: Any, size_bytes: int) -> npt.NDArray[np.float64] | None:
    """Measure how far ranks are from each other; return the matrix on rank 0, None elsewhere.

    Entry (i, j) is half a round trip of `size_bytes` between ranks i and j in seconds, the median of 20. Pairs measure
    in rounds, all disjoint ones at once, so that times include what they take from each other on common links.

    Collective: all ranks pass the same size. Raises ComposeError on all ranks for sizes below 0 or from 2^31 on.
    """
    if not 0 <= size_bytes < 2**63:
        raise ComposeError(f"messages of {size_bytes} bytes: expected 0 to 2147483647")
    seconds = np.zeros((comm.size, comm.size)) if comm.rank == 0 else None
    address = None if seconds is None else seconds.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    call("distances", handle_of(comm), size_bytes, address)
    return seconds


def _place_of(made: Any) -> ctypes.c_void_p:
    """Return where a communicator's handle is kept, for the library to write."""
    return ctypes.c_void_p(mpi()._addressof(made))
