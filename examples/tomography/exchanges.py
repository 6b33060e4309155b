"""Three ways to add up the ranks' partial projections, and to bring values of rays back to the ranks that need them."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from scipy.sparse import csr_array
from volumes import Volumes, of_allreduce, of_messages, of_sparse_sum

from palmette import _core
from palmette.compose.factoring import Factoring
from palmette.compose.sparse import BoundSum, SparseSum

Array = NDArray[np.float32]
Indices = NDArray[np.int64]


class Exchange(Protocol):
    """Between `partial`, rows of this rank's matrix, and `values`, rows of rays that this rank keeps."""

    rows: Indices
    """Ray of each row of the rank's matrix."""
    kept: Indices
    """Ray of each row of values here."""
    replicated: bool
    """Whether all ranks keep all rays."""

    def volumes(self, job: _core.Job) -> Volumes | None:
        """Return what crosses between groups of the job in one sum and one spread; on rank 0. Collective."""
        ...

    def sum(self, partial: Array) -> Array:
        """Return the sums of all ranks' partial rows."""
        ...

    def spread(self, values: Array) -> Array:
        """Return the values of this rank's rows."""
        ...


class Dense:
    """MPI_Allreduce of all rays: every rank keeps all of them, so that nothing travels on the way back."""

    replicated = True

    def __init__(self, comm: MPI.Comm, touched: Indices, rays: int, width: int) -> None:
        self.comm, self.rows, self.kept = comm, touched, np.arange(rays)
        self.all, self.sums = (np.zeros((rays, width), dtype=np.float32) for _ in range(2))

    def volumes(self, job: _core.Job) -> Volumes | None:
        return of_allreduce(job, self.all.nbytes)

    def sum(self, partial: Array) -> Array:
        self.all[self.rows] = partial
        self.comm.Allreduce(self.all, self.sums)
        return self.sums

    def spread(self, values: Array) -> Array:
        return values[self.rows]


class Flat:
    """MPI_Alltoallv: each rank sends what it touches to the owners, which add it up."""

    replicated = False

    def __init__(self, comm: MPI.Comm, touched: Indices, bounds: Indices, width: int) -> None:
        self.comm, self.rows = comm, touched
        first, end = bounds[comm.rank], bounds[comm.rank + 1]
        cuts = np.searchsorted(touched, bounds)
        parts = comm.alltoall([touched[a:b] for a, b in pairwise(cuts)])
        arriving = np.concatenate(parts) - first
        self.kept = np.arange(first, end)
        self.arriving = arriving
        ones = np.ones(len(arriving), dtype=np.float32)
        self.adding = csr_array((ones, (arriving, np.arange(len(arriving)))), shape=(end - first, len(arriving)))
        self.counts = np.diff(cuts) * width, np.array([len(part) for part in parts]) * width
        self.touching = np.empty((len(touched), width), dtype=np.float32)
        self.owning = np.empty((len(arriving), width), dtype=np.float32)

    def volumes(self, job: _core.Job) -> Volumes | None:
        sizes = self.comm.gather(self.counts[0] * self.touching.itemsize)
        return of_messages(job, np.array(sizes)) if sizes else None

    def sum(self, partial: Array) -> Array:
        self.comm.Alltoallv([partial, self.counts[0]], [self.owning, self.counts[1]])
        return self.adding @ self.owning

    def spread(self, values: Array) -> Array:
        np.take(values, self.arriving, axis=0, out=self.owning)
        self.comm.Alltoallv([self.owning, self.counts[1]], [self.touching, self.counts[0]])
        return self.touching


class Sparse:
    """palmette's SparseSum: hosts, then leaves, sum what they have in common before it goes on."""

    replicated = False

    def __init__(
        self, comm: MPI.Comm, touched: Indices, bounds: Indices, width: int, coarsen: int, factoring: Factoring | None
    ) -> None:
        self.comm, self.bounds, self.factoring = comm, bounds, factoring
        owned = int(bounds[comm.rank]), int(bounds[comm.rank + 1])
        self.exchange = SparseSum(comm, touched=touched, owned=owned, width=width, coarsen=coarsen, factoring=factoring)
        self.rows, self.kept = self.exchange.order, self.exchange.mine
        self.partial = np.zeros((len(self.rows), width), dtype=np.float32)
        self.values = np.zeros((len(self.kept), width), dtype=np.float32)
        self.bound: BoundSum = self.exchange.bind(self.partial, self.values)

    def volumes(self, job: _core.Job) -> Volumes | None:
        rows = self.comm.gather(self.rows)
        return of_sparse_sum(job, rows, self.bounds, self.partial[:1].nbytes, self.factoring) if rows else None

    def sum(self, partial: Array) -> Array:
        self.partial[:] = partial
        self.bound.sum.start()
        self.bound.sum.wait()
        return self.values

    def spread(self, values: Array) -> Array:
        self.values[:] = values
        self.bound.spread.start()
        self.bound.spread.wait()
        return self.partial
