"""Arrays as buffers: NumPy's, and those of a device by `__cuda_array_interface__` or DLPack, whoever made them.

Nothing is imported for them: PyTorch, CuPy, Numba and JAX speak one of the two.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palmette.compose.errors import ComposeError

_HOST = {1: "CPU", 3: "pinned memory of CUDA", 11: "pinned memory of ROCm"}
_DEVICE = {2: "cuda", 13: "cuda", 10: "hip"}
_ELSEWHERE = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 12: "an extension's device", 14: "oneAPI", 15: "WebGPU"}
"""DLPack's devices: what it calls kDLCPU is 1, kDLCUDA 2, kDLCUDAHost 3, kDLROCM 10, kDLROCMHost 11, kDLCUDAManaged 13.
"""

LEGACY_STREAM = 1
"""CUDA's default stream, as both interfaces and the driver number it."""


@dataclass(frozen=True)
class Memory:
    """Where an array lies, and what it has."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    """Element type, such as `float32` or `bfloat16`; `void16` where only the size is known."""
    itemsize: int
    owner: object
    """What must stay alive."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize


def memory_of(argument: str, array: object) -> Memory:
    """Return where `array` lies, which must be contiguous and writeable; `argument` is its name in errors.

    Work that is queued for the array's stream is waited for, if it tells its stream. Raises ComposeError.
    """
    if isinstance(array, np.ndarray):
        return _of_numpy(argument, array)
    refused: Exception | None = None
    try:
        interface = getattr(array, "__cuda_array_interface__", None)
    except (TypeError, ValueError, RuntimeError) as error:
        # PyTorch's way to say that the interface can't express this tensor.
        interface, refused = None, error
    if interface is not None:
        return _of_interface(argument, array, interface)
    if refused is None and hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _of_dlpack(argument, array)
    if refused is not None:
        raise ComposeError(f"{argument}: {_first_line(refused)}")
    raise ComposeError(
        f"{argument}: {type(array).__name__} is no array: expected NumPy's, or one with __cuda_array_interface__ or "
        "__dlpack__"
    )


def _of_numpy(argument: str, array: np.ndarray[Any, Any]) -> Memory:
    _check(argument, array.shape, array.strides, array.itemsize, array.flags.writeable)
    return Memory(array.ctypes.data, array.shape, _name(array.dtype), array.itemsize, array)


def _of_interface(argument: str, array: object, interface: Any) -> Memory:
    """Return the memory that a CUDA array interface, version 0 to 3, describes."""
    try:
        shape = tuple(int(n) for n in interface["shape"])
        dtype = np.dtype(interface["typestr"])
        address, read_only = interface["data"]
        strides = interface.get("strides")
        strides = None if strides is None else tuple(int(n) for n in strides)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ComposeError(f"{argument}: its __cuda_array_interface__ isn't one: {_first_line(error)}") from None
    if interface.get("mask") is not None:
        raise ComposeError(f"{argument}: the array has a mask; pass its data alone")
    if not dtype.isnative:
        raise ComposeError(f"{argument}: dtype {dtype.str} isn't in this machine's byte order")
    _check(argument, shape, strides, dtype.itemsize, not read_only)
    stream = interface.get("stream")
    if stream is not None:
        if stream == 0:
            raise ComposeError(f"{argument}: stream 0 is ambiguous; 1 is the legacy default one, 2 that of the thread")
        _synchronise(argument, "cuda" if _loaded("cuda") else "hip", int(stream), int(address or 0))
    return Memory(int(address or 0), shape, _name(dtype), dtype.itemsize, array)


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _VersionedTensor(ctypes.Structure):
    """DLPack's DLManagedTensorVersioned, from 1.0 on."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_READ_ONLY, _IS_COPY = 1, 2
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_BOOL = 6


def _of_dlpack(argument: str, array: Any) -> Memory:
    kind, _ = array.__dlpack_device__()
    kind = int(kind)
    if kind not in _HOST and kind not in _DEVICE:
        raise ComposeError(f"{argument}: the array is in memory of {_ELSEWHERE.get(kind, f'device type {kind}')}, "
                           "which isn't supported")  # fmt: skip
    driver = _DEVICE.get(kind, "")
    # The producer makes this stream wait for its own work; ROCm's default stream is 0.
    stream = {"cuda": LEGACY_STREAM, "hip": 0}.get(driver)
    try:
        try:
            capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            capsule = array.__dlpack__(stream=stream)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ComposeError(f"{argument}: {_first_line(error)}") from None
    tensor, read_only = _tensor_in(argument, capsule)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    name, itemsize = _element(argument, tensor)
    if tensor.strides:
        strides = tuple(tensor.strides[i] * itemsize for i in range(tensor.ndim))
    _check(argument, shape, strides, itemsize, not read_only)
    address = (tensor.data or 0) + tensor.byte_offset
    if stream is not None:
        _synchronise(argument, driver, stream, address)
    # The capsule gives the tensor back when it is collected; it isn't renamed, as nobody else takes it over.
    return Memory(address, shape, name, itemsize, (array, capsule))


def _tensor_in(argument: str, capsule: object) -> tuple[_Tensor, bool]:
    """Return the tensor in a capsule, and whether it mustn't be written."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes, valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    if valid(capsule, b"dltensor_versioned"):
        managed = _VersionedTensor.from_address(pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise ComposeError(f"{argument}: DLPack {managed.major}.{managed.minor} is newer than 1.x")
        if managed.flags & _IS_COPY:
            raise ComposeError(f"{argument}: __dlpack__ returns a copy of the array, which results wouldn't reach")
        return managed.tensor, bool(managed.flags & _READ_ONLY)
    if valid(capsule, b"dltensor"):
        return _Tensor.from_address(pointer(capsule, b"dltensor")), False
    raise ComposeError(f"{argument}: __dlpack__ returns {type(capsule).__name__}, no tensor")


def _element(argument: str, tensor: _Tensor) -> tuple[str, int]:
    """Return name and bytes of an element."""
    if tensor.lanes == 1 and tensor.bits % 8 == 0:
        if tensor.code == _BOOL:
            return "bool", tensor.bits // 8
        if tensor.code in _KINDS:
            return f"{_KINDS[tensor.code]}{tensor.bits}", tensor.bits // 8
    raise ComposeError(
        f"{argument}: elements of type {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes aren't supported"
    )


def _check(
    argument: str, shape: Sequence[int], strides: Sequence[int] | None, itemsize: int, is_writeable: bool
) -> None:
    if strides is not None and math.prod(shape) > 0:
        expected = itemsize
        for length, stride in zip(reversed(shape), reversed(strides), strict=True):
            if length > 1 and stride != expected:
                raise ComposeError(
                    f"{argument}: the array must be contiguous, and has shape {tuple(shape)} and strides "
                    f"{tuple(strides)} in bytes; pass a copy"
                )
            expected *= length
    if not is_writeable:
        raise ComposeError(f"{argument}: the array must be writeable; pass a copy")


def _name(dtype: np.dtype[Any]) -> str:
    return f"void{8 * dtype.itemsize}" if dtype.kind == "V" and dtype.name != "bfloat16" else dtype.name


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


_LIBRARIES = {
    "cuda": ("libcuda.so.1", "libcuda.so"),
    "hip": ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"),
}


def _loaded(driver: str) -> ctypes.CDLL | None:
    """Return a driver's library, which whoever has device memory has loaded."""
    for name in _LIBRARIES[driver]:
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
    return None


def _synchronise(argument: str, driver: str, stream: int, address: int) -> None:
    """Wait for the work in a stream of the device that has the memory."""
    library = _loaded(driver)
    if library is None or address == 0:
        return

    def call(function: str, *arguments: Any) -> None:
        if result := getattr(library, function)(*arguments):
            raise ComposeError(f"{argument}: {function} for its stream returns {result}")

    handle = ctypes.c_void_p(stream)
    if driver == "hip":
        call("hipStreamSynchronize", handle)
    elif stream > LEGACY_STREAM + 1:
        call("cuStreamSynchronize", handle)
    else:
        # The default streams are those of a context, which may not be this thread's current one.
        _with_context(call, address, lambda: call("cuStreamSynchronize", handle))


def _with_context(call: Callable[..., None], address: int, what: Callable[[], None]) -> None:
    """Call `what` with the context of an address, which isn't made for it."""
    context, ordinal = ctypes.c_void_p(), ctypes.c_int(-1)
    at = ctypes.c_uint64(address)
    call("cuPointerGetAttribute", ctypes.byref(context), 1, at)
    retained = not context.value
    if retained:
        # Memory of pools belongs to a device.
        call("cuPointerGetAttribute", ctypes.byref(ordinal), 9, at)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    try:
        call("cuCtxPushCurrent_v2", context)
        try:
            what()
        finally:
            call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    finally:
        if retained:
            call("cuDevicePrimaryCtxRelease_v2", ordinal)
