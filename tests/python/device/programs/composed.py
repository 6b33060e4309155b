"""An MPI program: compositions on arrays of devices and of the host, mixed across ranks, against NumPy.

    composed.py KINDS FACTORING... [--half] [--errors] [--failing]

KINDS has a letter for each rank, in turn: d for device memory, h for the host's, x for both in one run, m for managed,
p for arrays that speak DLPack. Rank 0 prints `right`.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import fake

from palmette.compose import ComposeError, Composition, named
from palmette.compose.factoring import Factoring
from palmette.compose.running import RunningPlan
from palmette.compose.sparse import SparseSum

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
options = {word for word in sys.argv[1:] if word.startswith("--")}
kinds, *factorings = [word for word in sys.argv[1:] if word not in options]
kind = kinds[rank % len(kinds)]
cuda: Any = None if kind == "h" else fake.Cuda(device=rank % 2)


class DlpackArray:
    """A device array that speaks DLPack alone."""

    def __init__(self, array: fake.DeviceArray, *, strides: tuple[int, ...] | None = None) -> None:
        self.array = array
        self.asked: list[object] = []
        shape = tuple(array.shape)
        self.shape_, self.strides_ = (ctypes.c_int64 * len(shape))(*shape), None
        if strides is not None:
            self.strides_ = (ctypes.c_int64 * len(shape))(*strides)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: int | None = None) -> object:
        self.asked.append(stream)
        code = {"i": 0, "u": 1, "f": 2}[self.array.dtype.kind]
        self.tensor = fake_tensor(
            self.array.address, len(self.shape_), code, 8 * self.array.dtype.itemsize, self.shape_, self.strides_
        )
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def fake_tensor(address: int, ndim: int, code: int, bits: int, shape: Any, strides: Any) -> ctypes.Structure:
    """Return a DLManagedTensor as its specification has it."""

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("manager", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p),
        )  # fmt: skip

    return Tensor(
        data=address - 64, device=(2, 0), ndim=ndim, code=code, bits=bits, lanes=1, shape=ctypes.addressof(shape),
        strides=ctypes.addressof(strides) if strides else None, offset=64,
    )  # fmt: skip


class RankArray:
    """An array of this rank's kind: `given` is bound, `set` and `get` are NumPy's."""

    def __init__(self, values: np.ndarray[Any, Any], other: bool = False) -> None:
        self.on_device = kind in "dmp" or (kind == "x" and other)
        if not self.on_device:
            self.given: Any = np.ascontiguousarray(values)
            return
        self.array = fake.DeviceArray(cuda, values, managed=kind == "m", stream=[None, 1, 2][rank % 3])
        self.given = DlpackArray(self.array) if kind == "p" else self.array

    def set(self, values: np.ndarray[Any, Any]) -> None:
        if self.on_device:
            self.array.set(values)
        else:
            self.given[...] = values

    def get(self) -> np.ndarray[Any, Any]:
        return self.array.numpy() if self.on_device else self.given.copy()

    def free(self) -> None:
        if self.on_device:
            self.array.free()


def check(name: str, count: int, factoring: Factoring, dtype: str, datatype: Any, seed: int) -> None:
    """Run one of MPI's collectives some times, and compare with what NumPy makes of all ranks' input."""
    width = np.dtype(dtype).itemsize
    composition = named(name, size, width * count, root=seed % size, element_bytes=width)
    everything = np.random.default_rng(seed).integers(-20, 20, (3, size, size * count)).astype(dtype)
    with RunningPlan(composition, comm, factoring, datatype=datatype, operations={"sum": MPI.SUM}) as plan:
        held = {
            buffer: RankArray(np.zeros(plan.bytes_of(buffer) // width, dtype), other=index % 2 == 1)
            for index, buffer in enumerate(plan.buffers)
        }
        with plan.bind(**{buffer: one.given for buffer, one in held.items()}) as run:
            for values in everything:
                first = held[plan.buffers[0]]
                elements = plan.bytes_of(plan.buffers[0]) // width
                first.set(values[rank][:elements])
                for buffer in plan.buffers[1:]:
                    held[buffer].set(np.full(plan.bytes_of(buffer) // width, 7, dtype))
                run.start()
                while seed % 2 and not run.test():
                    pass
                run.wait()
                last = held[plan.buffers[1 if len(plan.buffers) > 1 else 0]].get()
                np.testing.assert_array_equal(last, expected(name, values, count, seed % size)[: last.size], name)
        for one in held.values():
            one.free()


def expected(name: str, values: np.ndarray[Any, Any], count: int, root: int) -> np.ndarray[Any, Any]:
    """Return what this rank's result is."""
    if name == "broadcast":
        return values[root][:count]
    if name == "allgather":
        return values[:, :count].ravel()
    if name == "alltoall":
        return values.reshape(size, size, count)[:, rank].ravel()
    if name == "reduce_scatter":
        return values.sum(axis=0).reshape(size, count)[rank]
    return values[:, :count].sum(axis=0)


def refused(text: str, what: Any) -> None:
    """Fail unless `what()` raises a ComposeError with that text, in one line."""
    try:
        what()
    except ComposeError as error:
        assert text in str(error), error
        assert "\n" not in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


def check_errors() -> None:
    """What can't be bound is refused in one line, on this rank alone."""
    composition = Composition(size, bytes=48)
    x = composition.buffer("x")
    composition.multicast(0, "all", x[0], x)
    with RunningPlan(composition, comm) as plan:
        array = fake.DeviceArray(cuda, np.zeros((2, 3)))
        interface = array.__cuda_array_interface__

        class ChangedArray:
            def __init__(self, **changes: object) -> None:
                self.__cuda_array_interface__ = {**interface, **changes}

        refused("buffer 'x': the array must be contiguous, and has shape (2, 3) and strides (8, 16) in bytes",
                lambda: plan.bind(x=ChangedArray(strides=(8, 16))))  # fmt: skip
        refused("must be contiguous, and has shape (2, 3) and strides (8, 16) in bytes",
                lambda: plan.bind(x=DlpackArray(array, strides=(1, 2))))  # fmt: skip
        refused("must be contiguous, and has shape (3, 2) and strides (8, 24)",
                lambda: plan.bind(x=np.zeros((2, 3)).T))  # fmt: skip
        refused("must be writeable", lambda: plan.bind(x=ChangedArray(data=(array.address, True))))
        refused("has a mask", lambda: plan.bind(x=ChangedArray(mask=array)))
        refused("stream 0 is ambiguous", lambda: plan.bind(x=ChangedArray(stream=0)))
        refused("the array has 96 bytes where 48 are needed", lambda: plan.bind(x=ChangedArray(shape=(4, 3))))
        refused("list is no array", lambda: plan.bind(x=[0.0] * 6))
        plan.bind(x=ChangedArray(strides=(24, 8), stream=2)).free()
        shared = DlpackArray(array, strides=(3, 1))
        plan.bind(x=shared).free()
        assert shared.asked == [1], "the producer is told the legacy default stream, which is waited for"
        array.free()


def check_sparse(dtype: Any) -> None:
    """Sum footprints that overlap, and spread the sums."""
    width, indices = 4, 300
    numpy = np.dtype("u2") if dtype == "bfloat16" else np.dtype(dtype)
    touched = np.arange(rank * 40, min(indices, rank * 40 + 120))
    owned = (rank * indices // size, (rank + 1) * indices // size)
    with SparseSum(comm, touched=touched, owned=owned, width=width, dtype=dtype) as exchange:
        shape, rows = (len(exchange.order), width), (len(exchange.mine), width)
        # 1 in these floats.
        ones = {"bfloat16": 0x3F80}.get(str(dtype), 1)
        partial, mine = RankArray(np.full(shape, ones, numpy)), RankArray(np.zeros(rows, numpy), other=True)
        if dtype == "bfloat16":
            for one in (partial, mine):
                if one.on_device:
                    one.array.dtype = np.dtype("V2")
        if dtype == "bfloat16" and not (partial.on_device and mine.on_device):
            return
        with exchange.bind(partial.given, mine.given) as bound:
            bound.sum.start()
            bound.sum.wait()
            many = sum((exchange.mine >= r * 40) & (exchange.mine < r * 40 + 120) for r in range(size))
            got = mine.get()
            if dtype == "bfloat16":
                got = (got.view("u2").astype(np.uint32) << 16).view(np.float32)
            np.testing.assert_array_equal(got, np.repeat(np.asarray(many)[:, None], width, axis=1))
            bound.spread.start()
            bound.spread.wait()
        partial.free()
        mine.free()


def check_failing() -> None:
    """A device whose copies fail: an error on its rank, and an end on all."""
    composition = named("allreduce", size, 8 * 4096, element_bytes=8)
    with RunningPlan(composition, comm, datatype=MPI.DOUBLE, operations={"sum": MPI.SUM}) as plan:
        held = RankArray(np.ones(4096)), RankArray(np.zeros(4096), other=True)
        run = plan.bind(send=held[0].given, recv=held[1].given)
        try:
            run.start()
            run.wait()
        except ComposeError as error:
            assert "a command of a device fails (CUDA_ERROR_UNKNOWN)" in str(error), error
            failed = True
        else:
            failed = False
        assert comm.allreduce(failed, MPI.LOR) and (kind != "h" or not failed)
        run.free()
        for one in held:
            one.free()


if "--failing" in options:
    check_failing()
elif "--errors" in options:
    check_errors()
elif "--half" in options:
    check_sparse("float16")
    check_sparse("bfloat16")
else:
    seed = 0
    for text in factorings:
        for name in ("broadcast", "allreduce", "alltoall", "allgather", "reduce_scatter"):
            for count, dtype, datatype in ((1, "i4", MPI.INT32_T), (5000, "f8", MPI.DOUBLE)):
                seed += 1
                check(name, count, Factoring.parse(text), dtype, datatype, seed)
    check_sparse("f4")
comm.Barrier()
if rank == 0:
    print("right")
