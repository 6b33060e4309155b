"""Running composed plans on mpi4py communicators, and arrays of the host or of a device."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from palmette import _core
from palmette.compose.arrays import memory_of
from palmette.compose.composition import Composition
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.library import call, handle_of, library, mpi


class RunningPlan:
    """A plan on a communicator; `bind` gives it buffers.

    Collective: all ranks pass the same composition and factoring. `datatype` is a predefined mpi4py datatype, such as
    `MPI.DOUBLE`, whose extent is the composition's `element_bytes`; `operations` maps each name to an MPI operation.
    With `@nccl` the calling thread's current CUDA context is that of the arrays to come.
    Raises ComposeError on all ranks where it fails on any.
    """

    def __init__(
        self,
        composition: Composition,
        comm: Any,
        factoring: Factoring | None = None,
        *,
        datatype: Any = None,
        operations: Mapping[str, Any] | None = None,
    ) -> None:
        self._plan = ctypes.c_void_p()
        self.buffers: list[str] = list(composition.core.buffers)
        made = _compose(composition, datatype if datatype is not None else mpi().BYTE, operations or {})
        try:
            text = (factoring or Factoring()).runtime_text().encode()
            call("plan_make", made, handle_of(comm), text, ctypes.byref(self._plan))
        finally:
            library().palmette_composition_free(made)

    @classmethod
    def of_handle(cls, plan: ctypes.c_void_p, buffers: list[str]) -> RunningPlan:
        """Wrap a plan that the library made."""
        made = cls.__new__(cls)
        made._plan, made.buffers = plan, buffers
        return made

    def bytes_of(self, buffer: str) -> int:
        """Return the size of this rank's buffer."""
        size = ctypes.c_int64()
        call("plan_buffer_bytes", self._plan, self.buffers.index(buffer), ctypes.byref(size))
        return size.value

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch of this rank per bound run."""
        size = ctypes.c_int64()
        call("plan_scratch_bytes", self._plan, ctypes.byref(size))
        return size.value

    @property
    def single_copies(self) -> int:
        """Number of this rank's messages that are read directly from the sender's memory (single copy)."""
        count = ctypes.c_int64()
        call("plan_single_copies", self._plan, ctypes.byref(count))
        return count.value

    @property
    def device_messages(self) -> int:
        """Number of this rank's messages from device to device: by `@ipc`, where both ends are there, and by NCCL."""
        count = ctypes.c_int64()
        call("plan_device_messages", self._plan, ctypes.byref(count))
        return count.value

    def bind(self, **arrays: Any) -> Run:
        """Return a run on these arrays, which must be contiguous and must not be moved during its lifetime.

        They are NumPy's, or a device's with `__cuda_array_interface__` or DLPack, whatever the other ranks have; the
        streams that they name are synchronised here. MPI orders nothing with streams: before each later start the
        program waits for its own work on the arrays.

        Local, but in the same order on all ranks. A buffer that is empty on this rank may be left out. Raises
        ComposeError.
        """
        return Run(self, arrays)

    def free(self) -> None:
        """Release the plan; its runs remain valid."""
        if self._plan:
            library().palmette_plan_free(self._plan)
            self._plan = ctypes.c_void_p()

    def __enter__(self) -> RunningPlan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


class Run:
    """A plan bound to its buffers. Any number of runs may be in flight."""

    def __init__(self, plan: RunningPlan, arrays: Mapping[str, Any]) -> None:
        unknown = sorted(set(arrays) - set(plan.buffers))
        if unknown:
            raise ComposeError(f"buffer '{unknown[0]}' is unknown; there are {', '.join(plan.buffers)}")
        addresses = (ctypes.c_void_p * len(plan.buffers))()
        self._owners: list[object] = []
        for index, name in enumerate(plan.buffers):
            wanted = plan.bytes_of(name)
            array = arrays.get(name)
            if array is None:
                if wanted:
                    raise ComposeError(f"buffer '{name}' needs an array of {wanted} bytes on this rank")
                continue
            memory = memory_of(f"buffer '{name}'", array)
            if memory.nbytes != wanted:
                raise ComposeError(f"buffer '{name}': the array has {memory.nbytes} bytes where {wanted} are needed")
            addresses[index] = memory.address
            self._owners.append(memory.owner)
        self._run = ctypes.c_void_p()
        call("bind", plan._plan, addresses, len(plan.buffers), ctypes.byref(self._run))

    def start(self) -> None:
        """Start the run; with `@nccl` in the same order on all ranks. Raises ComposeError where it is in flight."""
        call("start", self._run)

    def test(self) -> bool:
        """Progress all runs, and return whether this one has completed. Raises ComposeError on an MPI error."""
        done = ctypes.c_int()
        call("test", self._run, ctypes.byref(done))
        return done.value != 0

    def wait(self) -> None:
        """Wait for completion. Raises ComposeError on an MPI error."""
        call("wait", self._run)

    def free(self) -> None:
        """Wait for completion and release the run. In the same order on all ranks."""
        if self._run:
            library().palmette_run_free(self._run)
            self._run = ctypes.c_void_p()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


def _compose(composition: Composition, datatype: Any, operations: Mapping[str, Any]) -> ctypes.c_void_p:
    """Rebuild the composition through the C API. The caller frees it."""
    core = composition.core
    lower, extent = datatype.Get_extent()
    if (lower, extent) != (0, core.element_bytes):
        raise ComposeError(
            f"the datatype has {extent} bytes where elements of the composition have {core.element_bytes}"
        )
    counts = np.array([core.bytes_of(block) // extent for block in range(core.blocks)], dtype=np.int64)
    made = ctypes.c_void_p()
    pointer = counts.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    call("composition_create", core.ranks, core.blocks, pointer, len(counts), handle_of(datatype), ctypes.byref(made))
    try:
        _fill(made, core, operations)
    except BaseException:
        library().palmette_composition_free(made)
        raise
    return made


def _fill(made: ctypes.c_void_p, core: _core.Composition, operations: Mapping[str, Any]) -> None:
    numbers: dict[str, int] = {}
    for name in core.buffers:
        number = ctypes.c_int()
        call("composition_buffer", made, name.encode(), ctypes.byref(number))
        numbers[name] = number.value
    for rank, name, first, count in core.holds:
        call("composition_hold", made, rank, numbers[name], first, count)
    now = 0
    for phase, kind, root, others, source, (first, count), target, operation in core.primitives():
        while now < phase:
            call("composition_fence", made)
            now += 1
        ranks = (ctypes.c_int * len(others))(*others)
        places = (numbers[source], first, count, numbers[target])
        if kind == "multicast":
            call("composition_multicast", made, root, ranks, len(others), *places)
            continue
        op = operations.get(operation)
        if op is None and len(others) > 1:
            raise ComposeError(f"operation '{operation}' is not given; add operations={{'{operation}': MPI.SUM}}")
        # Nothing is combined where there is one source.
        handle = handle_of(op if op is not None else mpi().SUM)
        call("composition_reduce", made, ranks, len(others), root, *places, handle)
