"""CPU time, and blocks, that a rank needs to plan a tomography's sparse sum: an MPI program, on pretended hosts.

Usage: PALMETTE_FAKE_HOSTS=a,a,b,b mpiexec -n RANKS python sparse_plan.py IMAGE ANGLES TILE
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI
from sparse_volumes import Case, footprints, parts_of

from palmette.compose.sparse import SparseSum, positions

comm = MPI.COMM_WORLD
image, angles, tile = map(int, sys.argv[1:])
job = Case("", comm.size, image, angles, tuple(range(comm.size)))
position = positions(comm)[comm.rank]
angle, bin_ = np.nonzero(footprints(parts_of(job, "hilbert")[position : position + 1], image, angles)[0])
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
