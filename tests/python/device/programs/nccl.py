"""Collectives on device memory against NumPy, with a device for each rank or some; one closing line.

    nccl.py DEVICES ROUNDS SEED [KINDS]     KINDS: by rank d (device), h (host) or r (either), repeated

With `nccl.py kill DEVICES` rank 1 kills itself in the middle.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from device.fake import Cuda, DeviceArray

Array = np.ndarray[Any, Any]
OPERATIONS: dict[str, tuple[MPI.Op, Callable[[Array], Array]]] = {
    "sum": (MPI.SUM, lambda rows: rows.sum(axis=0, dtype=rows.dtype)),
    "prod": (MPI.PROD, lambda rows: rows.prod(axis=0, dtype=rows.dtype)),
    "min": (MPI.MIN, lambda rows: rows.min(axis=0)),
    "max": (MPI.MAX, lambda rows: rows.max(axis=0)),
    "land": (MPI.LAND, lambda rows: rows.all(axis=0).astype(rows.dtype)),
}
TYPES = ("f4", "f8", "i4", "i8", "u1", "i2")


class Ranks:
    """One communicator's cases: the data of all ranks is known to each."""

    def __init__(self, comm: MPI.Intracomm, cuda: Cuda, kinds: str, seed: int) -> None:
        self.comm, self.cuda, self.kinds = comm, cuda, kinds
        self.random = np.random.default_rng(seed)
        self.own = np.random.default_rng([seed, comm.rank])
        self.cases = self.wrong = 0

    def buffer(self, values: Array) -> Any:
        """Return a copy on the device or on the host."""
        kind = self.kinds[self.comm.rank % len(self.kinds)]
        on_device = kind == "d" or (kind == "r" and bool(self.own.integers(2)))
        return DeviceArray(self.cuda, values) if on_device else values.copy()

    def expect(self, what: str, buffer: Any, wanted: Array) -> None:
        """Compare, and free what lies on the device."""
        got = buffer.numpy() if isinstance(buffer, DeviceArray) else buffer
        self.cases += 1
        if not np.array_equal(got, wanted):
            self.wrong += 1
            print(f"rank {self.comm.rank}: {what} is wrong: {got[:4]} instead of {wanted[:4]}", flush=True)
        self.free(buffer)

    @staticmethod
    def free(*buffers: Any) -> None:
        for buffer in buffers:
            if isinstance(buffer, DeviceArray):
                buffer.free()

    def round(self) -> None:
        """Call each function once, with one type, operation and length."""
        comm, me, ranks, random = self.comm, self.comm.rank, self.comm.size, self.random
        dtype = TYPES[random.integers(len(TYPES))]
        name = list(OPERATIONS)[random.integers(len(OPERATIONS))]
        op, reduced = OPERATIONS[name]
        if name == "land" and dtype[0] == "f":
            op, reduced = OPERATIONS["max"]
        count = int(random.choice([1, 7, 1000, 30001]))
        root = int(random.integers(ranks))
        # One rank alone gets its input, not its truth.
        all_data = random.integers(0, 2 if name == "land" else 3, (ranks, ranks * count)).astype(dtype)
        mine = all_data[me]
        part, parts = mine[:count], all_data[:, :count]
        what = f"{dtype} {name} {count} root {root}"
        junk = np.full(count, 9, dtype)

        def two(given: Array, room: Array, call: Callable[[Any, Any], None], label: str, wanted: Array) -> None:
            sent, received = self.buffer(given), self.buffer(room)
            call(sent, received)
            self.expect(f"{label} {what}", received, wanted)
            self.expect(f"{label}'s input {what}", sent, given)

        def one(given: Array, call: Callable[[Any], None], label: str, wanted: Array, used: int = -1) -> None:
            both = self.buffer(given)
            call(both)
            if used >= 0:
                got = both.numpy() if isinstance(both, DeviceArray) else both
                self.free(both)
                both, wanted = got[:used].copy(), wanted[:used]
            self.expect(f"{label} {what}", both, wanted)

        total = reduced(parts)
        two(part, junk, lambda s, r: comm.Allreduce(s, r, op), "allreduce", total)
        one(part, lambda b: comm.Allreduce(MPI.IN_PLACE, b, op), "allreduce in place", total)
        two(part, junk, lambda s, r: comm.Reduce(s, r, op, root), "reduce", total if me == root else junk)
        one(
            part,
            lambda b: comm.Reduce(MPI.IN_PLACE if me == root else b, b if me == root else None, op, root),
            "reduce in place",
            total if me == root else part,
        )
        one(part if me == root else junk, lambda b: comm.Bcast(b, root), "bcast", parts[root])
        room = np.full(ranks * count, 9, dtype)
        two(part, room, comm.Allgather, "allgather", parts.reshape(-1))
        own = room.copy()
        own[me * count : (me + 1) * count] = part
        one(own, lambda b: comm.Allgather(MPI.IN_PLACE, b), "allgather in place", parts.reshape(-1))
        column = all_data.reshape(ranks, ranks, count)[:, me]
        two(mine, room, comm.Alltoall, "alltoall", column.reshape(-1))
        one(mine, lambda b: comm.Alltoall(MPI.IN_PLACE, b), "alltoall in place", column.reshape(-1))
        sums = reduced(all_data)
        two(
            mine, junk, lambda s, r: comm.Reduce_scatter_block(s, r, op), "reduce_scatter_block",
            sums[me * count : (me + 1) * count],
        )  # fmt: skip
        one(
            mine, lambda b: comm.Reduce_scatter_block(MPI.IN_PLACE, b, op), "reduce_scatter_block in place",
            sums[me * count : (me + 1) * count], count,
        )  # fmt: skip
        counts = [count + (r % 3 - 1) * min(count, 5) for r in range(ranks)]
        begin, length = sum(counts[:me]), counts[me]
        used, part_of_it = mine[: sum(counts)], sums[begin : begin + length]
        two(
            used, np.full(length, 9, dtype), lambda s, r: comm.Reduce_scatter(s, r, counts, op), "reduce_scatter",
            part_of_it,
        )  # fmt: skip
        one(
            used, lambda b: comm.Reduce_scatter(MPI.IN_PLACE, b, counts, op), "reduce_scatter in place",
            np.concatenate([part_of_it, used])[: len(used)], length,
        )  # fmt: skip


def run_in_threads(comm: MPI.Intracomm, cuda: Cuda, seed: int, rounds: int) -> tuple[int, int]:
    """Two threads on two communicators at once."""
    both = [Ranks(comm.Dup(), cuda, "d", seed + i) for i in range(2)]

    def work(ranks: Ranks) -> None:
        cuda.cuCtxSetCurrent(cuda.context)
        for _ in range(rounds):
            ranks.round()

    threads = [threading.Thread(target=work, args=(ranks,)) for ranks in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(r.cases for r in both), sum(r.wrong for r in both)


def main(arguments: list[str]) -> None:
    comm = MPI.COMM_WORLD
    kills = arguments[0] == "kill"
    devices = int(arguments[1 if kills else 0])
    cuda = Cuda(comm.rank % devices)
    if kills:
        buffer = DeviceArray(cuda, np.ones(300000))
        for i in range(100):
            if i == 3 and comm.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            comm.Allreduce(MPI.IN_PLACE, buffer)
        return
    rounds, seed = int(arguments[1]), int(arguments[2])
    kinds = arguments[3] if len(arguments) > 3 else "d"
    if kinds == "threads":
        cases, wrong = run_in_threads(comm, cuda, seed, rounds)
    else:
        world = Ranks(comm, cuda, kinds, seed)
        half = comm.Split(comm.rank % 2, -comm.rank)
        part = Ranks(half, cuda, kinds, seed + 1000 * (1 + comm.rank % 2))
        for _ in range(rounds):
            world.round()
            part.round()
        half.Free()
        cases, wrong = world.cases + part.cases, world.wrong + part.wrong
    total = comm.allreduce(np.array([cases, wrong]))
    if comm.rank == 0:
        print(f"{total[0]} cases, {total[1]} wrong", flush=True)


main(sys.argv[1:])
