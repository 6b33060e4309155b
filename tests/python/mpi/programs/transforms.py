"""A distributed FFT there and back, by mpi4py-fft; one closing line."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

comm = MPI.COMM_WORLD
fft = PFFT(comm, (8, 12, 10), axes=(0, 1, 2), dtype=np.float64)
before = newDistArray(fft, False)
before[:] = np.random.default_rng(comm.rank).random(before.shape)
after = fft.backward(fft.forward(before.copy()))
wrong = comm.allreduce(0 if np.allclose(before, after) else 1)
if comm.rank == 0:
    print(f"{comm.size} cases, {wrong} wrong")
