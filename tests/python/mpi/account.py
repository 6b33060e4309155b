"""The account that tests/mpi/oracle.cpp keeps of its calls, and what a recording of the same job says otherwise."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from palmette import _core
from palmette.record.reading import Job, Process

NONE, UNSAID = -1, -99
HALF_GOT = -2
"""A message that was too long for its receive: whether it counts as received isn't fixed."""
FIRST_THREAD_TAG = 30_000
"""Tag of the MPI_Iprobe that each thread but the main one begins with."""
CLOCK_NS = 2_000_000
"""Nanoseconds by which times read of different clocks may differ."""


class Call(NamedTuple):
    """A call of the program's. `comm`, `peer`, `tag`, `instance`: NONE, UNSAID or what they say."""

    function: str
    comm: int
    bytes: int
    peer: int
    tag: int
    instance: int
    sent: int
    got: int
    before_ns: int
    after_ns: int
    left: int
    """A handler has left it: whether it is recorded isn't fixed."""


class Request(NamedTuple):
    """A request, from one start to the call that completes or frees it."""

    function: str
    comm: int
    bytes: int
    peer: int
    tag: int
    instance: int
    sent: int
    got: int
    start: int
    end_thread: int
    end: int
    cancelled: int
    handle: int
    """Sends that were done at once may share one: which of them a call completes isn't to be told."""


@dataclass
class Thread:
    """One thread's calls in their order, and what they have started."""

    number: int
    calls: list[Call]
    requests: list[Request]


@dataclass
class Account:
    """One rank's."""

    rank: int
    sent: dict[int, tuple[int, int]]
    exchanged: dict[int, tuple[int, int]]
    communicators: dict[int, tuple[list[int], list[int]]]
    threads: list[Thread]


def read_accounts(prefix: Path, ranks: int) -> list[Account]:
    """Read what the ranks of a job have written."""
    found = []
    for rank in range(ranks):
        text = json.loads(prefix.with_name(f"{prefix.name}.{rank}.json").read_text(encoding="utf-8"))
        threads = [
            Thread(one["thread"], [Call(*row) for row in one["calls"]], [Request(*row) for row in one["requests"]])
            for one in text["threads"]
        ]
        found.append(Account(
            rank, {int(to): tuple(sums) for to, sums in text["sent"].items()},
            {int(to): tuple(sums) for to, sums in text["exchanged"].items()},
            {int(label): (one[0], one[1]) for label, one in text["communicators"].items()}, threads,
        ))  # fmt: skip
    return found


Key = tuple[int, str, bool]
"""Rank, function, whether it is requests."""
End = tuple[int, int, int, int]
"""One end of a message: rank, thread, index of the call that began it, tag."""
Pair = tuple["End | None", "End | None"]
"""Send and receive; None: no call of the program's is known for it."""


@dataclass
class AccountComparison:
    """What was compared, and what differs: lines to read."""

    accounts: list[Account]
    job: Job
    differences: list[str] = field(default_factory=list)
    rows: list[list[tuple[Thread, int] | None]] = field(default_factory=list)
    """The call of each row of Process.calls(), by rank: for a request, the call by which it began."""
    recorded: list[list[_core.RecordedCall]] = field(default_factory=list)
    _ids: dict[int, int] = field(default_factory=dict)
    """Recorded id of each communicator, by label."""
    _labels: dict[int, int] = field(default_factory=dict)

    def differs(self, text: str) -> None:
        """Note a difference."""
        self.differences.append(text)

    def same(self, what: str, found: object, expected: object) -> None:
        """Note a difference where there is one."""
        if found != expected:
            self.differs(f"{what}: {found} is recorded, {expected} is right")

    # Calls and requests, one by one.

    def compare_calls(self) -> None:
        """Compare each call of each thread of each rank, and each request."""
        for account, process in zip(self.accounts, self.job.processes, strict=True):
            self.same("rank", process.recorded.rank, account.rank)
            self._health(process)
            recorded = process.calls()
            self.recorded.append(recorded)
            rows: list[tuple[Thread, int] | None] = [None] * len(recorded)
            self.rows.append(rows)
            found = self._by_thread(account, recorded)
            begun: dict[int, list[tuple[Thread, int]]] = defaultdict(list)
            ends: dict[tuple[int, int], _core.RecordedCall] = {}
            for thread in account.threads:
                for row, index in self._aligned(account, thread, found.get(thread.number, []), recorded):
                    rows[row] = thread, index
                    begun[recorded[row].begin_real_ns].append((thread, index))
                    ends[thread.number, index] = recorded[row]
                    self._call(account, process, thread, index, recorded[row])
            self._requests(account, process, recorded, rows, begun, ends)

    def _health(self, process: Process) -> None:
        one = process.recorded
        for what in ("dropped", "threadless", "unfollowed", "unpathed"):
            self.same(f"rank {one.rank}, {what}", getattr(one, what), 0)
        self.same(f"rank {one.rank}, open calls", len(one.open), 0)
        self.same(f"rank {one.rank}, outstanding", len(one.outstanding), 0)

    def _by_thread(self, account: Account, recorded: Sequence[_core.RecordedCall]) -> dict[int, list[int]]:
        """Return rows of calls by the program's threads: a later one may have taken an earlier one's entry."""
        by_tag = {thread.calls[0].tag: thread.number for thread in account.threads[1:] if thread.calls}
        found: dict[int, list[int]] = defaultdict(list)
        now: dict[int, int] = {}
        for row, call in enumerate(recorded):
            if call.is_request:
                continue
            if call.function == "MPI_Iprobe" and call.tag >= FIRST_THREAD_TAG:
                now[call.thread] = by_tag.get(call.tag, -1)
            found[now.get(call.thread, 0)].append(row)
        return found

    def _aligned(
        self, account: Account, thread: Thread, rows: Sequence[int], recorded: Sequence[_core.RecordedCall]
    ) -> Iterator[tuple[int, int]]:
        """Yield rows with the index of the program's call."""
        at = 0
        for index, call in enumerate(thread.calls):
            here = recorded[rows[at]] if at < len(rows) else None
            if call.left and (here is None or here.begin_real_ns > call.after_ns or here.function != call.function):
                continue
            if here is None or here.function != call.function:
                behind = " ".join(recorded[row].function for row in rows[at : at + 3])
                self.differs(
                    f"rank {account.rank}, thread {thread.number}, call {index} {call.function} isn't there: {behind}"
                )
                return
            yield rows[at], index
            at += 1
        if at < len(rows):
            self.differs(f"rank {account.rank}, thread {thread.number}: {len(rows) - at} calls that nobody made")

    def _call(self, account: Account, process: Process, thread: Thread, index: int, found: _core.RecordedCall) -> None:
        call = thread.calls[index]
        where = f"rank {account.rank}, thread {thread.number}, call {index} {call.function}"
        self._about(where, account, process, call, found)
        end_ns = found.begin_real_ns + round(found.seconds * 1e9)
        if not call.before_ns - CLOCK_NS <= found.begin_real_ns <= end_ns <= call.after_ns + CLOCK_NS:
            self.differs(
                f"{where}: from {found.begin_real_ns - call.before_ns} ns after its begin on, for {found.seconds} s of "
                f"{(call.after_ns - call.before_ns) * 1e-9} s"
            )

    def _about(
        self, where: str, account: Account, process: Process, call: Call | Request, found: _core.RecordedCall
    ) -> None:
        if call.bytes != UNSAID:
            self.same(f"{where}, bytes", found.bytes, call.bytes)
        cancelled = isinstance(call, Request) and call.cancelled
        if call.peer != UNSAID:
            self.same(f"{where}, peer", found.peer, -1 if cancelled else call.peer)
        if call.tag != UNSAID and call.instance == NONE:
            self.same(f"{where}, tag", found.tag, call.tag)
        self.same(f"{where}, instance", found.instance, max(0, call.instance))
        if call.comm == UNSAID:
            return
        known = process.recorded.communicators[found.communicator] if found.communicator else None
        if call.comm == NONE or known is None:
            self.same(f"{where}, communicator", known.id if known else NONE, call.comm)
            return
        members, others = account.communicators[call.comm]
        is_second = bool(others) and account.rank in others
        group = others if is_second else members
        key = call.comm
        self.same(f"{where}, communicator", self._ids.setdefault(key, known.id), known.id)
        self.same(f"{where}, label of the communicator", self._labels.setdefault(known.id, key), key)
        if not others:
            self.same(f"{where}, rank and size", (known.rank, known.size), (group.index(account.rank), len(group)))

    def _requests(
        self, account: Account, process: Process, recorded: Sequence[_core.RecordedCall],
        rows: list[tuple[Thread, int] | None], begun: dict[int, list[tuple[Thread, int]]],
        ends: dict[tuple[int, int], _core.RecordedCall],
    ) -> None:  # fmt: skip
        expected: dict[tuple[int, int], list[Request]] = defaultdict(list)
        by_handle: dict[int, list[Request]] = defaultdict(list)
        for thread in account.threads:
            for one in thread.requests:
                by_handle[one.handle].append(one)
                expected[thread.number, one.start].append(one)
        for row, found in enumerate(recorded):
            if not found.is_request:
                continue
            where = f"rank {account.rank}, request of {found.function}, peer {found.peer}, tag {found.tag}"
            starts = begun.get(found.begin_real_ns, [])
            candidates = [(start, one) for start in starts for one in expected[start[0].number, start[1]]]
            candidates = [(start, one) for start, one in candidates if one.function == found.function]
            if not candidates:
                self.differs(f"{where}: none began at a call then")
                continue
            # Several that were started at once: the one that fits best.
            start, one = min(candidates, key=lambda both: _distance(both[1], found))
            rows[row] = start
            expected[start[0].number, start[1]].remove(one)
            where = f"rank {account.rank}, thread {start[0].number}, request of call {start[1]} {one.function}"
            self._about(where, account, process, one, found)
            same_handle = by_handle[one.handle] if one.handle else [one]
            possible = [ends[key] for key in {(each.end_thread, each.end) for each in same_handle} if key in ends]
            end_ns = found.begin_real_ns + round(found.seconds * 1e9)
            slack = 1000 + found.seconds * 20  # durations of long requests are rounded
            if one.end != NONE and not any(
                end.begin_real_ns - slack <= end_ns <= end.begin_real_ns + round(end.seconds * 1e9) + slack
                for end in possible
            ):
                self.differs(f"{where}: it doesn't end in call {one.end} of thread {one.end_thread}")
        for (thread_number, start_index), left in expected.items():
            for one in left:
                self.differs(
                    f"rank {account.rank}, thread {thread_number}: no request of call {start_index} {one.function}, "
                    f"peer {one.peer}, tag {one.tag}, ended by {one.end}"
                )

    # Sums.

    def expected_sums(self) -> tuple[Counter[Key], Counter[Key]]:
        """Return calls and bytes by rank and function."""
        calls: Counter[Key] = Counter()
        sizes: Counter[Key] = Counter()
        for account in self.accounts:
            for thread in account.threads:
                for call in thread.calls:
                    calls[account.rank, call.function, False] += 1
                    sizes[account.rank, call.function, False] += max(0, call.bytes)
                for one in thread.requests:
                    calls[account.rank, one.function, True] += 1
                    sizes[account.rank, one.function, True] += max(0, one.bytes)
        return calls, sizes

    def left(self) -> Counter[Key]:
        """Return calls that handlers have left."""
        return Counter(
            (account.rank, call.function, False)
            for account in self.accounts for thread in account.threads for call in thread.calls if call.left
        )  # fmt: skip

    def expected_collectives(self) -> Iterator[tuple[str, int]]:
        """Yield function and size of the communicator of each collective of a rank, as often as it was started."""
        for account in self.accounts:
            for thread in account.threads:
                started = {one.start for one in thread.requests}
                for index, call in enumerate(thread.calls):
                    if call.instance > 0 and index not in started and "_init" not in call.function:
                        yield from self._collective(account, call)
                for one in thread.requests:
                    if one.instance > 0:
                        yield from self._collective(account, one)

    @staticmethod
    def _collective(account: Account, one: Call | Request) -> Iterator[tuple[str, int]]:
        members, others = account.communicators[one.comm]
        if not others and "eighbor" not in one.function:
            yield one.function, len(members)

    def bytes_of(self, rank: int, row: int) -> int:
        """Return what a message sends that a row stands for."""
        return self.recorded[rank][row].bytes

    def compare_sums(self) -> None:
        """Compare the sums that are kept besides single calls; calls that were left may be among them."""
        calls, sizes = self.expected_sums()
        found: tuple[Counter[Key], Counter[Key]] = (Counter(), Counter())
        for process in self.job.processes:
            for row in process.recorded.aggregates:
                key = process.recorded.rank, row.function, row.is_request
                found[0][key] += row.calls
                found[1][key] += row.bytes
        left = self.left()
        for key in calls.keys() | found[0].keys():
            rank, function, is_request = key
            what = f"rank {rank}, {function}{'/request' if is_request else ''}"
            if not calls[key] - left[key] <= found[0][key] <= calls[key]:
                self.same(f"{what}, calls", found[0][key], calls[key])
            self.same(f"{what}, bytes", found[1][key], sizes[key])

    # Messages.

    def expected_pairs(self) -> tuple[Counter[Pair], set[End]]:
        """Return both ends of each message between ranks of one group, and the first end of those that are half got."""
        sends: dict[int, End] = {}
        receives: dict[int, End] = {}
        for account in self.accounts:
            for thread in account.threads:
                for index, call in enumerate(thread.calls):
                    self._end(account, thread, index, call, sends, receives)
                for one in thread.requests:
                    self._end(account, thread, one.start, one, sends, receives)
        pairs: Counter[Pair] = Counter((sends[number], receives[number]) for number in sends.keys() & receives.keys())
        return pairs, {sends[number] for number in sends.keys() - receives.keys()}

    @staticmethod
    def _end(
        account: Account, thread: Thread, index: int, one: Call | Request, sends: dict[int, End],
        receives: dict[int, End],
    ) -> None:  # fmt: skip
        if one.comm < 0 or account.communicators[one.comm][1]:
            return
        end = account.rank, thread.number, index, one.tag
        if one.sent >= 0:
            sends[one.sent] = end
        if one.got >= 0:
            receives[one.got] = end

    def end_of(self, rank: int, row: int) -> End | None:
        """Return the end of a message that a row of Process.calls() stands for."""
        at = self.rows[rank][row]
        return (rank, at[0].number, at[1], self.recorded[rank][row].tag) if at else None

    def compare_pairs(self, found: Counter[Pair]) -> None:
        """Compare messages; those that were too long for their receives may be among them or not."""
        expected, half = self.expected_pairs()
        for pair, count in (found - expected).items():
            if pair[0] not in half:
                self.differs(f"message from {pair[0]} to {pair[1]}: {count} too many")
        for pair, count in (expected - found).items():
            self.differs(f"message from {pair[0]} to {pair[1]}: {count} too few")


def _distance(one: Request, found: _core.RecordedCall) -> tuple[bool, bool, bool]:
    return one.tag != found.tag, one.peer != found.peer, one.bytes != found.bytes
