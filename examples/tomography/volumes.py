"""How many bytes cross between hosts, leaves and so on: counted, not measured."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.compose import Composition
from palmette.compose.factoring import Factoring

Indices = NDArray[np.int64]
Volumes = dict[str, dict[str, int]]
"""Level -> bytes that leave its groups in a `sum`, and in a `spread`."""


def ranks_a_host(job: _core.Job) -> int:
    """Return how many ranks a host has; where they differ, the fullest one."""
    node = job.level("node")
    groups = [node.group_of(position) for position in range(job.size)] if node else [0] * job.size
    return max(Counter(groups).values())


def levels_of(job: _core.Job) -> list[_core.JobLevel]:
    """Return the levels with several groups, from the outermost one down to hosts."""
    names = [level.name for level in job.levels]
    outer = job.levels[: names.index("node") + 1] if "node" in names else []
    return [level for level in outer if level.count > 1]


def of_allreduce(job: _core.Job, size: int) -> Volumes:
    """Return the least that any algorithm takes, since the MPI chooses it: each group but one sends, and gets, all."""
    return {level.name: {"sum": 2 * (level.count - 1) * size, "spread": 0} for level in levels_of(job)}


def of_messages(job: _core.Job, sizes: NDArray[np.int64]) -> Volumes:
    """Count messages of sizes[sender, receiver]; the spread's go the other way."""
    out: Volumes = {}
    for level in levels_of(job):
        group = np.array([level.group_of(job.position_of(rank)) for rank in range(job.size)])
        crossing = int(sizes[group[:, None] != group].sum())
        out[level.name] = {"sum": crossing, "spread": crossing}
    return out


def of_sparse_sum(
    job: _core.Job, rows: list[Indices], bounds: Indices, row_bytes: int, factoring: Factoring | None
) -> Volumes:
    """Count the plans of all ranks, made here once more from the rows that each contributes to.

    SparseSum plans rank by rank; this takes memory and time for all of them.
    """
    touched = np.zeros((job.size, bounds[-1]), dtype=bool)
    for rank, some in enumerate(rows):
        touched[rank, some] = True
    used = np.flatnonzero(touched.any(axis=0))
    owner = np.searchsorted(bounds, used, side="right") - 1
    sets = np.packbits(touched[:, used], axis=0).T
    blocks = Counter(zip(owner.tolist(), map(bytes, sets), strict=True))
    out: Volumes = {level.name: {} for level in levels_of(job)}
    for what in ("sum", "spread"):
        composition = Composition(
            job.size, bytes=[rays * row_bytes for rays in blocks.values()], element_bytes=row_bytes
        )
        partial, mine = composition.buffer("partial"), composition.buffer("mine")
        for number, (root, packed) in enumerate(blocks):
            members = np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8), count=job.size)).tolist()
            if what == "sum":
                composition.reduce(members, root, partial[number], mine)
            else:
                composition.multicast(root, members, mine[number], partial)
        for level in (factoring or Factoring()).plan(composition, job).count().levels:
            if level.level in out:
                out[level.level][what] = level.bytes
    return out
