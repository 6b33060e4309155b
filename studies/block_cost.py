"""What a block costs in a composed plan's message beyond its bytes: an MPI program on two ranks of one host.

Rank 0 sends BLOCKS blocks of one double to rank 1, which adds its own: blocks with gaps between them, which are packed,
unpacked and combined one by one, against the same bytes in one block. Prints nanoseconds a block at each of both ends.

Usage: mpiexec -n 2 python block_cost.py
"""

from __future__ import annotations

import time

import numpy as np
from mpi4py import MPI

from palmette.compose import Composition
from palmette.compose.running import RunningPlan

REPEATS = 300

comm = MPI.COMM_WORLD


def seconds(lengths: list[int], step: int) -> float:
    """Return the least time of a sum of every `step`-th block."""
    composition = Composition(2, bytes=lengths, element_bytes=8)
    partial, mine = composition.buffer("partial"), composition.buffer("mine")
    for block in range(0, len(lengths), step):
        composition.reduce({0, 1}, 1, partial[block], mine)
    for block in range(len(lengths)):
        for rank in range(2):
            composition.hold(rank, partial[block])
            composition.hold(rank, mine[block])
    plan = RunningPlan(composition, comm, datatype=MPI.DOUBLE, operations={"sum": MPI.SUM})
    arrays = [np.ones(sum(lengths) // 8) for _ in range(2)]
    least = float("inf")
    with plan.bind(partial=arrays[0], mine=arrays[1]) as run:
        for _ in range(REPEATS):
            comm.Barrier()
            began = time.perf_counter()
            run.start()
            run.wait()
            least = min(least, time.perf_counter() - began)
    return float(comm.allreduce(least, MPI.MAX))


for blocks in (1000, 4000, 16000):
    apart, whole = seconds([8] * (2 * blocks), 2), seconds([8 * blocks], 1)
    if comm.rank == 0:
        print(f"{blocks} blocks: {apart * 1e6:.1f} us, in one {whole * 1e6:.1f} us: "
              f"{(apart - whole) / blocks / 2 * 1e9:.1f} ns a block and end")  # fmt: skip
