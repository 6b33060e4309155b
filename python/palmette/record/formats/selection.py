"""What of a recording is converted: some ranks, a window of time; and what its calls mean for the job as a whole.

Times are in nanoseconds since the job's first call, by the clock of rank 0's node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from palmette import _core
from palmette.record.functions import SENDS, is_started_later, operation
from palmette.record.reading import Job, Process, RecordError
from palmette.record.sums import told
from palmette.record.symbols import Place, Resolver

WORLD = 1
"""The id of MPI_COMM_WORLD."""
REPORT_EVERY = 1 << 15
"""Calls between two reports of progress."""


class Call(NamedTuple):
    """A call, or a request from its start to the call that completed it."""

    number: int
    """Among all that its process has recorded."""
    begin_ns: int
    end_ns: int
    thread: int
    """Number of the thread in its process, from 1; for a request, the thread that completed it."""
    function: str
    is_request: bool
    path: int
    """Index into Selection.stacks."""
    communicator: int
    """Index into Selection.communicators; 0: none."""
    bytes: int
    peer: int
    """Rank in the communicator, or root of a collective; -1: none, -2: any."""
    tag: int
    instance: int
    """Number of a collective on its communicator, counted from 1; else 0."""
    algorithm: str
    """Algorithm by which palmette served it; empty: it was left to the MPI."""


class Sum(NamedTuple):
    """All calls, or all requests, of one function from one path on one communicator."""

    function: str
    is_request: bool
    path: int
    communicator: int
    calls: int
    bytes: int
    seconds: float
    longest_s: float


@dataclass
class Communicator:
    """A communicator of the job."""

    id: int
    size: int
    members: dict[int, int] = field(default_factory=dict)
    """Rank in it -> index into Selection.everyone."""
    is_between_groups: bool = False
    is_shared: bool = False
    """Several processes say that they are the same rank of it: jobs that don't know of each other."""

    @property
    def name(self) -> str:
        """The world's name, else its id."""
        return "MPI_COMM_WORLD" if self.id == WORLD else f"communicator {self.id:016x}"

    @property
    def is_known(self) -> bool:
        """Whether it is known who all of its ranks are."""
        return not (self.is_between_groups or self.is_shared) and len(self.members) == self.size


class Selection:
    """Ranks and a window of a job. Raises RecordError where a rank isn't there, or the window is none."""

    def __init__(
        self,
        job: Job,
        ranks: Sequence[int] | None = None,
        from_s: float | None = None,
        until_s: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """`ranks` None: all. A call belongs to the window when it overlaps it. `progress` is told calls read so far."""
        self.job = job
        self.everyone = [process for process in job.processes if process.recorded.rank >= 0]
        """Processes that have come to know their rank; formats number them as they stand here."""
        wanted = frozenset(ranks) if ranks is not None else None
        self.chosen = [
            index for index, process in enumerate(self.everyone) if wanted is None or process.recorded.rank in wanted
        ]
        if not self.everyone:
            raise RecordError(f"{job.folder}: no process has come to know its rank yet")
        self._ranks = there = Counter(process.recorded.rank for process in self.everyone)
        if missing := [rank for rank in ranks or () if rank not in there]:
            known = f"ranks {min(there)} to {max(there)} are"
            raise RecordError(f"{job.folder}: rank {missing[0]} isn't recorded here; {known}")
        self.is_window = from_s is not None or until_s is not None
        self.from_ns = round((from_s or 0.0) * 1e9)
        self.until_ns = round(until_s * 1e9) if until_s is not None else None
        if self.until_ns is not None and self.until_ns <= self.from_ns:
            raise RecordError(f"a window from {from_s or 0:g} s until {until_s:g} s is empty; give a later end")
        self.begin_real_ns = job.begin_ns
        """The job's first call, by CLOCK_REALTIME of rank 0's node."""
        self.resolver = Resolver()
        self.communicators = [Communicator(0, 0)]
        self._progress = progress or (lambda _: None)
        self._read = 0
        self._number_communicators()

    @property
    def records_calls(self) -> bool:
        """Whether calls were recorded one by one."""
        return any(self.everyone[index].recorded.records_calls for index in self.chosen)

    @property
    def recorded_calls(self) -> int:
        """Calls and requests that are recorded one by one, of the chosen ranks, in the window or not."""
        all_of = [self.everyone[index].recorded for index in self.chosen]
        return sum(one.calls + one.requests - one.dropped for one in all_of if one.records_calls)

    @cached_property
    def stacks(self) -> list[tuple[Place, ...]]:
        """Call paths, the outermost function first, down to the one that calls MPI, the loops of each behind it; [0] is
        unknown.
        """
        return [tuple(one for place in path for one in place.frames) for path in self._paths[0]]

    def name(self, index: int) -> str:
        """Return a process's rank, with its number where several jobs of the folder have such a rank."""
        own = self.everyone[index].recorded
        is_only = self._ranks[own.rank] == 1
        return f"rank {own.rank}" if is_only else f"rank {own.rank} of process {own.pid}"

    def has_rank(self, rank: int) -> bool:
        """Whether a rank is among those that are converted."""
        return any(self.everyone[index].recorded.rank == rank for index in self.chosen)

    def place(self, path: int) -> Place:
        """Return where a call was made: the innermost function of its path."""
        functions = self._paths[0][path]
        return functions[-1] if functions else Place("unknown")

    def since_begin_ns(self, process: Process, real_ns: int) -> int:
        """Return a time of a process's node as nanoseconds since the job's first call."""
        return _common(process, real_ns) - self.begin_real_ns

    def is_rank(self, index: int, rank: int, communicator: int) -> bool:
        """Whether a process is this rank of a communicator."""
        return self.communicators[communicator].members.get(rank) == index

    def calls(self, index: int) -> Iterator[Call]:
        """Calls and requests of a process that overlap the window, by begin. Cost: O(calls of the process)."""
        return filter(self.overlaps, self.all_calls(index))

    def all_calls(self, index: int) -> Iterator[Call]:
        """Calls and requests of a process, in the window or not, by begin."""
        process = self.everyone[index]
        plans = process.recorded.plans
        paths, communicators = self._paths[1][index], self._communicators[index]
        try:
            recorded = process.calls()
        except _core.Error as error:
            raise RecordError(str(error)) from None
        for number, one in enumerate(recorded):
            if number % REPORT_EVERY == 0:
                self._progress(self._read + number)
            begin_ns = self.since_begin_ns(process, one.begin_real_ns)
            yield Call(
                # Rounded down, as begins are: a call mustn't reach into the next one.
                number, begin_ns, begin_ns + int(one.seconds * 1e9 + 1e-3), one.thread, one.function, one.is_request,
                paths[one.path] if one.path < len(paths) else 0,
                communicators[one.communicator] if one.communicator < len(communicators) else 0,
                one.bytes, one.peer, one.tag, one.instance,
                plans[one.plan].algorithm if 0 < one.plan < len(plans) else "",
            )  # fmt: skip
        self._read += process.recorded.calls + process.recorded.requests - process.recorded.dropped

    def outstanding(self, index: int) -> list[Call]:
        """Requests that a process has started and nobody has completed, by begin: they are no calls of the window, and
        keep their place among messages. Their number is -1. Sends that aren't persistent are out with their call.
        """
        process = self.everyone[index]
        communicators = self._communicators[index]
        found = []
        for one in process.recorded.outstanding:
            name = operation(one.function)
            if name in SENDS and not name.startswith("sendrecv") and not is_started_later(one.function):
                continue
            begin_ns = self.since_begin_ns(process, one.begin_real_ns)
            communicator = communicators[one.communicator] if one.communicator < len(communicators) else 0
            found.append(
                Call(
                    -1, begin_ns, begin_ns, 0, one.function, True, 0, communicator, one.bytes, one.peer, one.tag, 0, ""
                )
            )
        return sorted(found, key=lambda call: call.begin_ns)

    def overlaps(self, call: Call) -> bool:
        """Whether a part of a call is in the window."""
        return call.end_ns >= self.from_ns and (self.until_ns is None or call.begin_ns < self.until_ns)

    def holds(self, call: Call) -> bool:
        """Whether all of a call is in the window."""
        return call.begin_ns >= self.from_ns and (self.until_ns is None or call.end_ns < self.until_ns)

    def sums(self, index: int) -> list[Sum]:
        """Sums of a process: of all of its calls, recorded one by one or not, or of those in the window."""
        rows: dict[tuple[str, bool, int, int], list[float]] = {}
        for function, is_request, path, communicator, calls, bytes_, seconds, longest_s in self._to_add(index):
            row = rows.setdefault((function, is_request, path, communicator), [0, 0, 0.0, 0.0])
            row[0] += calls
            row[1] += bytes_
            row[2] += seconds
            row[3] = max(row[3], longest_s)
        return [Sum(*key, int(row[0]), int(row[1]), row[2], row[3]) for key, row in rows.items()]

    def _to_add(self, index: int) -> Iterator[Sum]:
        if self.is_window:
            for call in self.calls(index):
                seconds = (call.end_ns - call.begin_ns) * 1e-9
                yield Sum(call.function, call.is_request, call.path, call.communicator, 1, call.bytes, seconds, seconds)
            return
        paths, communicators = self._paths[1][index], self._communicators[index]
        for one in self.everyone[index].recorded.aggregates:
            yield Sum(
                one.function, one.is_request, paths[one.path] if one.path < len(paths) else 0,
                communicators[one.communicator] if one.communicator < len(communicators) else 0,
                one.calls, one.bytes, one.seconds, one.longest_s,
            )  # fmt: skip

    @cached_property
    def _paths(self) -> tuple[list[tuple[Place, ...]], dict[int, list[int]]]:
        """Stacks of functions, and by process the number of each of its paths among them. Modules lie at other
        addresses on each rank, offsets in them don't differ. Cost: a reading of each module on a path.
        """
        self.resolver.add(
            frame for index in self.chosen for path in self.everyone[index].recorded.paths for frame in path
        )
        stacks: list[tuple[Place, ...]] = [()]
        known: dict[tuple[tuple[str, str, int], ...], int] = {(): 0}
        by_process: dict[int, list[int]] = {}
        for index in self.chosen:
            numbers = by_process[index] = []
            for path in self.everyone[index].recorded.paths:
                key = tuple((frame.module, frame.build_id, frame.offset) for frame in path)
                if key not in known:
                    known[key] = len(stacks)
                    stacks.append(self._stack(path))
                numbers.append(known[key])
        return stacks, by_process

    def _stack(self, path: Sequence[_core.RecordedFrame]) -> tuple[Place, ...]:
        return tuple(reversed(told(path, self.resolver)))

    def _number_communicators(self) -> None:
        known: dict[int, int] = {0: 0}
        self._communicators: dict[int, list[int]] = {}
        for index, process in enumerate(self.everyone):
            numbers = self._communicators[index] = []
            for one in process.recorded.communicators:
                if one.id not in known:
                    known[one.id] = len(self.communicators)
                    self.communicators.append(Communicator(one.id, one.size))
                numbers.append(known[one.id])
                communicator = self.communicators[known[one.id]]
                if known[one.id] == 0:
                    continue
                if one.rank < 0:
                    communicator.is_between_groups = True
                elif communicator.members.setdefault(one.rank, index) != index:
                    communicator.is_shared = True


def _common(process: Process, real_ns: int) -> int:
    return real_ns + process.clock_at(real_ns)[0]
