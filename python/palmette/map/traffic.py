"""Link loads of a communication pattern under a given rank order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palmette import _core
from palmette.map.pattern import Floats, Ints, Pattern

Order = Sequence[int]
"""order[r]: the place of rank r, which is where rank order[r] of the placement sits."""


@dataclass(frozen=True)
class LevelTraffic:
    """Bytes over the edges of one level's groups."""

    name: str
    groups: tuple[str, ...]
    out: Floats
    """Bytes that leave each group."""
    into: Floats
    capacity: Floats
    """Bytes per second and direction; 0: unknown."""

    @property
    def busier(self) -> Floats:
        """The larger of both directions, by group."""
        return np.maximum(self.out, self.into)

    @property
    def total(self) -> float:
        """Bytes that cross the level, each message once."""
        return float(self.out.sum())


@dataclass(frozen=True)
class BottleneckLink:
    """The bottleneck link: the one that takes longest, or carries most bytes where no capacity is known."""

    level: str
    group: str
    bytes: float
    outwards: bool
    seconds: float | None
    """None: no capacity is known."""


@dataclass(frozen=True)
class Traffic:
    """The loads of all links."""

    levels: tuple[LevelTraffic, ...]
    """Down to hosts, outermost first."""
    hop_bytes: float
    """Hop-bytes: bytes times the edges of the tree on their path, those inside of hosts included."""
    busiest: BottleneckLink | None
    """None: nothing leaves a host."""

    @property
    def cost(self) -> tuple[float, float]:
        """The objective to minimise: the busiest link's time (or bytes), then hop-bytes."""
        if self.busiest is None:
            return 0.0, self.hop_bytes
        return (self.busiest.bytes if self.busiest.seconds is None else self.busiest.seconds), self.hop_bytes


def count_traffic(job: _core.Job, pattern: Pattern, order: Order) -> Traffic:
    """Count the bytes over every link of the job when rank r takes the place order[r].

    A link of unknown capacity counts as the fastest known one; a loaded link with its residual capacity. O(messages
    x levels).
    """
    positions = np.array([job.position_of(place) for place in order], dtype=np.int64)
    source, target = positions[pattern.source], positions[pattern.target]
    levels: list[LevelTraffic] = []
    hop_bytes = 0.0
    inside = False
    for level in job.levels:
        group_of = groups_of_positions(level)
        a, b = group_of[source], group_of[target]
        crosses = a != b
        hop_bytes += 2 * float(pattern.bytes[crosses].sum())
        if not inside:
            out = np.bincount(a[crosses], weights=pattern.bytes[crosses], minlength=level.count).astype(np.float64)
            into = np.bincount(b[crosses], weights=pattern.bytes[crosses], minlength=level.count).astype(np.float64)
            free = np.array(level.up_bytes_per_s) * (1 - np.array(level.load))
            levels.append(LevelTraffic(level.name, tuple(level.names), out, into, free))
        inside = inside or level.name == "node"
    return Traffic(tuple(levels), hop_bytes, _busiest(levels))


def groups_of_positions(level: _core.JobLevel) -> Ints:
    """Return the group of each position."""
    return np.repeat(np.arange(level.count, dtype=np.int32), level.sizes)


def _busiest(levels: Sequence[LevelTraffic]) -> BottleneckLink | None:
    fastest = max((float(level.capacity.max()) for level in levels), default=0.0)
    found: tuple[float, BottleneckLink] | None = None
    for level in levels:
        capacity = np.where(level.capacity > 0, level.capacity, fastest if fastest > 0 else 1.0)
        seconds = level.busier / capacity
        group = int(seconds.argmax())
        if seconds[group] > 0 and (found is None or seconds[group] > found[0]):
            outwards = bool(level.out[group] >= level.into[group])
            time = float(seconds[group]) if fastest > 0 else None
            link = BottleneckLink(level.name, level.groups[group], float(level.busier[group]), outwards, time)
            found = float(seconds[group]), link
    return None if found is None else found[1]
