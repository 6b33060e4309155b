"""Where a job's time in MPI goes: calls summed over ranks, by function and the place that they are called from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from palmette.record.limits import limits_of
from palmette.record.reading import Job
from palmette.record.symbols import (
    CYTHON,
    INTERPRETER,
    MPI_MODULES,
    PYTHON,
    STARTS,
    FrameLike,
    Place,
    Resolver,
    cython_name,
)

COST_SHARE, COST_S = 0.01, 1.0
"""The share of all ranks' time, and the seconds, from which on it is said that finding call paths took it."""


@dataclass
class Row:
    """All calls of one function from one place, by all ranks."""

    function: str
    place: Place
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    by_rank_s: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def ranks(self) -> int:
        """How many ranks made such a call."""
        return len(self.by_rank_s)

    @property
    def slowest(self) -> tuple[int, float]:
        """The rank that spent most time there, and that time."""
        rank = max(self.by_rank_s, key=lambda one: self.by_rank_s[one])
        return rank, self.by_rank_s[rank]


@dataclass
class Sums:
    """Rows by time, most first, and what they are shares of."""

    rows: list[Row]
    in_mpi_s: float
    """Seconds of all ranks in MPI."""
    ran_s: float
    """Seconds from a process's first moment in the recorder to its last, of all ranks together."""
    calls: int
    call_cost_s: float
    """Seconds to record one call, median of the processes; each has measured it at its start."""
    clock_cost_s: float
    """Part of call_cost_s that reads the clock twice."""
    notes: list[str]

    @property
    def share(self) -> float | None:
        """Share of the ranks' time in MPI, 0 to 1; None where a rank's threads were in it at the same time."""
        return self.in_mpi_s / self.ran_s if self.ran_s > 0 and self.in_mpi_s <= self.ran_s else None


def sums_of(job: Job) -> Sums:
    """Sum a job's calls. Cost: O(aggregates of all processes), and a reading of each module on a call path."""
    resolver = Resolver()
    resolver.add(frame for process in job.processes for path in process.recorded.paths for frame in path)
    rows: dict[tuple[str, Place], Row] = {}
    in_mpi_s = ran_s = 0.0
    calls = 0
    for process in job.processes:
        recorded = process.recorded
        ran_s += max(0, recorded.last_real_ns - recorded.begin_real_ns) * 1e-9
        places = [place_of(path, resolver) for path in recorded.paths]
        for one in recorded.aggregates:
            if one.is_request:  # from start to completion, which overlaps with everything
                continue
            place = places[one.path] if one.path < len(places) else Place("unknown")
            row = rows.setdefault((one.function, place), Row(one.function, place))
            row.calls += one.calls
            row.bytes += one.bytes
            row.seconds += one.seconds
            row.longest_s = max(row.longest_s, one.longest_s)
            row.by_rank_s[recorded.rank] += one.seconds
            in_mpi_s += one.seconds
            calls += one.calls
    recordings = [process.recorded for process in job.processes]
    notes = [*resolver.notes, *limits_of(recordings, sums=True, communicators=False)]
    notes += job.notes()
    unwinding_s = sum(process.recorded.unwinding_s for process in job.processes)
    if ran_s > 0 and unwinding_s > max(COST_S, COST_SHARE * ran_s):
        unwound = sum(process.recorded.unwound for process in job.processes)
        notes.append(
            f"recording also took {unwinding_s / ran_s:.1%} of all ranks' time to find the call paths of {unwound:,} "
            "calls, which is in no call's time (PALMETTE_CALL_PATHS=0 leaves them out)"
        )
    measured = [one.recorded for one in job.processes if one.recorded.call_cost_s > 0]
    return Sums(
        sorted(rows.values(), key=lambda row: -row.seconds), in_mpi_s, ran_s, calls,
        median(one.call_cost_s for one in measured) if measured else 0.0,
        median(one.clock_cost_s for one in measured) if measured else 0.0,
        notes,
    )  # fmt: skip


def _leads_from_python(frame: FrameLike) -> bool:
    """Whether a frame is on the way from a line of Python to the MPI: mpi4py, ctypes, the interpreter itself."""
    folder, _, name = frame.module.rpartition("/")
    return folder.endswith("/mpi4py") or name.startswith(("libffi", "_ctypes.", "libpython3", "python3"))


def place_of(path: Sequence[FrameLike], resolver: Resolver) -> Place:
    """Return the innermost place of a path outside of MPI libraries: where the program, or a library of it, calls.

    In a stripped module local functions have no name: then it is the innermost of that module that has one, else its
    address.
    """
    outside = [frame for frame in path if not frame.module.rpartition("/")[2].startswith(MPI_MODULES)]
    python = next((i for i, frame in enumerate(outside) if frame.module.startswith(PYTHON)), None)
    if python is not None and all(_leads_from_python(frame) for frame in outside[:python]):
        outside = outside[python:]
    if not outside:
        return Place("unknown")
    if CYTHON.match(resolver.places(outside[0])[0].function):
        return _of_cython(outside, resolver)
    inside = outside[0]
    known = next((frame for frame in outside if resolver.knows(frame)), inside)
    if known is inside or known.module != inside.module:
        return resolver.places(inside)[0]
    return replace(resolver.places(known)[0], line=0, is_outer=True)


def _of_cython(outside: Sequence[FrameLike], resolver: Resolver) -> Place:
    """Return the function of a module of Cython's that Python calls: mpi4py's `Comm.Allreduce`."""
    found = resolver.places(outside[0])[0]
    for frame in outside:
        place = resolver.places(frame)[0]
        if frame.module != outside[0].module or not CYTHON.match(place.function):
            break
        if (name := cython_name(place.function)) != place.function:
            found = Place(name)
    return found


def told(path: Sequence[FrameLike], resolver: Resolver) -> list[Place]:
    """Return the places of a path outside of MPI, the innermost first, as a picture shows them.

    Where there are frames of Python's, those of the interpreter and of Cython's own functions stand for nothing else.
    """
    inner = list(path)
    while inner and inner[0].module.rpartition("/")[2].startswith(MPI_MODULES):
        inner = inner[1:]
    places = [(frame, place) for frame in inner for place in resolver.places(frame)]
    if not any(frame.module.startswith(PYTHON) for frame in path):
        return [place for _, place in places]
    found = []
    for frame, place in places:
        if INTERPRETER.match(frame.module.rpartition("/")[2]) or STARTS.fullmatch(place.function):
            continue
        name = cython_name(place.function)
        if not CYTHON.match(name):
            found.append(replace(place, function=name))
    return found
