"""The same tomography by pylops-mpi, which knows nothing of palmette: each rank has the whole volume, and some angles.

Usage: palmette run mpiexec -n 4 python pylops_cgls.py [--object head] [--help]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from objects import OBJECTS
from projector import Geometry
from pylops import MatrixMult
from pylops_mpi import DistributedArray, MPIVStack, Partition, cgls


def main() -> int:
    """Reconstruct; print residual and error on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--object", choices=sorted(OBJECTS), default="shepp-logan")
    for name, usual in (("cells", 64), ("angles", 96), ("slices", 16), ("iterations", 10)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--save", type=Path, help="write the volume here, as a .npy file")
    asked = parser.parse_args()
    comm = MPI.COMM_WORLD

    geometry = Geometry(asked.cells, asked.angles)
    row, column = (index.ravel() for index in np.indices((asked.cells, asked.cells)))
    touched, matrix = geometry.matrix(row, column)
    first, end = np.searchsorted(touched, geometry.owned(comm.rank, comm.size))
    projection = MPIVStack([MatrixMult(matrix[first:end].astype(np.float64), otherdims=asked.slices)])

    truth = OBJECTS[asked.object](asked.cells, asked.slices).astype(np.float64).ravel()
    x, start = (
        DistributedArray(global_shape=truth.size, partition=Partition.BROADCAST, dtype=np.float64) for _ in range(2)
    )
    x[:], start[:] = truth, 0
    found, _, _, _, _, cost = cgls(projection, projection @ x, x0=start, niter=asked.iterations, tol=0)
    if comm.rank == 0:
        error = np.linalg.norm(found.local_array - truth) / np.linalg.norm(truth)
        print(f"pylops-mpi residual {cost[-1] / cost[0]:.2e}, error {error:.2e}")
        if asked.save:
            np.save(asked.save, found.local_array.reshape(asked.cells, asked.cells, asked.slices))
    return 0


if __name__ == "__main__":
    sys.exit(main())
