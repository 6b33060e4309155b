"""A bar that is heated at its end: each rank has a part of it, and exchanges edges with its neighbours.

One of the ranks is late in each step, by a line of its own: docs/tutorial/slow.md looks for it. `--fixed` has it right.

    mpiexec -n 4 python heat.py [--fixed] [--steps N]
"""

import argparse

import numpy as np
from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--cells", type=int, default=40_000)
asked = parser.parse_args()

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
left = rank - 1 if rank > 0 else MPI.PROC_NULL
right = rank + 1 if rank + 1 < ranks else MPI.PROC_NULL
cells = np.zeros(asked.cells + 2)
flux = np.empty(asked.cells)
heat = np.empty(1)


def heated_one_by_one(bar: np.ndarray, step: int) -> float:
    """Return the heat that comes in at the end, cell by cell."""
    total = 0.0
    for cell in range(1, len(bar) - 1):
        total += 1.0 / (1 + cell * cell + step)
    return total


def heated_at_once(bar: np.ndarray, step: int) -> float:
    """Return the same, by one call for all cells."""
    cell = np.arange(1, len(bar) - 1, dtype=float)
    return float(np.sum(1.0 / (1 + cell * cell + step)))


heated = heated_at_once if asked.fixed else heated_one_by_one
begin = MPI.Wtime()
for step in range(asked.steps):
    comm.Sendrecv(cells[1:2], left, recvbuf=cells[-1:], source=right)
    comm.Sendrecv(cells[-2:-1], right, recvbuf=cells[:1], source=left)
    flux[:] = cells[2:] - 2 * cells[1:-1] + cells[:-2]
    cells[1:-1] += 0.25 * flux
    if rank == ranks - 1:
        cells[-2] += heated(cells, step)
    comm.Allreduce(np.array([np.sum(cells[1:-1])]), heat)
if rank == 0:
    print(f"{asked.steps} steps on {ranks} ranks, {MPI.Wtime() - begin:.3f} s, heat {heat[0]:.6f}")
