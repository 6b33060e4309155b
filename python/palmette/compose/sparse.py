"""Sums of overlapping, irregular footprints to their owners, and the way back, hierarchical by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from palmette.compose.composition import Composition
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.library import mpi
from palmette.compose.running import Array, Run, RunningPlan

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Signature:
    """The indices of one owner that have the same contributors: a block of the composition."""

    contributors: tuple[int, ...]
    """Ascending."""
    indices: Indices
    """Ascending."""


def signatures(touched: Sequence[Indices], owned: tuple[int, int], coarsen: int = 1) -> list[Signature]:
    """Return the signatures of an owner's range, in order of their first index.

    `touched`: for each rank the indices in the range that it contributes to. Sets are made for `coarsen` consecutive
    indices at a time, from multiples of it on. Time: n log n in the number of (rank, index) pairs.
    """
    first, end = owned
    unit = np.concatenate([np.unique(some // coarsen) for some in touched])
    rank = np.repeat(np.arange(len(touched)), [len(np.unique(some // coarsen)) for some in touched])
    order = np.lexsort((rank, unit))
    unit, rank = unit[order], rank[order]
    if not unit.size:
        return []
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    members: dict[tuple[int, ...], list[Indices]] = {}
    for begin, until in zip(starts, np.append(starts[1:], len(unit)), strict=True):
        number = int(unit[begin])
        here = np.arange(max(first, number * coarsen), min(end, (number + 1) * coarsen), dtype=np.int64)
        members.setdefault(tuple(rank[begin:until].tolist()), []).append(here)
    return [Signature(contributors, np.concatenate(lists)) for contributors, lists in members.items()]


def compositions(blocks: Sequence[Sequence[tuple[tuple[int, ...], int]]], index_bytes: int, element_bytes: int
                 ) -> tuple[Composition, Composition]:  # fmt: skip
    """Return the sum and its adjoint, over buffers `partial` and `mine`.

    `blocks`: for each owner the contributors and the number of indices of each of its signatures. An index has
    `index_bytes` bytes.
    """
    lengths = [count * index_bytes for own in blocks for _, count in own]
    forth, back = (Composition(len(blocks), bytes=lengths or 0, element_bytes=element_bytes) for _ in range(2))
    number = 0
    for made in (forth, back):
        partial, mine = made.buffer("partial"), made.buffer("mine")
        number = 0
        for owner, own in enumerate(blocks):
            for contributors, _ in own:
                if made is forth:
                    made.reduce(contributors, owner, partial[number], mine)
                else:
                    made.multicast(owner, contributors, mine[number], partial)
                number += 1
    return forth, back


class SparseSum:
    """Sums to owners and back on a communicator: planned once, bound to arrays, run any number of times.

    Collective. Each rank contributes to the indices `touched`, in any order, and owns the range `owned` = (first, end);
    all ranges together are 0 to the number of indices, in order of ranks. An index has `width` elements of `dtype`,
    such as the slices of a volume. With `coarsen` contributors are told apart for that many consecutive indices at a
    time: fewer, longer blocks, where zeros travel for indices that a rank doesn't touch. Raises ComposeError on all
    ranks where it fails on any.

    Bytes on the wire and their routes are those of the factoring; the default sums in hosts, then in leaves.
    """

    def __init__(
        self,
        comm: Any,
        *,
        touched: Array,
        owned: tuple[int, int],
        width: int = 1,
        dtype: DTypeLike = "f4",
        coarsen: int = 1,
        factoring: Factoring | None = None,
    ) -> None:
        rank, size = comm.rank, comm.size
        own_indices, complaint = _checked(touched, owned, width, coarsen)
        told = comm.allgather((complaint, owned, width, np.dtype(dtype).str, coarsen))
        _agreed(told, rank)
        bounds = np.array([0, *(each[1][1] for each in told)], dtype=np.int64)
        if own_indices.size and not 0 <= own_indices[0] <= own_indices[-1] < bounds[-1]:
            complaint = f"rank {rank} touches indices outside of 0 to {bounds[-1] - 1}"
        refusals = [text for text in comm.allgather(complaint) if text]
        if refusals:
            raise ComposeError(refusals[0])
        cuts = np.searchsorted(own_indices, bounds)
        parts = comm.alltoall([own_indices[cuts[r] : cuts[r + 1]] for r in range(size)])
        made = signatures(parts, owned, coarsen)
        lists = comm.alltoall(
            [[(n, one.indices) for n, one in enumerate(made) if r in one.contributors] for r in range(size)]
        )
        blocks = comm.allgather([(one.contributors, len(one.indices)) for one in made])
        self.width = width
        self.dtype = np.dtype(dtype)
        self.order: Indices = _joined([indices for owner in lists for _, indices in owner])
        """Index of each row of `partial`: those touched, and those that `coarsen` adds, whose rows are zero."""
        self.mine: Indices = _joined([one.indices for one in made])
        """Index of each row of `mine`: those owned that some rank touches."""
        self.blocks = sum(map(len, blocks))
        """Number of blocks of all ranks."""
        forth, back = compositions(blocks, width * self.dtype.itemsize, self.dtype.itemsize)
        arguments = {"datatype": mpi().Datatype.fromcode(self.dtype.char), "operations": {"sum": mpi().SUM}}
        self.forth = RunningPlan(forth, comm, factoring, **arguments)
        self.back = RunningPlan(back, comm, factoring, **arguments)

    def bind(self, partial: Array, mine: Array) -> BoundSum:
        """Return the sum from `partial` to `mine` and the way back, on arrays of (rows, width) elements.

        Rows are in the order of `order` and `mine`. Any number may be bound, in the same order on all ranks, and run at
        the same time: the parts of a longer computation. Raises ComposeError.
        """
        for name, array, rows in (("partial", partial, len(self.order)), ("mine", mine, len(self.mine))):
            if array.dtype != self.dtype or array.size != rows * self.width:
                raise ComposeError(
                    f"{name} has {array.size} elements of {array.dtype}; {rows} rows of {self.width} {self.dtype} "
                    "are needed"
                )
        return BoundSum(self.forth.bind(partial=partial, mine=mine), self.back.bind(partial=partial, mine=mine))

    def free(self) -> None:
        """Release the plans; what is bound remains valid."""
        self.forth.free()
        self.back.free()

    def __enter__(self) -> SparseSum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


@dataclass(frozen=True)
class BoundSum:
    """Both directions on the same two arrays; start one of them at a time."""

    sum: Run
    """Adds up the rows of `partial` of all ranks in `mine` of their owners."""
    spread: Run
    """Copies the rows of `mine` to all ranks that touch them: the adjoint."""

    def free(self) -> None:
        """Wait for completion and release both. In the same order on all ranks."""
        self.sum.free()
        self.spread.free()

    def __enter__(self) -> BoundSum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


def _checked(touched: Array, owned: tuple[int, int], width: int, coarsen: int) -> tuple[Indices, str]:
    """Return the touched indices, ascending, each once, and what is wrong with the arguments."""
    array = np.asarray(touched)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        return np.empty(0, dtype=np.int64), f"touched: integers are expected, not {array.dtype}"
    if width < 1 or coarsen < 1:
        return np.empty(0, dtype=np.int64), f"width={width}, coarsen={coarsen}: expected 1 or more"
    if owned[0] > owned[1]:
        return np.empty(0, dtype=np.int64), f"owned={owned}: expected (first, end)"
    return np.unique(array.astype(np.int64)), ""


def _agreed(told: Sequence[tuple[str, tuple[int, int], int, str, int]], rank: int) -> None:
    for text, *_ in told:
        if text:
            raise ComposeError(text)
    if len({each[2:] for each in told}) > 1:
        raise ComposeError("width, dtype or coarsen differs between ranks; give all the same")
    end = 0
    for number, (_, owned, *_) in enumerate(told):
        if owned[0] != end:
            raise ComposeError(
                f"rank {number} owns indices from {owned[0]} on; {end} is the first behind its predecessor's"
            )
        end = owned[1]


def _joined(lists: Sequence[Indices]) -> Indices:
    return np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
