"""Regions of Python: as a context, around functions, in recursion, and left by an exception."""

from __future__ import annotations

import sys

from mpi4py import MPI

from palmette import region


@region
def assemble(depth: int) -> int:
    return 1 if depth == 0 else 1 + assemble(depth - 1)


@region("fails")
def fails() -> None:
    raise KeyError


def main() -> None:
    count = int(sys.argv[1])
    with region("outer"):
        for _ in range(count):
            with region("inner"):
                pass
            try:
                fails()
            except KeyError:
                MPI.COMM_WORLD.allreduce(1)
    print(assemble(4))


main()
