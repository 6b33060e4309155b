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
from palmette.compose.running import Run
from palmette.compose.sparse import SparseSum

Array = NDArray[np.float32]
Indices = NDArray[np.int64]


class Exchange(Protocol):
    """Between partial rows, those of this rank's matrix, and values, rows of rays that this rank keeps.

    Slices are in parts of `width`; several parts may be under way, each in one direction.
    """

    rows: Indices
    """Ray of each row of the rank's matrix."""
    kept: Indices
    """Ray of each row of values here."""
    replicated: bool
    """Whether all ranks keep all rays."""

    def volumes(self, job: _core.Job) -> Volumes | None:
        """Return what crosses between groups of the job in a sum and a spread of all slices; on rank 0. Collective."""
        ...

    def start_sum(self, part: int, partial: Array) -> None:
        """Begin to add up all ranks' partial rows, which are copied."""
        ...

    def finish_sum(self, part: int) -> Array:
        """Return the sums, which are valid until the part's next start."""
        ...

    def start_spread(self, part: int, values: Array) -> None:
        """Begin to bring values, which must not change until it is finished, to all ranks' rows."""
        ...

    def finish_spread(self, part: int) -> Array:
        """Return the values of this rank's rows, which are valid until the part's next start."""
        ...

    def progress(self, part: int) -> None:
        """Let a part that is under way move on."""
        ...


class Dense:
    """MPI_Allreduce of all rays: every rank keeps all of them, so that nothing travels on the way back.

    Several parts go by MPI_Iallreduce.
    """

    replicated = True

    def __init__(self, comm: MPI.Comm, touched: Indices, rays: int, width: int, parts: int) -> None:
        self.rows, self.kept = touched, np.arange(rays)
        self.allreduce = comm.Iallreduce if parts > 1 else comm.Allreduce
        self.all, self.sums = (
            [np.zeros((rays, width), dtype=np.float32) for _ in range(parts)] for _ in ("partial", "whole")
        )
        self.values: list[Array] = [*self.sums]
        self.requests = [MPI.REQUEST_NULL] * parts

    def volumes(self, job: _core.Job) -> Volumes | None:
        return of_allreduce(job, sum(part.nbytes for part in self.all))

    def start_sum(self, part: int, partial: Array) -> None:
        self.all[part][self.rows] = partial
        self.requests[part] = self.allreduce(self.all[part], self.sums[part]) or MPI.REQUEST_NULL

    def finish_sum(self, part: int) -> Array:
        self.requests[part].Wait()
        return self.sums[part]

    def start_spread(self, part: int, values: Array) -> None:
        self.values[part] = values

    def finish_spread(self, part: int) -> Array:
        return self.values[part][self.rows]

    def progress(self, part: int) -> None:
        self.requests[part].Test()


class Flat:
    """MPI_Alltoallv: each rank sends what it touches to the owners, which add it up; parts by MPI_Ialltoallv."""

    replicated = False

    def __init__(self, comm: MPI.Comm, touched: Indices, bounds: Indices, width: int, parts: int) -> None:
        self.comm, self.rows = comm, touched
        first, end = bounds[comm.rank], bounds[comm.rank + 1]
        cuts = np.searchsorted(touched, bounds)
        told = comm.alltoall([touched[a:b] for a, b in pairwise(cuts)])
        arriving = np.concatenate(told) - first
        self.kept = np.arange(first, end)
        self.arriving = arriving
        ones = np.ones(len(arriving), dtype=np.float32)
        self.adding = csr_array((ones, (arriving, np.arange(len(arriving)))), shape=(end - first, len(arriving)))
        self.counts = np.diff(cuts) * width, np.array([len(some) for some in told]) * width
        self.touching, self.owning = (
            [np.empty((rows, width), dtype=np.float32) for _ in range(parts)] for rows in (len(touched), len(arriving))
        )
        self.requests = [MPI.REQUEST_NULL] * parts

    def volumes(self, job: _core.Job) -> Volumes | None:
        sizes = self.comm.gather(self.counts[0] * self.touching[0].itemsize * len(self.touching))
        return of_messages(job, np.array(sizes)) if sizes else None

    def start_sum(self, part: int, partial: Array) -> None:
        self.touching[part][:] = partial
        self._start(part, [self.touching[part], self.counts[0]], [self.owning[part], self.counts[1]])

    def finish_sum(self, part: int) -> Array:
        self.requests[part].Wait()
        return self.adding @ self.owning[part]

    def start_spread(self, part: int, values: Array) -> None:
        np.take(values, self.arriving, axis=0, out=self.owning[part])
        self._start(part, [self.owning[part], self.counts[1]], [self.touching[part], self.counts[0]])

    def finish_spread(self, part: int) -> Array:
        self.requests[part].Wait()
        return self.touching[part]

    def progress(self, part: int) -> None:
        self.requests[part].Test()

    def _start(self, part: int, out: list[Array], into: list[Array]) -> None:
        call = self.comm.Ialltoallv if len(self.requests) > 1 else self.comm.Alltoallv
        self.requests[part] = call(out, into) or MPI.REQUEST_NULL


class Sparse:
    """palmette's SparseSum: hosts, then leaves, sum what they have in common before it goes on."""

    replicated = False

    def __init__(
        self,
        comm: MPI.Comm,
        touched: Indices,
        bounds: Indices,
        width: int,
        parts: int,
        coarsen: int,
        factoring: Factoring | None,
    ) -> None:
        self.comm, self.bounds, self.factoring = comm, bounds, factoring
        owned = int(bounds[comm.rank]), int(bounds[comm.rank + 1])
        exchange = SparseSum(comm, touched=touched, owned=owned, width=width, coarsen=coarsen, factoring=factoring)
        self.rows, self.kept = exchange.order, exchange.mine
        self.partial, self.values = (
            [np.zeros((len(rows), width), dtype=np.float32) for _ in range(parts)] for rows in (self.rows, self.kept)
        )
        self.bound = [exchange.bind(partial, mine) for partial, mine in zip(self.partial, self.values, strict=True)]
        self.running: list[Run] = [bound.sum for bound in self.bound]

    def volumes(self, job: _core.Job) -> Volumes | None:
        rows = self.comm.gather(self.rows)
        row_bytes = self.partial[0].itemsize * self.partial[0].shape[1] * len(self.partial)
        return of_sparse_sum(job, rows, self.bounds, row_bytes, self.factoring) if rows else None

    def start_sum(self, part: int, partial: Array) -> None:
        self.partial[part][:] = partial
        self._start(part, self.bound[part].sum)

    def finish_sum(self, part: int) -> Array:
        self.running[part].wait()
        return self.values[part]

    def start_spread(self, part: int, values: Array) -> None:
        self.values[part][:] = values
        self._start(part, self.bound[part].spread)

    def finish_spread(self, part: int) -> Array:
        self.running[part].wait()
        return self.partial[part]

    def progress(self, part: int) -> None:
        self.running[part].test()

    def _start(self, part: int, run: Run) -> None:
        self.running[part] = run
        run.start()
