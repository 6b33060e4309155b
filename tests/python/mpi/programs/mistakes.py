"""A rank that passes another operation, by mpi4py, and one that stays behind: PALMETTE_CHECK names these lines."""

from __future__ import annotations

import sys
from array import array

from mpi4py import MPI


def advance(world: MPI.Intracomm) -> None:
    """Sum up, but for rank 1."""
    number, total = array("i", [1]), array("i", [0])
    if world.rank == 1:
        world.Allreduce(number, total, op=MPI.MAX)  # rank 1
    else:
        world.Allreduce(number, total, op=MPI.SUM)  # others


def start(world: MPI.Intracomm) -> None:
    """Send rank 0's number to all, but for rank 1, which begins with rank 1's."""
    number = bytearray(4)
    root = 0
    if world.rank == 1:
        root = 1
        request = world.Ibcast(number, root=root)  # rank 1, nonblocking
    else:
        request = world.Ibcast(number, root=root)  # others, nonblocking
    request.Wait()


(start if sys.argv[1:] == ["nonblocking"] else advance)(MPI.COMM_WORLD)
