"""An MPI program: sums of random footprints to their owners and back, against dense sums. Rank 0 prints `right`."""

from __future__ import annotations

from typing import Literal

import numpy as np
from mpi4py import MPI

from palmette.compose import ComposeError
from palmette.compose.factoring import Factoring
from palmette.compose.sparse import SparseSum

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def check(
    indices: int, width: int, dtype: str, coarsen: int | Literal["model"], factoring: Factoring | None, seed: int
) -> None:
    """Sum and spread random footprints, and compare with dense arrays. Some indices are nobody's."""
    common, own = np.random.default_rng(seed), np.random.default_rng([seed, rank])
    ends = np.sort(common.integers(0, indices + 1, size - 1))
    bounds = [0, *ends.tolist(), indices]
    owned = (bounds[rank], bounds[rank + 1])
    middle = own.integers(0, indices)
    touched = own.permutation(np.arange(max(0, middle - indices // 4), min(indices, middle + indices // 4)))
    if rank == seed % (size + 1):
        touched = touched[:0]
    with SparseSum(
        comm, touched=touched, owned=owned, width=width, dtype=dtype, coarsen=coarsen, factoring=factoring
    ) as exchange:
        known = np.isin(exchange.order, touched)
        assert set(touched) <= set(exchange.order)
        assert coarsen in ("model", exchange.coarsen)
        assert comm.allgather(exchange.coarsen) == [exchange.coarsen] * size
        assert exchange.coarsen > 1 or known.all()
        # Integers: sums are exact in any order.
        partial = np.where(known[:, None], own.integers(-50, 50, (len(known), width)), 0).astype(dtype)
        dense = np.zeros((indices, width), dtype=dtype)
        dense[exchange.order] = partial
        total = comm.allreduce(dense)
        mine = np.full((len(exchange.mine), width), 7, dtype=dtype)
        with exchange.bind(partial, mine) as bound:
            for _ in range(2):
                bound.sum.start()
                bound.sum.wait()
                np.testing.assert_array_equal(mine, total[exchange.mine])
            y = common.integers(-50, 50, (indices, width)).astype(dtype)
            contribution, forward = partial.copy(), float((mine * y[exchange.mine]).sum())
            mine[:] = y[exchange.mine]
            bound.spread.start()
            bound.spread.wait()
            np.testing.assert_array_equal(partial, y[exchange.order])
            back = float((contribution * partial).sum())
        rest = np.setdiff1d(np.arange(*owned), exchange.mine)
        assert not total[rest].any(), "what no block has is zero"
        assert comm.allreduce(forward) == comm.allreduce(back), "<Ax, y> = <x, A'y>"


for seed, (indices, width, dtype, coarsen, factoring) in enumerate(
    [
        (200, 1, "f4", 1, None),
        (200, 3, "f8", 1, Factoring(methods=("ring",), pipeline=3)),
        (301, 2, "i4", 4, Factoring(methods=("tree.2",))),
        (64, 5, "f4", 16, Factoring(methods=("direct/1",), stripes=2)),
        (1, 1, "f4", 1, None),
        (300, 2, "f4", "model", None),
        (300, 1, "f8", "model", Factoring(methods=("tree.2",), stripes=2)),
    ]
):
    check(indices, width, dtype, coarsen, factoring, seed)

# Parts of a computation that overlap: several bound at once.
touched = np.arange(size * 10)
with SparseSum(comm, touched=touched, owned=(rank * 10, rank * 10 + 10)) as exchange:
    parts = [np.full((len(exchange.order), 1), number + rank, dtype="f4") for number in range(3)]
    sums = [np.zeros((len(exchange.mine), 1), dtype="f4") for _ in parts]
    bound = [exchange.bind(a, b) for a, b in zip(parts, sums, strict=True)]
    for one in bound:
        one.sum.start()
    for one in reversed(bound):
        one.sum.wait()
    for number, total in enumerate(sums):
        assert (total == number * size + size * (size - 1) / 2).all(), total
    for one in bound:
        one.free()
    try:
        exchange.bind(parts[0].astype("f8"), sums[0])
    except ComposeError as error:
        assert "are needed" in str(error)
    else:
        raise AssertionError("an array of the wrong type was bound")

for arguments, text in (
    ({"touched": touched, "owned": (0, 10)}, "owns indices from 0" if size > 1 else "outside of"),
    ({"touched": np.array([size * 10 + rank]), "owned": (rank * 10, rank * 10 + 10)}, "outside of"),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "width": 1 + rank}, "differs"),
    (
        {"touched": touched * 1.0 if rank == 0 else touched, "owned": (rank * 10, rank * 10 + 10)},
        "indices are integers" if rank == 0 else "another rank",
    ),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "dtype": ">f4"}, "byte order"),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "width": 2**32 + 1}, "width is"),
    ({"touched": touched, "owned": 7 if rank == 0 else (rank * 10, rank * 10 + 10)}, ""),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "coarsen": 0}, "coarsen: expected"),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "coarsen": "auto"}, "coarsen: expected"),
    ({"touched": touched, "owned": (rank * 10, rank * 10 + 10), "coarsen": 1 + rank}, "differs"),
):
    if size == 1 and text in ("differs", "outside of"):
        continue
    try:
        SparseSum(comm, **arguments)  # type: ignore[arg-type]
    except ComposeError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")
if rank == 0:
    print("right")
