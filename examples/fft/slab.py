"""A transform of three dimensions there and back: shift-fft on slabs, by MPI_Alltoall or MPI_Alltoallv of all ranks.

There is no grid of ranks here, so that no order of ranks helps, only the all-to-all itself. Checks that the data come
back. With cells that don't divide by the ranks counts differ, and MPI_Alltoallv is called.

Usage: mpiexec -n 16 python slab.py [CELLS [TIMES]]        48 cells a side, six times
"""

from __future__ import annotations

import sys
import time

import numpy as np
import shift
from mpi4py import MPI

world = MPI.COMM_WORLD
mpi = shift.mpiutils.MPI()
cells = int(sys.argv[1]) if len(sys.argv) > 1 else 48
times = int(sys.argv[2]) if len(sys.argv) > 2 else 6
rng = np.random.default_rng(5)
whole = rng.standard_normal((cells, cells, cells))
low, high = world.rank * cells // world.size, (world.rank + 1) * cells // world.size
mine = whole[low:high]
begun = time.perf_counter()
for _ in range(times):
    spectrum = shift.cart.mpi_fft3D(mine, 1.0, cells, mpi)
    back = shift.cart.mpi_ifft3D(spectrum, 1.0, cells, mpi)
power = world.allreduce(float((np.abs(spectrum) ** 2).sum()))
error = world.allreduce(float(np.abs(back - mine).max()), MPI.MAX)
if world.rank == 0:
    print(f"power {power:.6e}")
    if error > 1e-10:
        sys.exit(f"wrong: what came back differs by {error:g}")
    print(f"time {time.perf_counter() - begun:.3f} s")
