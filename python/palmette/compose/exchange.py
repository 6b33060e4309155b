"""Messages to ranks that don't know who sends to them: sparse dynamic data exchange."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from palmette.compose.errors import ComposeError
from palmette.compose.library import call, handle_of, library, mpi
from palmette.compose.sparse import datatype_of

Array = NDArray[Any]


def exchange(comm: Any, messages: Mapping[int, ArrayLike], dtype: DTypeLike = "f8") -> dict[int, Array]:
    """Send `messages[rank]` to each rank that it names, and return what came, by sender in ascending order.

    Collective: each rank calls it, with an empty mapping where it has nothing to send, and need not know who sends to
    it. Messages are one-dimensional arrays of `dtype`, the same on all ranks, in host memory; what comes are new ones.
    An empty message arrives, too. Takes the time of the messages and of a reduce_scatter (up to 1,024 ranks) or of a
    barrier (Hoefler, Siebert, Lumsdaine, PPoPP 2010). Raises ComposeError on all ranks where it fails on any.
    """
    element = np.dtype(dtype)
    wrong = ""
    to, parts = np.empty(0, dtype=np.intc), [np.empty(0, dtype=element)]
    datatype = handle_of(mpi().BYTE)
    try:
        datatype = datatype_of(element)
        to = np.array([_rank(rank, comm.size) for rank in messages], dtype=np.intc)
        parts = [_message(rank, array, element) for rank, array in messages.items()]
    except (ComposeError, TypeError, ValueError) as error:
        wrong = str(error)
    counts = np.array([part.size for part in parts][: to.size], dtype=np.int64)
    data = np.concatenate(parts) if parts and not wrong else np.empty(0, dtype=element)
    arrivals = ctypes.c_void_p()
    # All ranks must come here: -1 makes it an error on all of them.
    try:
        call("exchange", _numbers(to), _longs(counts), -1 if wrong else to.size, data.ctypes.data, datatype,
             handle_of(comm), ctypes.byref(arrivals))  # fmt: skip
    except ComposeError:
        if wrong:
            raise ComposeError(wrong) from None
        raise
    try:
        senders, elements = ctypes.c_int(), ctypes.c_int64()
        call("arrivals_size", arrivals, ctypes.byref(senders), ctypes.byref(elements))
        sources = np.empty(senders.value, dtype=np.intc)
        lengths = np.empty(senders.value, dtype=np.int64)
        came = np.empty(elements.value, dtype=element)
        call("arrivals_take", arrivals, _numbers(sources), _longs(lengths), came.ctypes.data)
    finally:
        library().palmette_arrivals_free(arrivals)
    return dict(zip(map(int, sources), np.split(came, np.cumsum(lengths)[:-1]), strict=True)) if senders.value else {}


def _rank(rank: object, ranks: int) -> int:
    if not isinstance(rank, (int, np.integer)) or not 0 <= rank < ranks:
        raise ComposeError(f"messages names rank {rank!r}; the communicator has {ranks} ranks")
    return int(rank)


def _message(rank: int, array: ArrayLike, element: np.dtype[Any]) -> Array:
    given = np.asarray(array)
    if given.ndim != 1 or (given.size and not np.can_cast(given.dtype, element, "same_kind")):
        raise ComposeError(
            f"the message to rank {rank} has {given.ndim} dimensions of {given.dtype}; one of {element} is needed"
        )
    return np.ascontiguousarray(given, dtype=element)


def _numbers(array: NDArray[np.intc]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_int))


def _longs(array: NDArray[np.int64]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
