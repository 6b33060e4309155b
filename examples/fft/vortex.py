"""A Taylor-Green vortex by a pseudo-spectral method: mpi4py-fft on a grid of ranks, each with a pencil of the box.

The equations of Navier and Stokes in a periodic box of 2 pi x 4 pi x 4 pi, fourth-order Runge-Kutta. A step takes 36
transforms, each with two exchanges (MPI_Alltoallw): in the rows and in the columns of the grid of ranks, which
mpi4py-fft makes by MPI_Cart_create with reorder true. At the end the energy is compared with the known one, to seven
digits.

Usage: mpiexec -n 16 python vortex.py [CELLS [STEPS]]        64 cells a side and 10 steps
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

VISCOSITY = 0.000625
STEP_S = 0.01
SIDES = np.array([2, 4, 4]) * np.pi
KNOWN_ENERGY = {1: 0.124995312572, 5: 0.124976562663, 10: 0.124953117517}
"""After so many steps, whatever the number of cells from 32 on: with 10 that of mpi4py-fft's own solver, else that of
one rank."""

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 64
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
world = MPI.COMM_WORLD

plan = PFFT(world, [cells] * 3, axes=(0, 1, 2), dtype=float)
velocity, vorticity = newDistArray(plan, False, rank=1), newDistArray(plan, False, rank=1)
transformed = newDistArray(plan, True, rank=1)

points = [np.arange(cells)[part] * side / cells for part, side in zip(velocity.local_slice()[1:], SIDES, strict=True)]
x, y, z = np.meshgrid(*points, indexing="ij")
modes = [np.fft.fftfreq(cells, 1 / cells)] * 2 + [np.fft.rfftfreq(cells, 1 / cells)]
boxes = zip(modes, transformed.local_slice()[1:], SIDES, strict=True)
numbers = [mode[part] * 2 * np.pi / side for mode, part, side in boxes]
k = np.array(np.meshgrid(*numbers, indexing="ij"))
k_squared = (k * k).sum(axis=0)
k_over_squared = k / np.where(k_squared == 0, 1, k_squared)


def cross(a, b):
    """Return the cross product of two fields of vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def change(now):
    """Return the time derivative of the transformed velocity: nine transforms."""
    curl = 1j * cross(k, now)
    for i in range(3):
        velocity[i] = plan.backward(now[i], velocity[i])
        vorticity[i] = plan.backward(curl[i], vorticity[i])
    product = cross(np.asarray(velocity), np.asarray(vorticity))
    out = np.empty_like(now)
    for i in range(3):
        out[i] = plan.forward(product[i], out[i])
    return out - (out * k_over_squared).sum(axis=0) * k - VISCOSITY * k_squared * now


velocity[0] = np.sin(x) * np.cos(y) * np.cos(z)
velocity[1] = -np.cos(x) * np.sin(y) * np.cos(z)
velocity[2] = 0
for i in range(3):
    transformed[i] = plan.forward(velocity[i], transformed[i])

now = np.array(transformed)
world.Barrier()
begun = time.perf_counter()
for _ in range(steps):
    start, total = now, now.copy()
    for share, ahead in ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0)):
        slope = change(now)
        total += share * STEP_S * slope
        now = start + ahead * STEP_S * slope
    now = total
for i in range(3):
    velocity[i] = plan.backward(now[i], velocity[i])
energy = world.allreduce(float((np.asarray(velocity) ** 2).sum())) / cells**3 / 2
if world.rank == 0:
    print(f"energy {energy:.12f}")
    known = KNOWN_ENERGY.get(steps)
    if known is not None and cells >= 32 and round(energy - known, 7) != 0:
        sys.exit(f"wrong: the energy after {steps} steps is {known}")
    print(f"time {time.perf_counter() - begun:.3f} s")
