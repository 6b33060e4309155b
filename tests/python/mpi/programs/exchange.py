"""An MPI program: messages to ranks that don't expect them, from Python. Rank 0 prints `right`."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from palmette.compose import ComposeError
from palmette.compose.exchange import exchange

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size

for seed in range(10):
    lengths = np.random.default_rng(seed).integers(-40, 40, (size, size))
    for dtype in ("f8", "i4"):
        messages = {
            other: np.arange(lengths[rank, other]) + 1000 * rank for other in range(size) if lengths[rank, other] >= 0
        }
        came = exchange(comm, messages, dtype)
        assert list(came) == [other for other in range(size) if lengths[other, rank] >= 0], came
        for other, array in came.items():
            assert array.dtype == dtype
            np.testing.assert_array_equal(array, np.arange(lengths[other, rank]) + 1000 * other)
assert exchange(comm, {}) == {}
for wrong, text in (({size: [1.0]}, "names rank"), ({0: [[1.0]]}, "2 dimensions"), ({0: ["a"]}, "is needed")):
    try:
        exchange(comm, wrong if rank == 0 else {0: [1.0]})
    except ComposeError as error:
        assert rank != 0 or text in str(error), error
    else:
        raise AssertionError(wrong)
assert set(exchange(comm, {(rank + 1) % size: [2.5]})) == {(rank - 1) % size}
comm.Barrier()
if rank == 0:
    print("right")
