"""The physical bound of a call under background traffic (loaded bound): its links also had to carry the other traffic.

A collective can't avoid the traffic of others, and how much of it gets through depends on how links are shared. So the
bound of a loaded call is computed after the call. For each link and direction that the collective must cross it adds

- the bytes that must cross it (docs/guide/bound.md), and
- the bytes that the interface counted between the call's start and end, less those that the call itself sent,

and divides by the link's capacity: no plan could have moved both in less time. The bytes that a call sends over each
link are counted in the quiet job of the same MPI and placement, or, where palmette takes another algorithm under load,
in its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from palmette import _core
from palmette.bench.limits import bounded_as
from palmette.bench.results import Cell, OwnBytes, OwnTraffic
from palmette.measure.links import LinkLog
from palmette.units import PAYLOAD_SHARE

Numbers = npt.NDArray[np.float64]

COUNTER_PERIOD_S = 2e-3
"""Sampling period of the links' counters; bytes are interpolated linearly between samples."""

_TAIL_S = 3e-3
"""The last frames and acknowledgements may follow a call's end by this much; the next call begins later."""


def count_own_bytes(cell: Cell, algorithm: str | None, log: LinkLog) -> OwnTraffic | None:
    """Return the median bytes per link over the calls of a quiet cell; None where their start times aren't known."""
    if not cell.alone_s or len(cell.alone_start_s) != len(cell.alone_s):
        return None
    found: list[OwnBytes] = []
    for start_s, time_s in ((cell.alone_start_s, cell.alone_s), (cell.palmette_start_s, cell.palmette_s)):
        begin = np.array(start_s, dtype=np.float64)
        end = begin + np.array(time_s, dtype=np.float64) + _TAIL_S
        of_group = {group: log.between(group, begin, end) for group in log.out}
        found.append(
            {group: (float(np.median(out)), float(np.median(into))) for group, (out, into) in of_group.items()}
        )
    return OwnTraffic(found[0], found[1], algorithm)


def planned_bytes(job: _core.Job, cell: Cell, algorithm: str) -> OwnBytes | None:
    """Return the bytes that an algorithm's plan sends over each link; None where there is no plan, or none for
    blocks of different lengths.
    """
    collective, blocks = bounded_as(cell.collective), cell.block_bytes
    try:
        plan = _core.Plan(
            job, collective, algorithm, cell.root, -1 if blocks else cell.size_bytes, shared_memory=not blocks
        )
        if blocks and plan.space != "per_rank":
            return None
        counted = plan.count([blocks[plan.owner_of(index)] for index in range(job.size)] if blocks else None)
    except _core.Error:
        return None
    return {
        name: (link.bytes_out / PAYLOAD_SHARE, link.bytes_in / PAYLOAD_SHARE)
        for level, of_level in zip(job.levels, counted.levels, strict=True)
        for name, link in zip(level.names, of_level.links, strict=True)
    }


def set_loaded_bounds(
    job: _core.Job,
    cells: Iterable[Cell],
    log: LinkLog,
    own_of: Callable[[Cell], OwnTraffic | None],
    algorithm_of: Callable[[Cell], str | None],
) -> None:
    """Set the loaded bound of each call of loaded `cells`; None where it can't be computed.

    `own_of`: bytes that the quiet calls sent. `algorithm_of`: the algorithm that palmette takes under load.
    """
    for cell in cells:
        own, algorithm = own_of(cell), algorithm_of(cell)
        palmette = own.palmette if own else None
        if own is None or own.algorithm != algorithm:
            palmette = planned_bytes(job, cell, algorithm) if algorithm else None
        edges = _edges(job, cell)
        alone = own.alone if own else None
        cell.alone_bound_s = _bounds(cell, cell.alone_start_s, cell.alone_s, edges, alone, log)
        cell.palmette_bound_s = _bounds(cell, cell.palmette_start_s, cell.palmette_s, edges, palmette, log)


def _edges(job: _core.Job, cell: Cell) -> list[_core.EdgeTerm]:
    """The links that the cell's collective must cross and whose capacity is known."""
    blocks = cell.block_bytes or cell.size_bytes
    found = [
        edge
        for level in range(len(job.levels))
        for edge in _core.bound_edges(job, bounded_as(cell.collective), blocks, level, cell.root)
    ]
    return [edge for edge in found if edge.capacity_bytes_per_s > 0 and (edge.bytes_out or edge.bytes_in)]


def _bounds(
    cell: Cell,
    start_s: Sequence[float],
    time_s: Sequence[float],
    edges: Sequence[_core.EdgeTerm],
    own: OwnBytes | None,
    log: LinkLog,
) -> list[float | None]:
    """The maximum over all links, at least the bound of the empty network; an empty list where it can't be computed."""
    if own is None or len(start_s) != len(time_s):
        return []
    begin = np.array(start_s, dtype=np.float64)
    end = begin + np.array(time_s, dtype=np.float64)
    least = np.full(len(begin), cell.bound.seconds if cell.bound else 0.0)
    for edge in edges:
        if edge.name not in log.out or edge.name not in own:
            continue
        line_bytes_per_s = edge.capacity_bytes_per_s / PAYLOAD_SHARE
        needed = (edge.bytes_out, edge.bytes_in)
        for must, carried, mine in zip(needed, log.between(edge.name, begin, end), own[edge.name], strict=True):
            if must:
                others = np.maximum(carried - mine, 0.0)
                least = np.maximum(least, must / edge.capacity_bytes_per_s + others / line_bytes_per_s)
    return [float(bound) if np.isfinite(bound) and bound > 0 else None for bound in least]
