"""Sums of overlapping, irregular footprints to their owners, and the way back, hierarchical by level."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from palmette.compose.arrays import memory_of
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.library import call, half_handle, handle_of, library, mpi
from palmette.compose.running import Run, RunningPlan

Array = NDArray[Any]
Indices = NDArray[np.int64]


class SparseSum:
    """Sums to owners and back on a communicator: planned once, bound to arrays, run any number of times.

    Collective. Each rank contributes to the indices `touched`, in any order, and owns the range `owned` = (first, end);
    all ranges together are 0 to the number of indices, in order of ranks. An index has `width` elements of `dtype`,
    such as the slices of a volume. With `coarsen` contributors are told apart for that many consecutive indices at a
    time: fewer, longer blocks, where zeros travel for indices that a rank doesn't touch; "model": the power of two that
    is fastest by the model of the job's machine. With the default `order` has touched indices only. Raises ComposeError
    on all ranks where it fails on any.

    Each rank plans from what it touches, owns or relays, and some 100 bytes for each other rank. The default factoring
    sums in hosts, then in leaves.
    """

    def __init__(
        self,
        comm: Any,
        *,
        touched: Array,
        owned: tuple[int, int],
        width: int = 1,
        dtype: DTypeLike | Literal["bfloat16"] = "f4",
        coarsen: int | Literal["model"] = 1,
        factoring: Factoring | None = None,
    ) -> None:
        self._sparse = ctypes.c_void_p()
        wrong = ""
        indices, first, end, text = np.empty(0, dtype=np.int64), 0, 0, b""
        datatype = handle_of(mpi().BYTE)
        try:
            indices, first, end = _indices(touched), *_range(owned)
            self.width, self.dtype = _width(width), _element(dtype)
            datatype = datatype_of(self.dtype)
            text = (factoring or Factoring()).runtime_text().encode()
        except (ComposeError, TypeError, ValueError) as error:
            wrong = str(error)
        # All ranks must come here: -1 makes it an error on all of them.
        try:
            call("sparse_make", _pointer(indices), -1 if wrong else indices.size, first, end,
                 1 if wrong else self.width, datatype, handle_of(mpi().SUM), _number(coarsen),
                 handle_of(comm), text, ctypes.byref(self._sparse))  # fmt: skip
        except ComposeError:
            if wrong:
                raise ComposeError(wrong) from None
            raise
        sizes = partial, mine, blocks, known, chosen = [ctypes.c_int64() for _ in range(5)]
        call("sparse_size", self._sparse, *(ctypes.byref(number) for number in sizes))
        self.order: Indices = np.empty(partial.value, dtype=np.int64)
        """Index of each row of `partial`: those touched, and those that `coarsen` adds, whose rows must be zero."""
        self.mine: Indices = np.empty(mine.value, dtype=np.int64)
        """Index of each row of `mine`: those owned that some rank touches."""
        call("sparse_rows", self._sparse, _pointer(self.order), _pointer(self.mine))
        self.coarsen = chosen.value
        """Consecutive indices whose contributors aren't told apart, as given or chosen."""
        self.blocks = blocks.value
        """Number of blocks of all ranks."""
        self.known_blocks = known.value
        """Number of blocks that this rank contributes to, owns or relays."""
        self.forth, self.back = self._plan(0), self._plan(1)

    def _plan(self, back: int) -> RunningPlan:
        handle = ctypes.c_void_p()
        call("sparse_plan", self._sparse, back, ctypes.byref(handle))
        return RunningPlan.of_handle(handle, ["partial", "mine"])

    def bind(self, partial: Any, mine: Any) -> BoundSum:
        """Return the sum from `partial` to `mine` and the way back, on arrays of (rows, width) elements.

        Each may be NumPy's or a device's, as `RunningPlan.bind` takes them. Rows are in the order of `order` and
        `mine`. Any number may be bound, in the same order on all ranks, and run at the same time: the parts of a longer
        computation. Raises ComposeError.
        """
        for name, array, rows in (("partial", partial, len(self.order)), ("mine", mine, len(self.mine))):
            memory = memory_of(name, array)
            wanted = str(self.dtype)
            # Some interfaces have no name for these floats, only for their size.
            is_alike = memory.dtype == wanted or (memory.dtype == "void16" and wanted == "bfloat16")
            if not is_alike or memory.size != rows * self.width:
                raise ComposeError(
                    f"{name} has {memory.size} elements of {memory.dtype}; {rows} rows of {self.width} {wanted} "
                    "are needed"
                )
        forth = self.forth.bind(partial=partial, mine=mine)
        try:
            return BoundSum(forth, self.back.bind(partial=partial, mine=mine))
        except ComposeError:
            forth.free()
            raise

    def free(self) -> None:
        """Release the plans; what is bound remains valid."""
        self.forth.free()
        self.back.free()
        if self._sparse:
            library().palmette_sparse_free(self._sparse)
            self._sparse = ctypes.c_void_p()

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


def positions(comm: Any) -> list[int]:
    """Return each rank's position in topology order: ranks with near positions are near. Collective.

    Parts of a problem that are near each other belong on ranks with near positions. Raises ComposeError.
    """
    out = np.empty(comm.size, dtype=np.intc)
    call("positions", handle_of(comm), out.ctypes.data_as(ctypes.POINTER(ctypes.c_int)))
    return [int(position) for position in out]


def _indices(touched: Array) -> Indices:
    given = np.asarray(touched)
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ComposeError(f"touched has elements of {given.dtype}; indices are integers (np.flatnonzero of a mask)")
    return np.ascontiguousarray(given, dtype=np.int64).ravel()


def _range(owned: tuple[int, int]) -> tuple[int, int]:
    if len(owned) != 2 or not all(isinstance(one, (int, np.integer)) for one in owned):
        raise ComposeError(f"owned is {owned!r}; it must be two integers, the first index and the end")
    return int(owned[0]), int(owned[1])


def _width(width: int) -> int:
    if not isinstance(width, (int, np.integer)) or not 1 <= width < 2**31:
        raise ComposeError(f"width is {width!r}; it must be an integer from 1 to 2^31 - 1")
    return int(width)


def _element(dtype: DTypeLike | Literal["bfloat16"]) -> np.dtype[Any] | str:
    """NumPy has bfloat16 only where another package adds it."""
    if str(dtype).removeprefix("torch.") == "bfloat16":
        return "bfloat16"
    return np.dtype(dtype)


def datatype_of(dtype: np.dtype[Any] | str) -> int:
    """Return the handle of MPI's type. Raises ComposeError where there is none."""
    if str(dtype) in {"float16", "bfloat16"}:
        return half_handle(str(dtype))
    assert not isinstance(dtype, str)
    if not dtype.isnative:
        raise ComposeError(f"dtype {dtype.str} isn't in this machine's byte order")
    try:
        return handle_of(mpi().Datatype.fromcode(dtype.char))
    except ValueError:
        raise ComposeError(f"dtype {dtype}: MPI has no such type") from None


def _number(coarsen: object) -> int:
    if isinstance(coarsen, str):
        return 0 if coarsen == "model" else -1
    return int(coarsen) if isinstance(coarsen, (int, np.integer)) and coarsen >= 1 else -1


def _pointer(array: Indices) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
