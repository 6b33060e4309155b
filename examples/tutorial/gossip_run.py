"""Run that collective with numbers, and check what has come.

palmette run mpiexec -n 4 python gossip_run.py
"""

import sys

import numpy as np
from gossip import composition
from mpi4py import MPI

from palmette.compose.running import RunningPlan

BYTES = 8192

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
mine = np.full(BYTES // 8, float(rank))
theirs = np.zeros((2, BYTES // 8))
with RunningPlan(composition(ranks, BYTES), comm) as plan, plan.bind(mine=mine, theirs=theirs) as run:
    run.start()
    run.wait()
# A buffer holds the blocks that its rank gets in the order of the ranks that they are from.
senders = sorted({(rank - 1) % ranks, (rank - 2) % ranks})
wrong = comm.reduce(int(not np.array_equal(theirs[:, 0], senders)))
if rank == 0:
    print(f"gossip on {ranks} ranks: {'right' if wrong == 0 else 'WRONG'}")
    sys.exit(wrong != 0)
