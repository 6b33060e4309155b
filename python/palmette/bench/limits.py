"""The physical bound of a cell, from the C++ core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palmette import _core
from palmette.bench.results import Cell, Limit

_BOUNDED = {
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "allgather": "allgather",
    "allgatherv": "allgather",
}


def limits(topology: dict[str, Any], hosts: Sequence[str], cells: Sequence[Cell]) -> list[Limit | None]:
    """Return the bound of each cell for ranks on `hosts`; None where nothing bounds it, or it isn't known yet how.

    Raises _core.Error for a host that the topology doesn't have.
    """
    job = _core.Job.on_hosts(_core.Machine.from_json(topology), list(hosts))
    return [_limit(job, cell) for cell in cells]


def _limit(job: _core.Job, cell: Cell) -> Limit | None:
    collective = _BOUNDED.get(cell.collective)
    if collective is None:
        return None
    bound = _core.bound(job, collective, cell.block_bytes or cell.size_bytes, cell.root)
    return Limit(bound.seconds, _reason(bound)) if bound.seconds > 0 else None


def _reason(bound: _core.Bound) -> str:
    if bound.kind == "latency":
        return f"latency of level {bound.level}"
    rate = _core.format_rate(bound.capacity_bytes_per_s)
    if bound.kind == "links":
        return f"{bound.bytes} bytes over all links of level {bound.level}, {rate} together"
    way = "out of" if bound.outwards else "into"
    return f"{bound.bytes} bytes {way} {bound.group_name or f'{bound.level} {bound.group}'} at {rate}"
