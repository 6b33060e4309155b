"""The physical bound of a call beside background traffic: its links had to carry what that traffic sent meanwhile as well.

Traffic that others send is not for the collective to avoid, and how much of it gets through depends on how links are shared.
So the bound of a loaded call is taken after the call: over each link and direction that the collective must cross, its own
bytes (docs/guide/bound.md) and those that the traffic's processes sent over it from the call's start to its end, over the
link's capacity. No plan could have moved both sooner. What a process sends may be under way for a while (16 KB at most),
in the call's time or after it: single calls are off by that, medians hardly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from palmette import _core
from palmette.bench.limits import bounded_as
from palmette.bench.results import Cell
from palmette.topology_model import TreeNode

Seconds = npt.NDArray[np.float64]

_ENTRY = np.dtype([("time_s", "f8"), ("peer", "u4"), ("bytes", "u4")])
"""A send, as palmette-lab-traffic logs it."""


@dataclass(frozen=True)
class Sends:
    """Some of the traffic's sends in the order of time: when each was, and the bytes of all until then."""

    time_s: Seconds
    bytes_until: Seconds

    @staticmethod
    def of(time_s: Seconds, sizes: npt.NDArray[Any]) -> Sends:
        """From sends in any order."""
        order = np.argsort(time_s, kind="stable")
        return Sends(time_s[order], np.concatenate([[0.0], np.cumsum(sizes[order], dtype=np.float64)]))

    def between(self, begin_s: Seconds, end_s: Seconds) -> Seconds:
        """Return the bytes sent in each of these stretches of time."""
        until = [self.bytes_until[np.searchsorted(self.time_s, at)] for at in (begin_s, end_s)]
        return np.asarray(until[1] - until[0], dtype=np.float64)


@dataclass(frozen=True)
class TrafficLog:
    """All sends of the traffic's processes, as far back as each remembers: source, target and bytes of each.

    `since_s`: what was sent before may be forgotten.
    """

    hosts: Sequence[str]
    time_s: Seconds
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    since_s: float

    def over(self, below: set[str]) -> tuple[Sends, Sends]:
        """Return what left the group of these hosts, and what came into it."""
        inside = np.array([host in below for host in self.hosts], dtype=bool)
        from_inside, to_inside = inside[self.source], inside[self.target]
        chosen = (from_inside & ~to_inside, ~from_inside & to_inside)
        out, into = (Sends.of(self.time_s[which], self.sizes[which]) for which in chosen)
        return out, into


def read_log(files: Sequence[Path], hosts: Sequence[str]) -> TrafficLog:
    """Read what the processes on `hosts` have logged so far, while they go on."""
    found: list[npt.NDArray[Any]] = []
    since_s = 0.0
    numbers = len(hosts) + 1
    for path in files:
        entries = np.memmap(path, dtype=_ENTRY, mode="r", offset=8 * numbers)
        with path.open("rb") as file:
            (sends,) = struct.unpack("=Q", file.read(8 * numbers)[-8:])
        kept = np.array(entries[: min(sends, len(entries))])
        if sends >= len(entries):
            since_s = max(since_s, float(kept["time_s"].min()))
        found.append(kept)
    everything = np.concatenate(found) if found else np.empty(0, dtype=_ENTRY)
    source = np.repeat(np.arange(len(found)), [len(one) for one in found])
    return TrafficLog(
        hosts,
        everything["time_s"].astype(np.float64),
        source.astype(np.int64),
        everything["peer"].astype(np.int64),
        everything["bytes"].astype(np.int64),
        since_s,
    )


def put_bounds(
    topology: dict[str, Any], tree: TreeNode, hosts: Sequence[str], cells: Iterable[Cell], log: TrafficLog
) -> None:
    """Give each call of `cells` its bound beside the traffic; None where the log doesn't reach back to it.

    `hosts` by rank; `tree`: the machine's. Raises _core.Error for a host that the topology doesn't have.
    """
    job = _core.Job.on_hosts(_core.Machine.from_json(topology), list(hosts))
    hosts_below = {group.name: {host.name for host in group.hosts()} for group in tree.walk()}
    sends: dict[str, tuple[Sends, Sends]] = {}
    for cell in cells:
        edges = []
        for edge in _edges(job, cell):
            if edge.name in hosts_below:
                if edge.name not in sends:
                    sends[edge.name] = log.over(hosts_below[edge.name])
                edges.append((edge, *sends[edge.name]))
        cell.alone_bound_s = _bounds(cell, cell.alone_start_s, cell.alone_s, edges, log.since_s)
        cell.palmette_bound_s = _bounds(cell, cell.palmette_start_s, cell.palmette_s, edges, log.since_s)


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
    edges: Sequence[tuple[_core.EdgeTerm, Sends, Sends]],
    since_s: float,
) -> list[float | None]:
    """The largest over all links, and never below the bound of the empty network."""
    if len(start_s) != len(time_s):
        return []
    begin = np.array(start_s, dtype=np.float64)
    end = begin + np.array(time_s, dtype=np.float64)
    least = np.full(len(begin), cell.bound.seconds if cell.bound else 0.0)
    for edge, out, into in edges:
        for needed, traffic in ((edge.bytes_out, out), (edge.bytes_in, into)):
            if needed:
                least = np.maximum(least, (needed + traffic.between(begin, end)) / edge.capacity_bytes_per_s)
    return [float(bound) if first >= since_s and bound > 0 else None for bound, first in zip(least, begin, strict=True)]
