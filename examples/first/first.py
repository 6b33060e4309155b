"""A first program to run under palmette: an iteration as solvers have it, whose sums are checked.

pip install mpi4py
palmette run --report mpiexec -n 4 python first.py
"""

import sys

import numpy as np
from mpi4py import MPI

STEPS, LENGTH = 100, 4096

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
sums = np.empty(LENGTH)
gathered = np.empty((ranks, LENGTH))
wrong = 0
for step in range(STEPS):
    factor = np.array([step + 1.0 if rank == 0 else 0.0])
    comm.Bcast(factor)
    mine = factor * (rank + np.arange(LENGTH))
    comm.Allreduce(mine, sums)
    comm.Allgather(mine, gathered)
    expected = factor * (ranks * (ranks - 1) / 2 + ranks * np.arange(LENGTH))
    wrong += not np.allclose(sums, expected)
    wrong += not np.array_equal(gathered[-1], factor * (ranks - 1 + np.arange(LENGTH)))
total = comm.reduce(wrong)
if rank == 0:
    print(f"{STEPS} steps on {ranks} ranks: {'right' if total == 0 else 'WRONG'}")
    sys.exit(total != 0)
