"""CPU time, and blocks, that a rank needs to plan a tomography's sparse sum: an MPI program, on pretended hosts.

Usage: PALMETTE_FAKE_HOSTS=a,a,b,b mpiexec -n RANKS python sparse_plan.py IMAGE ANGLES TILE
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI
from sparse_volumes import hilbert

from palmette.compose.sparse import SparseSum, positions

comm = MPI.COMM_WORLD
image, angles, tile = map(int, sys.argv[1:])
side = round(comm.size**0.5)
position = positions(comm)[comm.rank]
width = image / side
x, y = (hilbert(side)[position] + 0.5) * width - image / 2
theta = np.arange(angles) * np.pi / angles
middle = x * np.cos(theta) + y * np.sin(theta) + image / 2
half = width / 2 * (abs(np.cos(theta)) + abs(np.sin(theta)))
bins = np.arange(image)
angle, bin_ = np.nonzero((bins >= np.floor(middle - half)[:, None]) & (bins < np.ceil(middle + half)[:, None]))
touched = ((angle // tile * (image // tile) + bin_ // tile) * tile + angle % tile) * tile + bin_ % tile
tiles = image * angles // tile**2
owned = tiles * comm.rank // comm.size * tile**2, tiles * (comm.rank + 1) // comm.size * tile**2
comm.Barrier()
began, wall = time.process_time(), time.perf_counter()
exchange = SparseSum(comm, touched=touched, owned=owned, coarsen=tile**2)
spent = [time.process_time() - began, time.perf_counter() - wall, exchange.known_blocks]
worst = [comm.reduce(value, MPI.MAX) for value in spent]
if comm.rank == 0:
    print(f"{comm.size} ranks, {exchange.blocks} blocks: {worst[2]} known to a rank at most, "
          f"{worst[0]:.2f} s of CPU at most, {worst[1]:.2f} s")  # fmt: skip
exchange.free()
