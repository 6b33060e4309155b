"""Data model of benchmark results: a run has jobs, a job has cells, a cell has samples. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["measure", "floor", "pass_through", "rival"]
"""floor: measured with the lab's link rates off. pass_through: loops of calls that palmette leaves to the MPI, no
cells. rival: an MPI with settings of its own, without palmette."""

LOADED = " loaded"
"""Suffix of the placement where background traffic ran."""


@dataclass(frozen=True)
class Limit:
    """The physical bound of a cell and what sets it, as a sentence."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class Overlap:
    """Share of a nonblocking call's time, 0 to 1, that was overlapped with a computation of `computed_s` seconds."""

    computed_s: float
    alone: float
    palmette: float


OwnBytes = dict[str, tuple[float, float]]
"""Bytes, frame headers included, that a call sends over the link of each group, out of it and into it."""


@dataclass(frozen=True)
class OwnTraffic:
    """Bytes that calls of a cell send over each link, under the MPI alone and with palmette, and its algorithm."""

    alone: OwnBytes
    palmette: OwnBytes
    algorithm: str | None


@dataclass(frozen=True)
class PassThrough:
    """A call that palmette leaves to the MPI, timed in alternating loops of `calls` calls: the MPI alone, and through
    palmette.

    The lists have one entry per pair of loops: nanoseconds per call on rank 0. `where`: communicator and size.
    """

    function: str
    where: str
    calls: int
    alone_ns: list[float]
    palmette_ns: list[float]


@dataclass(frozen=True)
class EdgeLoad:
    """Utilisation of the link between a group and its parent, as shares of its capacity, out of the group and into it.

    `up`, `down`: all traffic, by the counters of its interface. `traffic_up`, `traffic_down`: that of the background
    processes, by their own counters.
    """

    name: str
    level: str
    up: float
    down: float
    traffic_up: float
    traffic_down: float

    @property
    def share(self) -> float:
        """Load by the background traffic in the fuller direction, 0 to 1."""
        return min(1.0, max(self.traffic_up, self.traffic_down))


@dataclass
class Cell:
    """The samples of one collective and size in one job.

    The lists have one entry per pair: the time of the call under the MPI alone and with palmette, from the common start
    to the last rank's end; how late the latest rank started; and whether palmette's call came first. `wrong_*`: number
    of ranks with a wrong result, summed over the checks. `block_bytes`, where blocks differ: by rank, or by sender and
    receiver. `*_start_s`: the common starts by CLOCK_MONOTONIC, empty where ranks don't share it; not stored.
    `*_bound_s`: under background traffic, each call's loaded bound (loaded_bounds.py); else empty. `own`: of a quiet
    cell whose loaded one comes next, the bytes that its calls send over the links; not stored either.
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
    own: OwnTraffic | None = field(default=None, compare=False)


@dataclass
class Job:
    """One mpiexec: an MPI (or a rival) and a placement, all collectives and sizes. `mpi` of a variant is `MPI/VARIANT`.

    `hosts` by rank, as the ranks report them. `error` is one line when the job failed; the cells that it finished are
    kept. `palmette_ranks`: on how many ranks the preload was loaded. `report` is what it wrote at the end
    (PALMETTE_REPORT). `traffic`: what ran in the background, and `load` the link utilisation while the job measured.
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
    """One benchmark. `started` is UTC, ISO 8601; `topology` is the topology.json; `id` is None until it is stored."""

    started: str
    machine: dict[str, Any]
    place: str
    settings: dict[str, Any]
    topology: dict[str, Any] | None = None
    jobs: list[Job] = field(default_factory=list)
    id: int | None = None
