"""shift-fft: a slab-decomposed three-dimensional transform there and back."""

import time

import numpy as np
import shift
from mpi4py import MPI

world = MPI.COMM_WORLD
mpi = shift.mpiutils.MPI()
cells = 48
rng = np.random.default_rng(5)
whole = rng.standard_normal((cells, cells, cells))
low, high = world.rank * cells // world.size, (world.rank + 1) * cells // world.size
mine = whole[low:high]
begun = time.perf_counter()
for _ in range(6):
    spectrum = shift.cart.mpi_fft3D(mine, 1.0, cells, mpi)
    back = shift.cart.mpi_ifft3D(spectrum, 1.0, cells, mpi)
power = world.allreduce(float((np.abs(spectrum) ** 2).sum()))
error = world.allreduce(float(np.abs(back - mine).max()), MPI.MAX)
if world.rank == 0:
    print(f"power {power:.6e} right {error < 1e-10}")
    print(f"time {time.perf_counter() - begun:.3f} s")
