"""mpi4py-fft: a Taylor-Green vortex in a periodic box, fourth-order Runge-Kutta, pencils of a grid of ranks.

Usage: vortex.py [CELLS [STEPS]]
"""

import sys
import time

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

cells = int(sys.argv[1]) if len(sys.argv) > 1 else 32
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 5
viscosity, step_s = 1 / 1600, 0.01
world = MPI.COMM_WORLD
plan = PFFT(world, [cells] * 3, axes=(0, 1, 2), dtype=float)
u, curl = newDistArray(plan, False, rank=1), newDistArray(plan, False, rank=1)
u_hat = newDistArray(plan, True, rank=1)
start, shape = plan.global_shape(False), u.local_slice()
mesh = [np.arange(cells)[s] * 2 * np.pi / cells for s in shape[-3:]]
x, y, z = np.meshgrid(*mesh, indexing="ij")
modes = [np.fft.fftfreq(cells, 1 / cells)] * 2 + [np.fft.rfftfreq(cells, 1 / cells)]
k = np.array(np.meshgrid(*(modes[i][s] for i, s in enumerate(u_hat.local_slice()[-3:])), indexing="ij"))
k2 = np.maximum((k**2).sum(axis=0), 1)
keep = (np.abs(k) < cells / 3).all(axis=0)
u[0], u[1], u[2] = np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0
for i in range(3):
    u_hat[i] = plan.forward(u[i], u_hat[i])


def change(now):
    """Return the time derivative of the velocity's transform."""
    for i in range(3):
        u[i] = plan.backward(now[i], u[i])
    spin = 1j * np.array([k[1] * now[2] - k[2] * now[1], k[2] * now[0] - k[0] * now[2], k[0] * now[1] - k[1] * now[0]])
    for i in range(3):
        curl[i] = plan.backward(spin[i].astype(now.dtype), curl[i])
    out = np.empty_like(np.asarray(now))
    cross = (u[1] * curl[2] - u[2] * curl[1], u[2] * curl[0] - u[0] * curl[2], u[0] * curl[1] - u[1] * curl[0])
    work = newDistArray(plan, True)
    for i in range(3):
        out[i] = plan.forward(np.ascontiguousarray(cross[i]), work) * keep
    pressure = (out * k).sum(axis=0) / k2
    return out - pressure * k - viscosity * k2 * np.asarray(now)


begun = time.perf_counter()
for _ in range(steps):
    first = np.array(u_hat)
    total = np.array(u_hat)
    for share, ahead in ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, 0.0)):
        slope = change(u_hat)
        total += share * step_s * slope
        u_hat[:] = first + ahead * step_s * slope
    u_hat[:] = total
for i in range(3):
    u[i] = plan.backward(u_hat[i], u[i])
energy = world.allreduce(0.5 * float((np.asarray(u) ** 2).sum())) / cells**3
if world.rank == 0:
    print(f"energy {energy:.12f}")
    print(f"time {time.perf_counter() - begun:.3f} s")
