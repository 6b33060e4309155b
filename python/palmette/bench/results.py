"""What a benchmark brings: runs of jobs of cells of samples. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["measure", "floor", "pass_through", "rival"]
"""floor: measured with the lab's link rates off. pass_through: loops of calls that palmette leaves to the MPI, no
cells. rival: an MPI with settings of its own, without palmette."""

LOADED = " loaded"
"""Follows the placement where background traffic ran."""


@dataclass(frozen=True)
class Limit:
    """The physical bound of a cell and what sets it, as a sentence."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class Overlap:
    """How much of a nonblocking call's own time was hidden behind a computation of `computed_s` seconds, 0 to 1."""

    computed_s: float
    alone: float
    palmette: float


OwnBytes = dict[str, tuple[float, float]]
"""Bytes, frames counted, that a call sends over the link of each group, out of it and into it."""


@dataclass(frozen=True)
class Own:
    """What calls of a cell send over each link, under the MPI alone and with palmette, and which algorithm that took."""

    alone: OwnBytes
    palmette: OwnBytes
    algorithm: str | None


@dataclass(frozen=True)
class PassThrough:
    """A call in loops of `calls` calls, in turns as the MPI alone and through palmette, which leaves it to the MPI.

    The lists have one entry a pair of loops: nanoseconds a call on rank 0. `where`: communicator and size.
    """

    function: str
    where: str
    calls: int
    alone_ns: list[float]
    palmette_ns: list[float]


@dataclass(frozen=True)
class EdgeLoad:
    """How full the link between a group and its parent was, as shares of its capacity, out of the group and into it.

    `up`, `down`: everything on it, by the counters of its interface. `traffic_up`, `traffic_down`: what the
    background processes sent over it, by their own counters.
    """

    name: str
    level: str
    up: float
    down: float
    traffic_up: float
    traffic_down: float

    @property
    def share(self) -> float:
        """What the traffic took of the fuller direction, 0 to 1."""
        return min(1.0, max(self.traffic_up, self.traffic_down))


@dataclass
class Cell:
    """The samples of one collective and size in one job.

    The lists have one entry a pair: the time of the call under the MPI alone and with palmette, from the common start to the
    last rank's end; how late the latest rank started; and whether palmette's call came first. `wrong_*`: on how many ranks a
    result was wrong, summed over the checks. `block_bytes`, where blocks differ: by rank, or by sender and receiver.
    `*_start_s`: the common starts by CLOCK_MONOTONIC, empty where ranks don't share it; not kept in the store.
    `*_bound_s`: beside background traffic, each call's own bound (beside_traffic.py); else empty. `own`: of a quiet cell
    whose loaded one comes next, what its calls send over the links; not kept in the store either.
    """

    collective: str
    size_bytes: int
    root: int
    wrong_alone: int
    wrong_palmette: int
    window_s: float
    palmette_first: list[bool]
    alone_s: list[float]
    palmette_s: list[float]
    alone_late_s: list[float]
    palmette_late_s: list[float]
    block_bytes: list[int] | None = None
    bound: Limit | None = None
    overlap: Overlap | None = None
    alone_start_s: list[float] = field(default_factory=list, compare=False)
    palmette_start_s: list[float] = field(default_factory=list, compare=False)
    alone_bound_s: list[float | None] = field(default_factory=list)
    palmette_bound_s: list[float | None] = field(default_factory=list)
    own: Own | None = field(default=None, compare=False)


@dataclass
class Job:
    """One mpiexec: an MPI (or a rival) and a placement, all collectives and sizes.

    `hosts` by rank, as the ranks say. `error` is one line when the job failed; the cells that it finished are kept.
    `palmette_ranks`: on how many ranks the preload was loaded. `report` is what it wrote at the end
    (PALMETTE_REPORT). `traffic`: what ran in the background, and `load` what that did to the links while the job
    measured.
    """

    mpi: str
    mpi_version: str
    placement: str
    repeat: int
    kind: Kind
    hosts: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None
    palmette_ranks: int = 0
    report: dict[str, Any] | None = None
    cells: list[Cell] = field(default_factory=list)
    passes: list[PassThrough] = field(default_factory=list)
    traffic: str | None = None
    load: list[EdgeLoad] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The placement, and whether background traffic ran."""
        return self.placement + (LOADED if self.traffic else "")


@dataclass
class Run:
    """A whole benchmark. `started` is UTC, ISO 8601; `topology` is the topology.json; `id` is None until it is stored."""

    started: str
    machine: dict[str, Any]
    place: str
    settings: dict[str, Any]
    topology: dict[str, Any] | None = None
    jobs: list[Job] = field(default_factory=list)
    id: int | None = None
