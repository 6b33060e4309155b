"""Neighbourhood collectives of mpi4py, which takes functions with large counts where it finds them, on two ranks."""

import numpy as np
from mpi4py import MPI

cases = wrong = 0
for comm in (MPI.COMM_SELF, MPI.COMM_WORLD):
    cart = comm.Create_cart([comm.size], [True])
    neighbours = [comm.rank - 1, comm.rank + 1]
    for kind in ("blocking", "nonblocking", "persistent"):
        send, recv = np.full(2, comm.rank, "i"), np.full(2, -1, "i")
        message = [send, 1, MPI.INT], [recv, 1, MPI.INT]
        if kind == "blocking":
            cart.Neighbor_alltoall(*message)
        elif kind == "nonblocking":
            cart.Ineighbor_alltoall(*message).Wait()
        else:
            request = cart.Neighbor_alltoall_init(*message)
            request.Start()
            request.Wait()
            request.Free()
        cases += 1
        wrong += [*recv] != [other % comm.size for other in neighbours]
    cart.Free()
print(f"{cases} cases, {wrong} wrong")
