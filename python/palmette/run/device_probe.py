"""Asks drivers of GPUs, NCCL and an MPI what is there. A program of its own, that needs nothing but Python: drivers may
hang or crash. It prints one JSON object. `device_probe.py` asks the drivers, `device_probe.py mpi LIBRARY` an MPI's
library, `device_probe.py ipc` whether a process can open another one's device memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_NAME_BYTES = 128
_HIP = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")
_PATTERN = b"palmette" * 512
_KERNEL_DRIVER = Path("/sys/module/nvidia/version")
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76


class _DriverError(Exception):
    """A call of a driver failed."""


def _library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _check(library: ctypes.CDLL, what: str, *arguments: object) -> None:
    try:
        result = int(getattr(library, what)(*arguments))
    except AttributeError:
        raise _DriverError(f"no function {what}: the driver is too old") from None
    if result == 0:
        return
    name = ctypes.c_char_p()
    with contextlib.suppress(AttributeError):
        library.cuGetErrorName(result, ctypes.byref(name))
    raise _DriverError(f"{what} says {name.value.decode() if name.value else result}")


def _number(library: ctypes.CDLL, what: str, *more: object) -> int:
    number = ctypes.c_int()
    _check(library, what, ctypes.byref(number), *more)
    return number.value


def _text(library: ctypes.CDLL, what: str, device: int) -> str:
    text = ctypes.create_string_buffer(_NAME_BYTES)
    _check(library, what, text, _NAME_BYTES, device)
    return text.value.decode(errors="replace")


def _cuda() -> dict[str, Any] | None:
    library = _library("libcuda.so.1")
    if library is None:
        return None
    found: dict[str, Any] = {"version": 0, "kernel_driver": _kernel_driver(), "devices": []}
    try:
        found["version"] = _number(library, "cuDriverGetVersion")
        _check(library, "cuInit", 0)
        for device in range(_number(library, "cuDeviceGetCount")):
            memory = ctypes.c_size_t()
            _check(library, "cuDeviceTotalMem_v2", ctypes.byref(memory), device)
            major = _number(library, "cuDeviceGetAttribute", _CAPABILITY_MAJOR, device)
            minor = _number(library, "cuDeviceGetAttribute", _CAPABILITY_MINOR, device)
            found["devices"].append(
                {
                    "name": _text(library, "cuDeviceGetName", device),
                    "bus_id": _text(library, "cuDeviceGetPCIBusId", device),
                    "memory_bytes": memory.value,
                    "capability": f"{major}.{minor}",
                }
            )
    except _DriverError as error:
        found["problem"] = str(error)
    return found


def _hip() -> dict[str, Any] | None:
    library = _library(*_HIP)
    if library is None:
        return None
    found: dict[str, Any] = {"version": 0, "devices": []}
    try:
        found["version"] = _number(library, "hipDriverGetVersion")
        for device in range(_number(library, "hipGetDeviceCount")):
            text = ctypes.create_string_buffer(_NAME_BYTES)
            _check(library, "hipDeviceGetPCIBusId", text, _NAME_BYTES, device)
            found["devices"].append(
                {"name": _text(library, "hipDeviceGetName", device), "bus_id": text.value.decode(errors="replace")}
            )
    except _DriverError as error:
        found["problem"] = str(error)
    return found


def _nccl() -> dict[str, Any] | None:
    name = os.environ.get("PALMETTE_NCCL") or "libnccl.so.2"
    library = _library(name)
    if library is None:
        return None
    try:
        return {"version": _number(library, "ncclGetVersion"), "library": name}
    except _DriverError as error:
        return {"version": 0, "library": name, "problem": str(error)}


def _kernel_driver() -> str:
    try:
        return _KERNEL_DRIVER.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _mpi(path: str) -> dict[str, Any]:
    """What an MPI says of CUDA; null: it has no such question."""
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    try:
        ask = library.MPIX_Query_cuda_support
    except AttributeError:
        return {"cuda": None}
    # MPICH answers in between only.
    if library.MPI_Init(None, None) != 0:
        return {"cuda": None}
    answer = bool(ask())
    library.MPI_Finalize()
    return {"cuda": answer}


def _with_context() -> ctypes.CDLL:
    library = _library("libcuda.so.1")
    if library is None:
        raise _DriverError("no libcuda.so.1")
    context = ctypes.c_void_p()
    _check(library, "cuInit", 0)
    _check(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    _check(library, "cuCtxSetCurrent", context)
    return library


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


def _export() -> dict[str, Any]:
    """Export an allocation to a process that opens and reads it."""
    opener = subprocess.Popen(
        [sys.executable, "-I", __file__, "open"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert opener.stdin is not None
    try:
        library = _with_context()
        memory = ctypes.c_uint64()
        handle = _Handle()
        _check(library, "cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(len(_PATTERN)))
        _check(library, "cuMemcpyHtoD_v2", memory, _PATTERN, ctypes.c_size_t(len(_PATTERN)))
        _check(library, "cuCtxSynchronize")
        _check(library, "cuIpcGetMemHandle", ctypes.byref(handle), memory)
    except _DriverError as error:
        opener.kill()
        opener.wait()
        return {"works": False, "problem": str(error)}
    text, _ = opener.communicate(bytes(handle.bytes).hex() + "\n")
    _check(library, "cuMemFree_v2", memory)
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        return {"works": False, "problem": "the process that opened the memory died"}
    return found


def _open() -> dict[str, Any]:
    line = sys.stdin.readline().strip()
    handle = _Handle()
    handle.bytes[:] = bytes.fromhex(line)
    memory = ctypes.c_uint64()
    copy = ctypes.create_string_buffer(len(_PATTERN))
    try:
        library = _with_context()
        _check(library, "cuIpcOpenMemHandle_v2", ctypes.byref(memory), handle, 1)
        _check(library, "cuMemcpyDtoH_v2", copy, memory, ctypes.c_size_t(len(_PATTERN)))
        _check(library, "cuIpcCloseMemHandle", memory)
    except _DriverError as error:
        return {"works": False, "problem": str(error)}
    if copy.raw != _PATTERN:
        return {"works": False, "problem": "another process reads other bytes than were written"}
    return {"works": True}


def main(words: list[str]) -> None:
    """Print what was asked for."""
    if words[:1] == ["mpi"]:
        print(json.dumps(_mpi(words[1])))
    elif words[:1] == ["ipc"]:
        print(json.dumps(_export()))
    elif words[:1] == ["open"]:
        print(json.dumps(_open()))
    else:
        print(json.dumps({"cuda": _cuda(), "hip": _hip(), "nccl": _nccl()}))


if __name__ == "__main__":
    main(sys.argv[1:])
