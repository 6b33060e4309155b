"""What a recorded job would take with other algorithms, another placement of its ranks, or another network.

The trace is replayed (`_core.what_if`): what depends on what stays, and so does all computation; calls take what the
model says. Where it can tell the time of a call as it was, too, it scales what was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.map.methods import RankOrder, map_on_job
from palmette.map.pattern import pattern_of_messages
from palmette.record.causes import missing_dependency
from palmette.record.exchanges import Exchanges
from palmette.record.findings import trace_files
from palmette.record.functions import ENDS
from palmette.record.links import busiest_s
from palmette.record.machine import Limits, Seats, groups_of_ranks, is_exchange, mean_block, plain_collective
from palmette.record.reading import Job, RecordError
from palmette.record.sent import matrix_of
from palmette.record.sums import place_of
from palmette.record.symbols import Resolver, frames_of

PREDICTION_ERROR = 0.25
"""Predicted times are within this of nearly all that were measured (docs/guide/predict.md)."""
SCALES = (1.0, 1 - PREDICTION_ERROR, 1 + PREDICTION_ERROR)
MOST_ROWS = 8
MOST_PLACED = 4096
"""Ranks whose matrix of messages still fits into memory."""
LEAST_S = 1e-9
"""Bound in seconds of what crosses no link."""
MPI = "mpi"
"""Algorithm that stands for the MPI's own."""


@dataclass(frozen=True)
class Alternative:
    """What is to be different. All that isn't named stays."""

    force: Mapping[str, str] = field(default_factory=dict)
    """Collective -> algorithm."""
    table: _core.Table | None = None
    job: _core.Job | None = None
    """Where the ranks would be, and on which network."""


@dataclass(frozen=True)
class Row:
    """Calls of one function from one place, of all ranks together."""

    function: str
    place: str
    measured_s: float
    expected_s: float


@dataclass
class Expected:
    """What a job would take."""

    time_s: float
    """Run time as recorded."""
    expected_s: float
    range_s: tuple[float, float]
    rows: list[Row] = field(default_factory=list)
    """Rows whose time changes most."""
    ranks: list[tuple[int, float, float]] = field(default_factory=list)
    """(rank, time in MPI as recorded, as expected), those that gain most first."""
    notes: list[str] = field(default_factory=list)

    @property
    def gain(self) -> float:
        """Share of the run time that is saved; negative: it would take longer."""
        return 1 - self.expected_s / self.time_s if self.time_s > 0 else 0.0


def with_costs(job: Job, seats: Seats | None, which: str) -> Expected:
    """Replay with communication that takes no time (`ideal`), or what physics needs (`bound`). Raises RecordError."""
    if which == "bound" and (seats is None or not seats.has_rates):
        missing = f" (not of {', '.join(seats.without_rates)})" if seats and seats.is_known else ""
        raise RecordError(
            f"bounds need to know what all links of the run can carry{missing}; give --topology topology.json "
            "(`palmette discover` makes it, `palmette calibrate` measures its costs)"
        )
    try:
        found = _core.causes_of(trace_files(job), Limits(seats).seconds if seats else None)
    except _core.Error as error:
        raise RecordError(str(error)) from None
    _check(found)
    if which == "ideal" or seats is None:
        return _expected(found, [found.ideal])
    expected = _expected(found, [found.bound])
    if (busiest := min(busiest_s(trace_files(job), seats), expected.time_s)) > expected.expected_s:
        # Of single calls this says nothing.
        expected = Expected(expected.time_s, busiest, (busiest, busiest))
        expected.notes.append("that is what the fullest link needs for the program's own messages")
    return expected


def with_changes(job: Job, seats: Seats, wanted: Alternative, scales: Sequence[float] = SCALES) -> Expected:
    """Replay with other algorithms, places or links.

    `scales`: what predicted differences are multiplied by, a replay for each; the first is what is expected, all
    together are the range. Raises RecordError.
    """
    prices = _Prices(seats, wanted)
    files = trace_files(job)
    try:
        if wanted.job is not None and _has_exchanges(job):
            # Which exchanges share links is known only once all were seen.
            _core.what_if(files, prices.note_exchange, [], [1.0])
        messages = _message_prices(files, seats, wanted.job) if wanted.job else []
        found = _core.what_if(files, prices, messages, list(scales))
    except _core.Error as error:
        raise RecordError(str(error)) from None
    _check(found)
    expected = _expected(found, found.changed)
    expected.notes += prices.notes()
    return expected


def _has_exchanges(job: Job) -> bool:
    return any(is_exchange(one.function) for process in job.processes for one in process.recorded.aggregates)


def auto_placement(job: Job, seats: Seats) -> RankOrder:
    """Return the best order of the ranks on their own places for all that they sent. Raises RecordError.

    Cost: a search over the matrix of messages; of collectives that the MPI did it isn't known who sends to whom.
    """
    if job.size > MOST_PLACED:
        raise RecordError(f"placements are looked for up to {MOST_PLACED:,} ranks, not {job.size:,}; name one")
    if missing := job.missing_ranks():
        there = job.size - len(missing)
        raise RecordError(f"only {there} of {job.size} ranks are recorded: where they'd best be isn't known")
    found = matrix_of(job, job.size)
    if found is None or not found.bytes.any():
        raise RecordError("no message is recorded whose ends are known: no placement is better than another")
    sent = found.bytes
    rows = [(int(a), int(b), float(sent[a, b])) for a, b in zip(*sent.nonzero(), strict=True)]
    return map_on_job(seats.job, pattern_of_messages("recorded", job.size, rows), "auto")


def _check(found: _core.TraceWhatIf | _core.TraceCauses) -> None:
    if missing := missing_dependency(found):
        raise RecordError(f"this trace can't be replayed: {missing}")


def _expected(found: _core.TraceWhatIf | _core.TraceCauses, replays: Sequence[_core.TraceReplay]) -> Expected:
    """Return what replays say; the first is what is expected."""
    measured_s = found.measured.measured_s
    # What the replay with measured costs is off by, all are.
    off_s = abs(found.measured.time_s - measured_s)
    times = [one.time_s for one in replays]
    expected = Expected(measured_s, times[0], (max(0.0, min(times) - off_s), max(times) + off_s))
    by_place: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    by_rank: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    resolver = Resolver()
    resolver.add(frame for path in found.paths for frame in frames_of(path))
    places = [str(place_of(frames_of(path), resolver)) for path in found.paths]
    for row in replays[0].in_calls:
        function = found.functions[row.function]
        if function in ENDS:
            continue
        for sums in (by_place[function, places[row.path]], by_rank[found.ranks[row.process]]):
            sums[0] += row.measured_s
            sums[1] += row.replayed_s
    rows = [Row(*key, *sums) for key, sums in by_place.items() if abs(sums[1] - sums[0]) > 1e-3 * max(sums)]
    expected.rows = sorted(rows, key=lambda row: -abs(row.measured_s - row.expected_s))[:MOST_ROWS]
    ranks = [(rank, sums[0], sums[1]) for rank, sums in by_rank.items()]
    expected.ranks = sorted(ranks, key=lambda one: one[2] - one[1])
    return expected


class _Prices:
    """What collectives would take, asked for once for each kind."""

    def __init__(self, seats: Seats, wanted: Alternative) -> None:
        self._was = Limits(seats)
        self._wanted = wanted
        new = Seats(wanted.job, seats.network_levels, is_known=True) if wanted.job else seats
        self._now = Limits(new)
        self._kept: dict[str, dict[str, None]] = defaultdict(dict)
        self._alike: dict[str, None] = {}
        self._exchanges = Exchanges()
        self._whole = (new.job, seats.job)

    def __call__(
        self, function: str, ranks: Sequence[int], root: int, size: int, algorithm: str
    ) -> tuple[float, float, bool]:
        """Return what `_core.what_if` asks for."""
        as_it_was = (-1.0, 0.0, False)
        name = plain_collective(function)
        touched = self._wanted.job is not None or self._wanted.table is not None or name in self._wanted.force
        if not name or not touched:
            return as_it_was
        what = self._was.collective(function, ranks, size)
        if what is None and is_exchange(function):
            self._alike[function] = None
            what = "alltoall", mean_block(function, size, len(ranks))
        if what is None:
            return self._keep("blocks of different lengths", function, as_it_was)
        collective, block = what
        was, now = self._was.job_of(ranks), self._now.job_of(ranks)
        root = max(0, root)
        spec = self._spec(name, now, root, block, algorithm)
        if spec == MPI and algorithm:
            return self._keep("what the MPI's own algorithm would take isn't known", function, as_it_was)
        if spec == MPI:
            if self._wanted.job is None:
                return as_it_was
            # Which algorithm it is isn't known: as the bounds' ratio.
            if function in self._alike:
                bounds = [self._exchanges.seconds(one, function, ranks) for one in self._whole]
            else:
                bounds = [_core.bound(one, collective, block, root).seconds for one in (now, was)]
            if max(bounds) <= 0:
                return self._keep("how the MPI's own collectives travel isn't known", function, as_it_was)
            # Exchanges share their links with others, which bounds of one alone don't know.
            return max(LEAST_S, bounds[0]), max(LEAST_S, bounds[1]), function in self._alike
        if spec == algorithm and self._wanted.job is None:
            return as_it_was
        seconds = self._now.predicted_on(now, collective, spec, root, block)
        if seconds is None:
            return self._keep(f"{spec} can't be simulated here", function, as_it_was)
        was_s = self._was.predicted_on(was, collective, algorithm, root, block) if algorithm else None
        return seconds, was_s or 0.0, False

    def note_exchange(
        self, function: str, ranks: Sequence[int], root: int, size: int, algorithm: str
    ) -> tuple[float, float, bool]:
        """Note what the MPI exchanges with a count for each block; asked as prices are, and says: as measured."""
        if not algorithm and is_exchange(function):
            self._exchanges.add(function, ranks, mean_block(function, size, len(ranks)))
        return -1.0, 0.0, False

    def notes(self) -> list[str]:
        """Return what was assumed, and what keeps its time and why."""
        told = [f"{', '.join(self._alike)}: as if all blocks were as long as the mean"] if self._alike else []
        return told + [f"{', '.join(functions)}: {why}; as measured" for why, functions in self._kept.items()]

    def _keep(self, why: str, function: str, price: tuple[float, float, bool]) -> tuple[float, float, bool]:
        self._kept[why][function] = None
        return price

    def _spec(self, name: str, job: _core.Job, root: int, block: int, algorithm: str) -> str:
        if name in self._wanted.force:
            return self._wanted.force[name]
        if self._wanted.table is not None:
            return self._wanted.table.choose(name, job, root, block, compared=True).algorithm or MPI
        return algorithm or MPI


def _message_prices(
    files: Sequence[_core.TraceFile], seats: Seats, job: _core.Job
) -> list[tuple[int, int, float, float]]:
    """Return what one message between two ranks took by the model, and would take."""
    sent = _core.sent_messages(files)
    if not sent:
        return []
    columns = [np.array(column, dtype=np.float64) for column in zip(*sent, strict=True)]
    source, target = columns[0].astype(np.int64), columns[1].astype(np.int64)
    was, now = (_message_times(one, source, target, columns[2], columns[3]) for one in (seats.job, job))
    return list(zip(source.tolist(), target.tolist(), was.tolist(), now.tolist(), strict=True))


def _message_times(
    job: _core.Job,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    messages: NDArray[np.float64],
    whole: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the time of a message of each pair of ranks, with those of others on the same links besides.

    An edge's messages are assumed to travel together: those of a phase of the program.
    """
    known = {one.what: one.value for one in _core.Costs.of(job).assumptions(job)}
    side_by_side = "ranks side by side"
    latency = np.full(len(source), known.get(f"latency of {side_by_side}", 0.0))
    stream = known.get(f"stream of {side_by_side}", 0.0)
    each = whole / messages
    slowest = np.full(len(source), 1 / stream if stream > 0 else 0.0)
    # From the innermost level outwards: the outermost that tells two ranks apart has the last word on latency.
    for level, group_of in reversed(list(zip(job.levels, groups_of_ranks(job), strict=True))):
        groups = np.array(group_of)
        out, into = groups[source], groups[target]
        crosses = out != into
        if not crosses.any():
            continue
        latency[crosses] = known.get(f"latency of {level.name}", 0.0)
        rates = np.array(level.up_bytes_per_s) * (1 - np.array(level.load))
        if level.name == "node":
            slowest[crosses] = 0.0
        for ends in (out, into):
            bytes_of = np.bincount(ends[crosses], whole[crosses], level.count)
            pairs = np.bincount(ends[crosses], minlength=level.count)
            rate = rates[ends]
            busy = np.minimum(bytes_of[ends] / np.maximum(whole, 1.0), pairs[ends])
            took = np.divide(busy, rate, out=np.zeros(len(source)), where=(rate > 0) & crosses)
            slowest = np.maximum(slowest, took)
    found: NDArray[np.float64] = latency + each * slowest
    return found
