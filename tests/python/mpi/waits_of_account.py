"""Who waited for whom, and for how long, by the programs' own account.

What is one collective and one message comes from the account, times from the recording; written from the definitions
in the guide, not from their implementation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from palmette import _core
from palmette.record.findings import trace_files
from palmette.record.functions import ENDS

from .account import NONE, AccountComparison, Call, Request, Thread

TOGETHER = {"barrier", "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw",
            "reduce_scatter", "reduce_scatter_block"}  # fmt: skip
"""All wait for the last one."""
FROM_ROOT = {"bcast", "scatter", "scatterv"}
TO_ROOT = {"gather", "gatherv", "reduce"}
SCANS = {"scan", "exscan"}
EAGER_BYTES = 1024
"""Shorter sends don't wait for their receives, but synchronous ones."""
ROUNDED_NS = 2_000
"""Nanoseconds by which times may differ that are kept in seconds."""
ALL = 10_000_000
COLUMNS = (("begin_ns", "i8"), ("waiting_ns", "i8"), ("process", "i4"), ("waits_for", "i4"), ("function", "i4"))
TESTS = re.compile(r"MPI_(Test|Request_get_status|Request_free)")

Where = tuple[int, int, int]
"""Rank, thread, index of a call."""


def operation_of(function: str) -> str:
    """MPI_Iallgather_c's allgather, MPI_Bcast_init's bcast."""
    name = function.removeprefix("MPI_").removesuffix("_c").removesuffix("_init").lower()
    every = TOGETHER | FROM_ROOT | TO_ROOT | SCANS
    return name.removeprefix("i") if name.removeprefix("i") in every else name


class Part(NamedTuple):
    """One rank's part of a collective, or one end of a message."""

    rank: int
    begin_ns: int
    about: Call | Request


class CallWait(NamedTuple):
    """What a call waited, and for whom."""

    ns: int
    ranks: frozenset[int]
    """Any of them came last; empty: nobody."""


class Waits:
    """Waits of all calls of a recorded job, as its programs' accounts have them."""

    def __init__(self, compared: AccountComparison) -> None:
        self._accounts = compared.accounts
        self._begin: dict[Where, int] = {}
        self._end: dict[Where, int] = {}
        for rank, rows in enumerate(compared.rows):
            for row, at in enumerate(rows):
                found = compared.recorded[rank][row]
                if at is None or found.is_request:
                    continue
                where = rank, at[0].number, at[1]
                self._begin[where] = found.begin_real_ns
                self._end[where] = found.begin_real_ns + round(found.seconds * 1e9)
        self._parts: dict[Where, list[Part]] = defaultdict(list)
        """Parts of collectives and ends of messages, by the call that completes them."""
        self._instances: dict[tuple[int, int, int], list[Part]] = defaultdict(list)
        """Parts of each collective, by communicator, number, and start of a persistent one."""
        self._key: dict[int, tuple[int, int, int]] = {}
        self._sends: dict[int, Part] = {}
        self._receives: dict[int, Part] = {}
        for rank, account in enumerate(self._accounts):
            for thread in account.threads:
                self._gather(rank, thread)

    def _gather(self, rank: int, thread: Thread) -> None:
        started = {one.start for one in thread.requests}
        for index, call in enumerate(thread.calls):
            where = rank, thread.number, index
            if where not in self._begin:
                continue
            part = Part(rank, self._begin[where], call)
            if call.sent >= 0 and not self._is_lasting(call):
                self._sends[call.sent] = part
            if call.got >= 0:
                self._receives[call.got] = part
            if call.instance > 0 and index not in started and not self._is_lasting(call):
                self._instances[self._keyed(part, 0)].append(part)
            self._parts[where].append(part)
        epochs: dict[tuple[int, int], int] = defaultdict(int)
        for one in thread.requests:
            where = rank, thread.number, one.start
            if where not in self._begin:
                continue
            part = Part(rank, self._begin[where], one)
            if one.sent >= 0:
                self._sends[one.sent] = part
            if one.got >= 0:
                self._receives[one.got] = part
            if one.instance > 0:
                epoch = 0
                if self._is_lasting(one):
                    epochs[one.comm, one.instance] += 1
                    epoch = epochs[one.comm, one.instance]
                self._instances[self._keyed(part, epoch)].append(part)
            if one.end != NONE:
                self._parts[rank, one.end_thread, one.end].append(part)

    @staticmethod
    def _is_lasting(one: Call | Request) -> bool:
        return one.function.removesuffix("_c").endswith("_init")

    def _keyed(self, part: Part, epoch: int) -> tuple[int, int, int]:
        key = part.about.comm, part.about.instance, epoch
        self._key[id(part.about)] = key
        return key

    # One call.

    def of(self, where: Where) -> CallWait | None:
        """Return what a recorded call waited; None: the account doesn't fix it."""
        rank, thread, index = where
        call = self._call(where)
        if TESTS.match(call.function):
            return CallWait(0, frozenset())
        worst = CallWait(0, frozenset())
        for part in self._parts[where]:
            if part.about is call and (self._starts(rank, thread, index) or self._is_lasting(call)):
                continue  # judged where it is completed
            for one in self._of_part(part, self._begin[where], self._end[where]):
                if one is None:
                    return None
                if one.ns > worst.ns:
                    worst = one
                elif one.ns == worst.ns > 0:
                    worst = CallWait(one.ns, one.ranks | worst.ranks)
        return worst

    def all(self) -> Iterator[tuple[Where, str, int, CallWait | None]]:
        """Yield each recorded call: its function, its begin and what it waited."""
        for where, begin_ns in self._begin.items():
            yield where, self._call(where).function, begin_ns, self.of(where)

    def _call(self, where: Where) -> Call:
        threads = {thread.number: thread for thread in self._accounts[where[0]].threads}
        return threads[where[1]].calls[where[2]]

    def _starts(self, rank: int, thread: int, index: int) -> bool:
        call = self._call((rank, thread, index))
        own = next(one for one in self._accounts[rank].threads if one.number == thread)
        return any(one.start == index != one.end and one.function == call.function for one in own.requests)

    def _of_part(self, part: Part, begin_ns: int, end_ns: int) -> Iterator[CallWait | None]:
        about = part.about
        if (isinstance(about, Request) and about.cancelled) or about.comm < 0:
            return
        is_inter = bool(self._accounts[part.rank].communicators[about.comm][1])
        if about.instance > 0:
            yield None if is_inter else self._of_collective(part, begin_ns, end_ns)
            return
        if is_inter:
            return
        if about.got >= 0:
            send = self._sends.get(about.got)
            yield CallWait(max(0, min(send.begin_ns, end_ns) - begin_ns), frozenset({send.rank})) if send else None
        elif about.got != NONE:
            yield None
        if about.sent >= 0 and (about.bytes >= EAGER_BYTES or "ssend" in about.function.lower()):
            receive = self._receives.get(about.sent)
            if receive is None:
                yield None
            elif receive.begin_ns < end_ns:
                yield CallWait(max(0, receive.begin_ns - begin_ns), frozenset({receive.rank}))

    def _of_collective(self, part: Part, begin_ns: int, end_ns: int) -> CallWait:
        about = part.about
        members = self._accounts[part.rank].communicators[about.comm][0]
        of = {one.rank: one.begin_ns for one in self._instances[self._key[id(about)]]}
        operation = operation_of(about.function)
        own = members.index(part.rank)
        if operation in TOGETHER or (operation in TO_ROOT and own == about.peer):
            others = of
        elif operation in FROM_ROOT and own != about.peer:
            root = members[about.peer]
            others = {root: of[root]} if root in of else {}
        elif operation in SCANS:
            others = {rank: of[rank] for rank in members[: own + 1] if rank in of}
        else:
            others = {}
        if not others:
            return CallWait(0, frozenset())
        last_ns = max(others.values())
        came_last = frozenset(rank for rank, begun in others.items() if begun == last_ns)
        return CallWait(max(0, min(last_ns, end_ns) - begin_ns), came_last)


def compare_waits(compared: AccountComparison) -> None:
    """Compare each call's wait and whom it was for, and the sums over calls that findings are made of."""
    view = _core.view_trace(trace_files(compared.job), calls=ALL)
    functions, ranks = view.waits.functions, view.waits.ranks
    columns = [np.frombuffer(view.calls[name], kind).tolist() for name, kind in COLUMNS]
    found: dict[tuple[int, int, str], list[tuple[int, int]]] = defaultdict(list)
    by_function: Counter[tuple[int, str]] = Counter()
    by_late: Counter[tuple[int, str]] = Counter()
    for begin_ns, waiting_ns, process, waits_for, function in zip(*columns, strict=True):
        late = ranks[waits_for] if waits_for >= 0 else NONE
        found[ranks[process], begin_ns, functions[function]].append((waiting_ns, late))
        by_function[ranks[process], functions[function]] += waiting_ns
        if late not in (NONE, ranks[process]):
            by_late[late, functions[function]] += waiting_ns
    waits = Waits(compared)
    for (rank, thread, index), name, begin_ns, expected in waits.all():
        if expected is None or name in ENDS:
            continue
        rows = found.get((rank, begin_ns, name), [])
        if not any(
            abs(waiting_ns - expected.ns) <= ROUNDED_NS and (expected.ns <= ROUNDED_NS or late in expected.ranks)
            for waiting_ns, late in rows
        ):
            compared.differs(f"rank {rank}, thread {thread}, call {index} {name} waits {rows}, {expected} is right")
    for row in view.waits.rows:
        by_function[ranks[row.process], functions[row.function]] -= round(row.split.waiting_s * 1e9)
    for cause in view.waits.causes:
        by_late[ranks[cause.process], functions[cause.function]] -= round(cause.waiting_s * 1e9)
    for what, left in (("in", by_function), ("because of", by_late)):
        for (rank, name), ns in left.items():
            if abs(ns) > ROUNDED_NS * len(columns[0]):
                compared.differs(
                    f"waiting {what} rank {rank}, {name}: single calls add up to {ns} ns more than the sum"
                )
