"""Programs that call the fakes, each in a process of its own, since what it does to a driver can't be undone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpi.conftest import mpi_called as mpi_called

from . import fake

TESTS = fake.ROOT / "tests" / "python"

# What programs begin with.
PREAMBLE = """
import ctypes, os, struct, sys, time
import numpy as np
from device.fake import Cuda, CudaError, DeviceArray

def wait_for(*children):
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, status

def ranks(count):
    "Fork, return the rank; rank 0 is the parent, which waits for the others at the end."
    children = []
    for rank in range(1, count):
        child = os.fork()
        if child == 0:
            return rank, []
        children.append(child)
    return 0, children

PTX = b".version 7.0\\n.target sm_50\\n.address_size 64\\n" + b"".join(
    b".visible .entry palmette_%s_%s(\\n" % (op, t) for op in (b"sum", b"max", b"bxor")
    for t in (b"f32", b"f64", b"f16", b"bf16", b"i8", b"u64"))

class Kernels:
    def __init__(self, cuda):
        self.cuda = cuda
        self.image = ctypes.create_string_buffer(PTX)
        self.module = cuda.new("cuModuleLoadData", ctypes.addressof(self.image))
    def launch(self, name, left, right, target, count, stream=0):
        function = self.cuda.new("cuModuleGetFunction", self.module, ctypes.c_char_p(name.encode()))
        words = [ctypes.c_uint64(word) for word in (left, right, target, count)]
        pointers = (ctypes.c_void_p * 4)(*[ctypes.addressof(word) for word in words])
        self.cuda.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, pointers, None)
"""


@dataclass(frozen=True)
class ProcessResult:
    """How a program ended."""

    status: int
    text: str
    logs: list[fake.Log]


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., ProcessResult]:
    """Run a program with the fakes, which must end well unless another status is expected."""

    def run(source: str, status: int = 0, **settings: object) -> ProcessResult:
        if not (fake.FAKES / "libnccl.so.2").is_file():
            pytest.skip("the fakes aren't built: tools/build.sh release 2 palmette_fakes")
        environment = fake.environment(os.environ, log=tmp_path / "log", **settings)
        environment["PYTHONPATH"] = str(TESTS)
        environment["OPENBLAS_NUM_THREADS"] = "1"
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", PREAMBLE + textwrap.dedent(source)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return ProcessResult(done.returncode, done.stdout + done.stderr, fake.logs(tmp_path / "log"))

    return run
