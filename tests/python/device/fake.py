"""The fakes of tests/fakes in tests: the environment of a run with them, what they log, and calls of the fake libcuda.

    done = subprocess.run(command, env=fake.environment(os.environ, log=folder, devices=2, lazy=True))
    for log in fake.logs(folder):
        assert log.live("libpalmette") == []

In a program (mpi4py's, for example) that runs in such an environment:

    cuda = fake.Cuda()
    array = fake.DeviceArray(cuda, numpy.arange(10))
    comm.Allreduce(MPI.IN_PLACE, array)
    array.numpy()
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PALMETTE_TEST_BUILD", ROOT / "build" / "release"))
FAKES = BUILD / "tests" / "fakes"
"""Where libcuda.so.1, libamdhip64.so.6 and libnccl.so.2 are."""


def text_of(settings: Mapping[str, object]) -> str:
    """Return the value of PALMETTE_FAKE_CUDA or PALMETTE_FAKE_NCCL: True is a flag, a list repeats its key."""
    words = []
    for key, value in settings.items():
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is not False and each is not None:
                words.append(key if each is True else f"{key}={each}")
    return ",".join(words)


def search_path(environment: Mapping[str, str]) -> str:
    """Return the assignment for `env` that lets programs find the fakes besides the libraries of `environment`."""
    return f"LD_LIBRARY_PATH={FAKES}:{environment.get('LD_LIBRARY_PATH', '')}"


def environment(
    base: Mapping[str, str],
    *,
    log: Path | None = None,
    nccl: Mapping[str, object] | None = None,
    visible: str | None = None,
    **settings: object,
) -> dict[str, str]:
    """Return an environment in which a program that loads a driver gets the fake one (tests/fakes/settings.hpp)."""
    result = dict(base)
    result["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(FAKES), base.get("LD_LIBRARY_PATH", "")]))
    result["PALMETTE_FAKE_CUDA"] = text_of(settings)
    result["PALMETTE_FAKE_NCCL"] = text_of(nccl or {})
    result.pop("CUDA_VISIBLE_DEVICES", None)
    if visible is not None:
        result["CUDA_VISIBLE_DEVICES"] = visible
    if log is not None:
        log.mkdir(exist_ok=True)
        result["PALMETTE_FAKE_CUDA_LOG"] = str(log)
    return result


@dataclass(frozen=True)
class Log:
    """What the fake libcuda (or libamdhip64) saw in one process; a library is meant by the beginning of its name."""

    content: dict[str, Any]

    @property
    def process(self) -> int:
        return int(self.content["process"])

    def calls(self, function: str, library: str = "") -> int:
        """Return how often a function was called."""
        counts: dict[str, int] = self.content["calls"].get(function, {})
        return sum(count for name, count in counts.items() if name.startswith(library))

    def callers(self, function: str) -> set[str]:
        """Return the libraries and programs that called it."""
        return set(self.content["calls"].get(function, {}))

    def live(self, library: str = "", kind: str = "") -> list[dict[str, Any]]:
        """Return what hadn't been freed at the end: dictionaries with kind, library, address, size."""
        return [
            item
            for item in self.content["live"]
            if item["library"].startswith(library) and item["kind"].startswith(kind)
        ]

    def contexts(self, library: str = "") -> list[dict[str, Any]]:
        """Return the contexts that were created: dictionaries with device, primary, library."""
        return [made for made in self.content["contexts_created"] if made["library"].startswith(library)]

    @property
    def bytes(self) -> dict[str, int]:
        """By kind of copy, such as "device to pageable": pageable, pinned, managed, device; and "fill"."""
        return dict(self.content["bytes"])

    @property
    def kernels(self) -> dict[str, int]:
        return dict(self.content["kernels"])

    @property
    def late_errors(self) -> list[str]:
        """Errors of work on streams: memory that was freed too early, or that a device can't reach."""
        return list(self.content["late_errors"])


def logs(folder: Path, ending: str = ".json") -> list[Log]:
    """Return the logs of all processes that called the fake libcuda (ending .hip.json: libamdhip64)."""
    paths = (path for path in folder.glob(f"*{ending}") if path.name.split(".", 1)[1] == ending[1:])
    return sorted((Log(json.loads(path.read_text(encoding="utf-8"))) for path in paths), key=lambda log: log.process)


class CudaError(Exception):
    """A call that failed: its result."""

    def __init__(self, function: str, result: int) -> None:
        super().__init__(f"{function}: {result}")
        self.result = result


class Cuda:
    """Calls of libcuda by name: `cuda.cuMemFree_v2(address)`. Integers go as 64 bits, as pointers and sizes need."""

    def __init__(self, device: int | None = 0, library: str = "libcuda.so.1") -> None:
        self.library = ctypes.CDLL(library)
        if device is not None:
            self.cuInit(0)
            self.context = self.new("cuDevicePrimaryCtxRetain", device)
            self.cuCtxSetCurrent(self.context)

    def result(self, function: str, *arguments: object) -> int:
        """Return what a function returns."""
        words = [ctypes.c_uint64(argument) if isinstance(argument, int) else argument for argument in arguments]
        return int(getattr(self.library, function)(*words))

    def __getattr__(self, function: str) -> Any:
        """Return a function that raises CudaError."""

        def call(*arguments: object) -> None:
            if result := self.result(function, *arguments):
                raise CudaError(function, result)

        return call

    def new(self, function: str, *arguments: object) -> int:
        """Return the 64 bits that a function writes where its first argument points."""
        made = ctypes.c_uint64()
        getattr(self, function)(ctypes.byref(made), *arguments)
        return made.value

    def alias(self, address: int) -> int | None:
        """Return where the host reads and writes device memory."""
        self.library.fake_cuda_alias.restype = ctypes.c_void_p
        value: int | None = self.library.fake_cuda_alias(ctypes.c_uint64(address))
        return value

    def write(self, address: int, data: bytes) -> None:
        """Write device memory, whatever streams do."""
        ctypes.memmove(self.alias(address) or 0, data, len(data))

    def read(self, address: int, size: int) -> bytes:
        """Read device memory, whatever streams do."""
        return ctypes.string_at(self.alias(address) or 0, size)

    def attribute(self, attribute: int, address: int) -> int:
        """Return an attribute of a pointer, widened."""
        return self.new("cuPointerGetAttribute", attribute, address)


class DeviceArray:
    """A NumPy array's copy in device memory, which mpi4py takes as a buffer: managed, of the pool, or plain."""

    def __init__(
        self,
        cuda: Cuda,
        values: np.ndarray[Any, Any],
        managed: bool = False,
        stream: int | None = None,
        pooled: bool = False,
    ):
        values = np.ascontiguousarray(values)
        self.cuda, self.shape, self.dtype, self.stream = cuda, values.shape, values.dtype, stream
        size = max(values.nbytes, 1)
        if managed:
            self.address = cuda.new("cuMemAllocManaged", size, 1)
        elif pooled:
            self.address = cuda.new("cuMemAllocAsync", size, 0)
            cuda.cuCtxSynchronize()
        else:
            self.address = cuda.new("cuMemAlloc_v2", size)
        self.size = values.nbytes
        self.set(values)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "strides": None,
            "stream": self.stream,
        }

    def set(self, values: np.ndarray[Any, Any]) -> None:
        """Copy values to the device."""
        values = np.ascontiguousarray(values, dtype=self.dtype)
        self.cuda.cuMemcpyHtoD_v2(self.address, values.ctypes.data, self.size)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy of the values on the host."""
        values = np.empty(self.shape, self.dtype)
        self.cuda.cuMemcpyDtoH_v2(values.ctypes.data, self.address, self.size)
        return values

    def free(self) -> None:
        """Free the device memory."""
        self.cuda.cuMemFree_v2(self.address)
