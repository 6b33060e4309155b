"""Collectives from Python, of objects and of arrays; one closing line."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
ranks = comm.size
wrong = 0
for i in range(50):
    wrong += comm.allreduce(i + comm.rank) != ranks * i + ranks * (ranks - 1) // 2
    ones, total = np.full(100, float(i)), np.zeros(100)
    comm.Allreduce(ones, total)
    wrong += int((total != i * ranks).any())
    wrong += comm.bcast(("a", i) if comm.rank == 0 else None) != ("a", i)
    blocks = np.zeros(2 * ranks, dtype="i4")
    comm.Allgather(np.array([comm.rank, i], dtype="i4"), blocks)
    wrong += int((blocks.reshape(ranks, 2) != [[r, i] for r in range(ranks)]).any())
if comm.rank == 0:
    print(f"200 cases, {comm.reduce(wrong)} wrong")
else:
    comm.reduce(wrong)
