"""The physical bound of a cell, from the C++ core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palmette import _core
from palmette.bench.results import Cell, Limit
from palmette.bench.settings import NONBLOCKING
from palmette.bound.reason import reason

_SHARED = {
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "reduce_scatter_block": "reduce_scatter",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
}
"""The collectives whose bound is that of another one."""


def bounded_as(collective: str) -> str:
    """Return the core's collective whose bound holds for a row of collbench: `ialltoall`, `alltoallv` -> `alltoall`."""
    blocking = collective.removeprefix("i") if collective in NONBLOCKING else collective
    return _SHARED.get(blocking, blocking)


def limits(topology: dict[str, Any], hosts: Sequence[str], cells: Sequence[Cell]) -> list[Limit | None]:
    """Return the bound of each cell for ranks on `hosts`; None where nothing bounds it.

    Raises _core.Error for a host that the topology doesn't have.
    """
    job = _core.Job.on_hosts(_core.Machine.from_json(topology), list(hosts))
    return [_limit(job, cell) for cell in cells]


def network_limit(job: _core.Job, cell: Cell) -> Limit | None:
    """Return the bound of a cell where the job's aggregators reduce on the way; None where none serves it."""
    collective = bounded_as(cell.collective)
    if not job.aggregators or not any(row.in_network and row.collective == collective for row in _core.algorithms()):
        return None
    bound = _core.bound(job, collective, cell.block_bytes or cell.size_bytes, cell.root, in_network=True)
    return Limit(bound.seconds, reason(bound)) if bound.seconds > 0 else None


def _limit(job: _core.Job, cell: Cell) -> Limit | None:
    bound = _core.bound(job, bounded_as(cell.collective), cell.block_bytes or cell.size_bytes, cell.root)
    return Limit(bound.seconds, reason(bound)) if bound.seconds > 0 else None
