"""An MPI program: compositions whose levels ask for NCCL, a device for each rank, against NumPy.

    composed_nccl.py WHAT KINDS [FACTORING...]

KINDS has a letter for each rank, in turn: d for device memory, m for managed memory, l for a pool's, h for the host's,
x for the device's and the host's in one run. WHAT:

    one         one run
    results     catalogue of compositions by each factoring, some runs of each
    outstanding many runs of several plans at once, waited for in another order on each rank
    late        a rank begins long after the others
    failing     runs one after the other, of which one fails on all ranks alike; those after it are right
    swapped     two runs that are started in different orders: an error on all ranks, and later runs are right
    crossed     the same with runs on two communicators, whose ranks can't compare that
    elsewhere   a buffer on another device than NCCL's communicator
    kill        a rank kills itself while runs are under way

Rank 0 prints `right`, and "NUMBER by nccl": all ranks' messages that go between devices.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import fake

from palmette.compose import ComposeError, named
from palmette.compose.factoring import Factoring
from palmette.compose.running import Run, RunningPlan

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
what, kinds, *factorings = sys.argv[1:]
kind = kinds[rank % len(kinds)]
# Settings of the fake libnccl on rank 1 alone, before palmette loads it.
if rank == 1 and "FAULT" in os.environ:
    os.environ["PALMETTE_FAKE_NCCL"] = os.environ["FAULT"]
# Ranks with buffers on the host need a current context, too.
cuda = fake.Cuda(device=rank % int(os.environ.get("DEVICES", "4")))
if os.environ.get("NO_CONTEXT") and rank == size - 1:
    cuda.cuCtxSetCurrent(0)


class RankArray:
    """An array of this rank's kind: `given` is bound, `set` and `get` are NumPy's."""

    def __init__(self, values: np.ndarray[Any, Any], other: bool = False) -> None:
        self.on_device = kind in "dml" or (kind == "x" and other)
        self.given: Any = np.ascontiguousarray(values)
        if self.on_device:
            self.given = fake.DeviceArray(cuda, values, managed=kind == "m", pooled=kind == "l")

    def set(self, values: np.ndarray[Any, Any]) -> None:
        if self.on_device:
            self.given.set(values)
        else:
            self.given[...] = values

    def get(self) -> np.ndarray[Any, Any]:
        return self.given.numpy() if self.on_device else self.given.copy()

    def free(self) -> None:
        if self.on_device:
            self.given.free()


class Case:
    """One of MPI's collectives, as a plan with one bound run."""

    def __init__(self, name: str, count: int, factoring: str, seed: int, on: Any = comm) -> None:
        self.name, self.count, self.seed = name, count, seed
        self.rank, self.size = on.rank, on.size
        self.root = seed % self.size
        composition = named(name, self.size, 8 * count, root=self.root, element_bytes=8)
        self.plan = RunningPlan(
            composition, on, Factoring.parse(factoring), datatype=MPI.DOUBLE, operations={"sum": MPI.SUM}
        )
        cuda.cuCtxSetCurrent(cuda.context)
        self.held = [
            RankArray(np.zeros(self.plan.bytes_of(buffer) // 8), other=index % 2 == 1)
            for index, buffer in enumerate(self.plan.buffers)
        ]
        self.run: Run = self.plan.bind(
            **{buffer: one.given for buffer, one in zip(self.plan.buffers, self.held, strict=True)}
        )

    def start(self, turn: int) -> None:
        random = np.random.default_rng([self.seed, turn])
        self.values = random.integers(-20, 20, (self.size, self.size * self.count)).astype("f8")
        first = self.plan.bytes_of(self.plan.buffers[0]) // 8
        self.held[0].set(self.values[self.rank][:first])
        for buffer, one in zip(self.plan.buffers[1:], self.held[1:], strict=True):
            one.set(np.full(self.plan.bytes_of(buffer) // 8, 7.0))
        self.run.start()

    def check(self) -> None:
        got = self.held[1 if len(self.held) > 1 else 0].get()
        np.testing.assert_array_equal(got, self.expected()[: got.size], self.name)

    def finish(self) -> None:
        self.run.wait()
        self.check()

    def fails(self) -> str:
        """Return the error of the run, or nothing."""
        try:
            self.run.wait()
        except ComposeError as error:
            return str(error)
        return ""

    def expected(self) -> np.ndarray[Any, Any]:
        values, count = self.values, self.count
        if self.name == "broadcast":
            return values[self.root][:count]
        if self.name == "scatter":
            return values[self.root].reshape(self.size, count)[self.rank]
        if self.name == "gather":
            return values[:, :count].ravel()
        if self.name == "allgather":
            return values[:, :count].ravel()
        if self.name == "alltoall":
            return values.reshape(self.size, self.size, count)[:, self.rank].ravel()
        if self.name == "reduce_scatter":
            return values.sum(axis=0).reshape(self.size, count)[self.rank]
        return values[:, :count].sum(axis=0)

    def free(self) -> None:
        self.run.free()
        self.plan.free()
        for one in self.held:
            one.free()


CATALOGUE = ("broadcast", "reduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter", "allreduce")
between_devices = 0


def check_results() -> None:
    global between_devices
    seed = 0
    for text in factorings:
        for name in CATALOGUE:
            seed += 1
            case = Case(name, (1, 700)[seed % 2], text, seed)
            between_devices += case.plan.device_messages
            for turn in range(3):
                case.start(turn)
                while seed % 2 and not case.run.test():
                    pass
                case.finish()
            case.free()


def check_one() -> None:
    global between_devices
    case = Case("allreduce", 100, factorings[0], 1)
    between_devices = case.plan.device_messages
    case.start(0)
    case.finish()
    case.free()


def check_outstanding() -> None:
    global between_devices
    halves = comm.Split(rank % 2, rank)
    cases = [Case(name, 300, factorings[0], index) for index, name in enumerate(CATALOGUE)]
    cases += [Case("allgather", 300, "method=ring", 50), Case("allreduce", 300, "method=ring@nccl", 51, on=halves)]
    between_devices = sum(case.plan.device_messages for case in cases)
    order = np.random.default_rng(rank).permutation(len(cases))
    for turn in range(4):
        for case in cases:
            case.start(turn)
        for index in order:
            cases[index].finish()
    # A collective of the MPI's while they are under way.
    for case in cases:
        case.start(9)
    assert comm.allreduce(1) == size
    for index in order:
        cases[index].finish()
    for case in cases:
        case.free()
    halves.Free()


def check_late() -> None:
    case = Case("allreduce", 100, factorings[0], 1)
    case.start(0)
    case.finish()
    if rank == size - 1:
        time.sleep(float(os.environ["LATE_S"]))
    case.start(1)
    case.finish()
    case.free()


def check_failing() -> None:
    """One of all runs fails, on all ranks; the others are right."""
    plans = [Case(name, 200, factorings[0], index) for index, name in enumerate(("allreduce", "alltoall"))]
    failed: list[tuple[int, int]] = []
    for turn in range(6):
        for case in plans:
            case.start(turn)
        for index, case in enumerate(plans):
            if error := case.fails():
                assert "NCCL isn't used any more by the communicator's plans: " in error, error
                failed.append((turn, index))
            else:
                case.check()
    assert len(failed) == 1, failed
    assert len(set(comm.allgather(failed[0]))) == 1
    for case in plans:
        case.free()
    # A plan that is made from now on has a communicator of NCCL's of its own.
    case = Case("allgather", 50, factorings[0], 7)
    assert case.plan.device_messages > 0
    for turn in range(2):
        case.start(turn)
        case.finish()
    case.free()


def check_swapped(crossed: bool) -> None:
    other = comm.Dup() if crossed else comm
    pair = [Case("allreduce", 200, factorings[0], 1), Case("allreduce", 200, factorings[0], 2, on=other)]
    for case in pair:
        case.start(0)
        case.finish()
    for case in pair if rank % 2 else reversed(pair):
        case.start(1)
    errors = [case.fails() for case in pair]
    everywhere = comm.allgather([bool(error) for error in errors])
    assert all(one == everywhere[0] for one in everywhere), everywhere
    assert any(errors), "no error"
    if not crossed:
        assert all("different orders" in error for error in errors), errors
    for turn in range(2):
        for case in pair:
            case.start(2 + turn)
        for case in pair:
            case.finish()
    for case in pair:
        case.free()
    if crossed:
        other.Free()


def check_elsewhere() -> None:
    composition = named("allreduce", size, 80, element_bytes=8)
    factoring = Factoring.parse("method=direct@nccl")
    with RunningPlan(composition, comm, factoring, datatype=MPI.DOUBLE, operations={"sum": MPI.SUM}) as plan:
        elsewhere = fake.Cuda(device=(rank + 1) % size)
        array = fake.DeviceArray(elsewhere, np.zeros(10))
        try:
            plan.bind(send=np.zeros(10), recv=array)
        except ComposeError as error:
            expected = (
                f"buffer 'recv' lies on cuda device {(rank + 1) % size} where the plan's NCCL is for device {rank};"
            )
            assert expected in str(error) and "\n" not in str(error), error
        else:
            raise AssertionError("no error")
        array.free()
        cuda.cuCtxSetCurrent(cuda.context)


def kill() -> None:
    case = Case("allreduce", 20000, factorings[0], 1)
    for turn in range(1000000):
        case.start(turn)
        if turn == 20 and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case.finish()


if what == "results":
    check_results()
elif what == "one":
    check_one()
elif what == "outstanding":
    check_outstanding()
elif what == "late":
    check_late()
elif what == "failing":
    check_failing()
elif what in ("swapped", "crossed"):
    check_swapped(what == "crossed")
elif what == "elsewhere":
    check_elsewhere()
else:
    kill()
total = comm.allreduce(between_devices)
if rank == 0:
    print("right")
    print(f"{total} by nccl")
