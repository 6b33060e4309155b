"""Collectives over an MPI that takes device memory itself (tests/mpi/support/takes_devices.c); one closing line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from device.fake import Cuda, DeviceArray

comm = MPI.COMM_WORLD
cuda = Cuda(0)
cases = wrong = 0


def buffer(kind: str, values: np.ndarray[Any, Any]) -> Any:
    """Return a copy in the memory that this rank's letter in `kind` says: d (device) or h (host)."""
    return DeviceArray(cuda, values) if kind[comm.rank % len(kind)] == "d" else values.copy()


def assign(target: Any, values: np.ndarray[Any, Any]) -> None:
    """Give a buffer other values."""
    if isinstance(target, DeviceArray):
        target.set(values)
    else:
        target[...] = values


def expect(got: Any, wanted: float) -> None:
    """Compare all elements."""
    global cases, wrong
    cases += 1
    wrong += int(not np.all((got.numpy() if isinstance(got, DeviceArray) else got) == wanted))


ranks = comm.size
kinds = ("h", "d", "dh", "hd")
for count in (1, 4000):
    for kind in (*kinds, "d", "h"):
        # A length of its own for each kind, and one that all have, on the host first.
        for n in (count + 10 * kinds.index(kind), 17 * count):
            given, room = buffer(kind, np.full(n, comm.rank + 1.0)), buffer(kind, np.zeros(n))
            comm.Allreduce(given, room)
            expect(room, ranks * (ranks + 1) / 2)
            comm.Allreduce(MPI.IN_PLACE, given)
            expect(given, ranks * (ranks + 1) / 2)
            sent = buffer(kind, np.full(n, comm.rank + 3.0))
            comm.Bcast(sent, root=1)
            expect(sent, 4.0)
            given = buffer(kind, np.full(n, 2.0))
            comm.Iallreduce(given, room).Wait()
            expect(room, 2.0 * ranks)
            if MPI.Get_version() >= (4, 0):
                request = comm.Allreduce_init(given, room)
                for turn in (3.0, 5.0):
                    assign(given, np.full(n, turn))
                    request.Start()
                    request.Wait()
                    expect(room, turn * ranks)
                request.Free()
total = comm.allreduce(np.array([cases, wrong]))
if comm.rank == 0:
    print(f"{total[0]} cases, {total[1]} wrong", flush=True)
