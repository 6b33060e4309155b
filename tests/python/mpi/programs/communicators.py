"""An MPI program: communicators that follow the machine, and errors as exceptions on all ranks. Rank 0 prints
`right`."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from palmette.compose import ComposeError
from palmette.compose.communicators import comm_distances, comm_reorder, comm_split

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size

group, leaders = comm_split(comm, "host", -rank)
assert (group.size, group.rank) == (size, size - 1 - rank)
assert (leaders == MPI.COMM_NULL) == (group.rank != 0)
assert group.allreduce(rank) == size * (size - 1) // 2

# Along a line, in the order 0, size - 1, ..., 1.
places = np.array([-r % size for r in range(size)])
line = comm_reorder(comm, "greedy", np.abs(places[:, None] - places) if rank == 0 else None)
assert line.rank == -rank % size

measured = comm_distances(comm, 1000)
assert (measured is None) == (rank != 0)
if measured is not None:
    assert np.array_equal(measured, measured.T) and not measured.diagonal().any()
    assert (measured[~np.eye(size, dtype=bool)] > 0).all()
ring = comm_reorder(comm, "ring", measured)
assert ring.size == size and (rank != 0 or ring.rank == 0)

wrong = [
    lambda: comm_split(comm, "shelf"), lambda: comm_split(comm, "node" if rank else "socket"),
    lambda: comm_reorder(comm, "sorted"), lambda: comm_reorder(comm, "ring", np.ones((2, 3))),
    lambda: comm_reorder(comm, "ring", np.full((size, size), np.nan)), lambda: comm_distances(comm, -1),
    lambda: comm_distances(comm, 2**31),
]  # fmt: skip
for number, mistake in enumerate(wrong):
    try:
        mistake()
    except ComposeError as error:
        assert str(error), number
    else:
        raise AssertionError(f"mistake {number} is taken")
for made in (group, ring, line, *(() if leaders == MPI.COMM_NULL else (leaders,))):
    made.Free()
if comm.rank == 0:
    print("right")
