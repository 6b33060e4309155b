"""An MPI program: compositions on arrays, several under way at once, and errors as exceptions. Rank 0 prints
`right`."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
from mpi4py import MPI

from palmette.compose import ComposeError, Composition, named
from palmette.compose.factoring import Factoring
from palmette.compose.running import RunningPlan

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size

# By name, beside the MPI's own.
count = 1000
plan = RunningPlan(
    named("allreduce", size, 8 * count, element_bytes=8),
    comm,
    Factoring(methods=("ring",), pipeline=3),
    datatype=MPI.DOUBLE,
    operations={"sum": MPI.SUM},
)
runs = []
for number in range(4):
    x, y = np.arange(count) + rank * 10.0 + number, np.empty(count)
    runs.append((plan.bind(send=x, recv=y), x, y))
for run, _, _ in runs:
    run.start()
for number, (run, x, y) in enumerate(reversed(runs) if rank % 2 else runs):
    if number % 2:
        while not run.test():
            pass
    else:
        run.wait()
    expected = np.empty(count)
    sums = np.arange(count) * float(size) + 10.0 * size * (size - 1) / 2 + size * (x[0] - rank * 10.0)
    expected[:] = sums
    np.testing.assert_allclose(y, expected)
for run, _, _ in runs:
    run.free()
plan.free()

# Levels may go by single copies: all ranks are on this host.
plan = RunningPlan(named("allreduce", size, 80000, element_bytes=8), comm, Factoring(methods=("ring@copy",),
pipeline=2),
                   datatype=MPI.DOUBLE, operations={"sum": MPI.SUM})  # fmt: skip
x, y = np.arange(10000) + rank * 10.0, np.empty(10000)
assert plan.single_copies > 0
for _ in range(2):
    with plan.bind(send=x, recv=y) as run:
        run.start()
        run.wait()
    np.testing.assert_allclose(y, np.arange(10000) * float(size) + 10.0 * size * (size - 1) / 2)
plan.free()

# By hand, on another communicator, in another order of ranks.
turned = comm.Split(0, -rank)
made = Composition(size, bytes=4, blocks=size)
field, ghost = made.buffer("field"), made.buffer("ghost")
for r in range(size):
    made.multicast(r, [(r + 1) % size], field[r], ghost)
with RunningPlan(made, turned) as plan:
    mine, left = np.array([turned.rank], dtype=np.int32), np.zeros(1, dtype=np.int32)
    with plan.bind(field=mine, ghost=left) as run:
        run.start()
        run.wait()
    assert left[0] == (turned.rank - 1) % size, left


def refused(text: str, what: object) -> None:
    """Fail unless `what()` raises a ComposeError with that text."""
    try:
        what()  # type: ignore[operator]
    except ComposeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


refused("differs between ranks", lambda: RunningPlan(made, turned, Factoring(pipeline=2 if rank == 0 else 1)))
refused("fits", lambda: RunningPlan(made, turned, Factoring(hierarchy=f"2:{size}")))
refused("ranks and the communicator", lambda: RunningPlan(made, MPI.COMM_SELF) if size > 1 else None)
refused("is not given", lambda: RunningPlan(named("reduce", size, 8, element_bytes=8), comm, datatype=MPI.DOUBLE))
with RunningPlan(made, turned) as plan:
    refused("is unknown", lambda: plan.bind(other=mine))
    refused("needs an array", lambda: plan.bind(field=mine))
    refused("the array has 8 bytes where 4 are needed", lambda: plan.bind(field=mine.astype(np.int64), ghost=left))
turned.Free()


def resident() -> int:
    """Return the pages that this process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


# Nothing is left behind by plans and runs.
before = 0
for round_ in range(60):
    if round_ == 20:
        gc.collect()
        before = resident()
    plan = RunningPlan(named("allgather", size, 1 << 16), comm)
    send, recv = np.zeros(1 << 16, dtype=np.uint8), np.zeros(size << 16, dtype=np.uint8)
    with plan.bind(send=send, recv=recv) as run:
        run.start()
        run.wait()
    plan.free()
gc.collect()
assert resident() - before < 2000, f"{resident() - before} pages more"
comm.Barrier()
if rank == 0:
    print("right")
