"""The scenarios of tests/mpi/planted.cpp with the waits that follow from what is planted, and waits by two other ways:
computed from the records alone, and by the analysis.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from palmette import _core
from palmette.record.reading import Job
from palmette.record.symbols import Resolver, frames_of

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PALMETTE_TEST_BUILD", ROOT / "build" / "release"))
ROUNDS = 4
"""How often a scenario is repeated."""
LATENCY_MS = 0.1
"""Latency of each message between simulated ranks, where nothing else takes time: one that a rank starts to send at t
is received from t + L on, sending a short one takes no time, and receiving what has arrived doesn't either."""
L = LATENCY_MS

WaitTable: TypeAlias = "dict[tuple[int, str], Sequence[float]]"


@dataclass(frozen=True)
class Scenario:
    """What is to be found in a scenario."""

    waits: WaitTable
    """Milliseconds that each waiting call waits in one round, by rank and function."""
    late: int | None = None
    """The only rank that is late."""
    at: str = ""
    """The function in which others wait for the late rank."""
    rounds: int = ROUNDS
    """Number of rounds; 1: `waits` has the waits of all rounds."""
    steady: bool = True
    """On a real machine, too, the longest wait of each row recurs, and begins when a rank comes as planned. Otherwise
    it depends on how long others compute or communicate, which takes longer on a busy machine."""
    simulated: bool = True
    """Whether SimGrid 3.32 can run it."""
    mpi_4: bool = False
    """Whether it needs MPI 4, which neither SimGrid's MPI nor Open MPI 5 is."""
    served: bool = True
    """False: in a simulation palmette mustn't serve it, since it tests for what it has started, and tests take no
    simulated time there."""
    indirect: str = ""
    """Why another rank than the late one is found."""


def of(function: str, **waits: Sequence[float]) -> WaitTable:
    """Return the waits in one function: `of("MPI_Recv", r0=[30])`."""
    return {(int(rank.removeprefix("r")), function): times for rank, times in waits.items()}


def of_each(functions: Iterable[str], **waits: Sequence[float]) -> WaitTable:
    """Return the same waits in several functions."""
    return {key: times for function in functions for key, times in of(function, **waits).items()}


N_TO_N = (
    "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
)  # fmt: skip
NONE: WaitTable = {}
PASSED_ON = "who passes on a delay is blamed for it, not the rank that was late first"

# What a scenario plants stands above its function in tests/mpi/planted/*.hpp.
SCENARIOS = {
    # Until the last one comes, at 30, 40 and so on.
    "late-rank": Scenario(of("MPI_Barrier", r0=[30], r2=[30], r3=[30]), 1, "MPI_Barrier"),
    "staircase": Scenario(of("MPI_Barrier", r0=[40], r1=[30], r2=[20]), 3, "MPI_Barrier"),
    # Each waits in the three rounds in which another one is late.
    "turns": Scenario(of("MPI_Allreduce", r0=[20] * 3, r1=[20] * 3, r2=[20] * 3, r3=[20] * 3), rounds=1),
    "once": Scenario(of("MPI_Allreduce", r0=[40], r1=[40], r3=[40]), 2, "MPI_Allreduce", rounds=1, steady=False),
    "alternating": Scenario(
        of("MPI_Allreduce", r0=[30, 10] * 2, r1=[10] * 2, r2=[30] * 2, r3=[30, 10] * 2), 1, "MPI_Allreduce", rounds=1
    ),
    "n-to-n": Scenario(of_each(N_TO_N, r0=[12], r1=[12], r2=[12]), 3, N_TO_N[0]),
    # Until the root comes.
    "late-root": Scenario(of("MPI_Bcast", r0=[30], r2=[30], r3=[30]), 1, "MPI_Bcast"),
    "late-leaf": Scenario(NONE),
    "late-scatter-root": Scenario(
        of_each(("MPI_Scatter", "MPI_Scatterv"), r0=[20], r3=[15]), 2, "MPI_Scatter"
    ),
    # The root, until the last one comes.
    "early-root": Scenario(of("MPI_Reduce", r0=[30]), 1, "MPI_Reduce"),
    "early-gather-root": Scenario(of_each(("MPI_Gather", "MPI_Gatherv"), r3=[25]), 1, "MPI_Gather"),
    "late-reduce-root": Scenario(NONE),
    # Until the last of the lower ranks comes: at 20 in the scan; at 30 in the other, to which 2 comes at 10, 3 at 20.
    "late-lower-rank": Scenario(
        of("MPI_Scan", r2=[20], r3=[20]) | of("MPI_Exscan", r2=[20], r3=[10]), 1, "MPI_Scan"
    ),
    "late-highest-rank": Scenario(NONE),
    # They come at 5, 10, 15 and 20.
    "imbalance": Scenario(of("MPI_Allreduce", r0=[15], r1=[10], r2=[5]), 3, "MPI_Allreduce", steady=False),
    # Rank r comes at r (1 + 2 + 3).
    "drift": Scenario(of("MPI_Barrier", r0=[18], r1=[12], r2=[6]), 3, "MPI_Barrier", steady=False),
    "two-places": Scenario(of("MPI_Barrier", r0=[30, 10], r1=[10], r2=[30], r3=[30, 10]), 1, "MPI_Barrier"),
    "balanced": Scenario(NONE),
    # Within each half.
    "halves": Scenario(of("MPI_Barrier", r0=[10], r1=[25]), 3, "MPI_Barrier"),
    "root-of-a-half": Scenario(of("MPI_Bcast", r0=[10], r1=[25]), 3, "MPI_Bcast"),
    "sender-of-a-half": Scenario(of("MPI_Recv", r0=[10], r1=[25]), 3, "MPI_Recv"),
    "without-rank-0": Scenario(of("MPI_Allreduce", r1=[20], r3=[20]), 2, "MPI_Allreduce"),
    "made-anew": Scenario(of("MPI_Barrier", r0=[20], r1=[20], r3=[20]), 2, "MPI_Barrier"),
    "duplicate": Scenario(of("MPI_Barrier", r0=[30], r1=[30, 10], r2=[30, 10], r3=[10]), 3, "MPI_Barrier"),
    # What came first is received second, and needn't be waited for.
    "same-tag": Scenario(of("MPI_Recv", r0=[20]), 1, "MPI_Recv"),
    # Until the sender comes.
    "late-sender": Scenario(of("MPI_Recv", r0=[30]), 1, "MPI_Recv"),
    "late-sender-of-much": Scenario(of("MPI_Recv", r0=[30]), 1, "MPI_Recv"),
    "kinds-of-sends": Scenario(of("MPI_Recv", r0=[12] * 3), 1, "MPI_Recv"),
    # The message of 10 is there at 10 + L, when the receive of that of 20 begins, and so on.
    "senders-in-order": Scenario(of("MPI_Recv", r0=[10, 10 - L, 10 - L])),
    "first-sender-last": Scenario(of("MPI_Recv", r0=[30]), 1, "MPI_Recv"),
    "any-sender": Scenario(of("MPI_Recv", r0=[10, 10 - L, 10 - L])),
    "tags-out-of-order": Scenario(of("MPI_Recv", r0=[20]), 1, "MPI_Recv"),
    # Until the receiver comes.
    "late-receiver": Scenario(of("MPI_Ssend", r0=[30]), 1, "MPI_Ssend"),
    "late-receiver-of-much": Scenario(of("MPI_Send", r0=[30]), 1, "MPI_Send"),
    "eager": Scenario(NONE),
    # Rank 1 has the first message at 20 + L, and asks for the second 10 later.
    "late-receiver-of-two": Scenario(of("MPI_Ssend", r0=[20], r2=[30 + L]), 1, "MPI_Ssend"),
    "open-chain": Scenario(of("MPI_Sendrecv", r2=[20]), 1, "MPI_Sendrecv"),
    # Rank 3 begins its second shift at 30 + L, for which rank 0 waits from L on; rank 0 its third at 30 + 2 L, for
    # which rank 1 waits from 2 L on.
    "ring": Scenario(
        of("MPI_Sendrecv", r3=[30], r0=[30], r1=[30]), 2, "MPI_Sendrecv", steady=False, indirect=PASSED_ON
    ),
    "ring-of-much": Scenario(of("MPI_Sendrecv", r1=[30], r3=[30]), 2, "MPI_Sendrecv"),
    "replaced-in-ring": Scenario(of("MPI_Sendrecv_replace", r3=[30]), 2, "MPI_Sendrecv_replace"),
    "probe": Scenario(NONE),
    # Requests wait in the call that completes them.
    "nonblocking": Scenario(of("MPI_Waitall", r0=[30], r2=[30], r3=[30]), 1, "MPI_Waitall"),
    "late-isend": Scenario(of("MPI_Wait", r0=[30]), 1, "MPI_Wait"),
    "overlap": Scenario(of("MPI_Wait", r0=[20]), 1, "MPI_Wait", steady=False),
    "full-overlap": Scenario(NONE),
    "waitall": Scenario(of("MPI_Waitall", r0=[30]), 3, "MPI_Waitall"),
    "waitany": Scenario(of("MPI_Waitany", r0=[10, 10 - L, 10 - L])),
    "waitsome": Scenario(of("MPI_Waitsome", r0=[10, 10 - L, 10 - L])),
    "waits": Scenario(of("MPI_Wait", r0=[10, 10 - L, 10 - L])),
    "any-irecv": Scenario(of("MPI_Waitall", r0=[30]), 3, "MPI_Waitall"),
    # The first message is there at 10 + L, the second is sent at 30.
    "two-of-one-sender": Scenario(
        of("MPI_Wait", r0=[10, 20 - L]), 1, "MPI_Wait", steady=False,
    ),
    "sent-besides": Scenario(
        of("MPI_Waitall", r0=[20]), 1, "MPI_Waitall",
    ),
    "asked-before": Scenario(NONE),
    # At 30, the second message, from 5 on, when the first one is there.
    "freed-request": Scenario(
        of("MPI_Recv", r0=[25]), 1, "MPI_Recv",
    ),
    "tests": Scenario(NONE),
    "late-receiver-of-issend": Scenario(of("MPI_Wait", r0=[30]), 1, "MPI_Wait"),
    "late-receiver-of-isend": Scenario(of("MPI_Wait", r0=[30]), 1, "MPI_Wait"),
    # SimGrid's MPI_Ibarrier ends before all have come, but on rank 0.
    "late-ibarrier": Scenario(of("MPI_Wait", r0=[30], r2=[30], r3=[30]), 1, "MPI_Wait", simulated=False),
    "late-nonblocking": Scenario(
        of("MPI_Wait", r0=[12], r2=[12], r3=[12]) | of("MPI_Waitall", r0=[12], r2=[12], r3=[12])
        | of("MPI_Waitany", r2=[12], r3=[12]), 1, "MPI_Wait", served=False,
    ),
    # They wait from 12 on, until the root comes at 30.
    "late-ibcast": Scenario(of("MPI_Wait", r0=[18], r2=[18], r3=[18]), 1, "MPI_Wait", steady=False),
    "late-ireduce": Scenario(of("MPI_Wait", r3=[30]), 1, "MPI_Wait"),
    "late-wait": Scenario(NONE),
    # The first sum has ended when the second begins.
    "two-outstanding": Scenario(of("MPI_Waitall", r0=[15], r1=[15], r3=[15]), 2, "MPI_Waitall"),
    "barrier-between": Scenario(of("MPI_Barrier", r0=[20], r2=[20], r3=[20]), 1, "MPI_Barrier"),
    "crossed": Scenario(of("MPI_Waitall", r0=[20], r2=[20], r3=[20]), 1, "MPI_Waitall"),
    "persistent": Scenario(of("MPI_Wait", r0=[30]), 1, "MPI_Wait"),
    "persistent-from-any": Scenario(of("MPI_Waitany", r0=[30]), 1, "MPI_Waitany"),
    "persistent-ring": Scenario(of("MPI_Waitall", r1=[25], r3=[25]), 2, "MPI_Waitall"),
    "persistent-barrier": Scenario(of("MPI_Wait", r0=[30], r2=[30], r3=[30]), 1, "MPI_Wait", mpi_4=True),
    "isendrecv": Scenario(of("MPI_Wait", r3=[30]), 2, "MPI_Wait", mpi_4=True),
    # Ranks 0 and 2 have the first message of rank 1 at 30 + L and compute for 1. For their second one rank 3 waits from
    # 1 + L on, and rank 1 from 31 on.
    "halo": Scenario(of("MPI_Waitall", r0=[30], r2=[30], r3=[30], r1=[L]), 1, "MPI_Waitall", steady=False),
    # Rank 0 sends at 5, 10 and 15. Rank 1 sends at 25 + L, 45 + L and 65 + L, having waited once. Rank 2 sends 5 + L
    # after that, which is when it begins to wait for the next one, as does rank 3.
    "pipeline": Scenario(
        of("MPI_Recv", r1=[5], r2=[25 + L, 15 - L, 15 - L], r3=[30 + 2 * L, 15 - L, 15 - L]), 1, "MPI_Recv",
        steady=False, indirect=PASSED_ON,
    ),
    # Rank 0 has the first request at L and answers at 10 + L, the others at 20 + L and 30 + L.
    "master": Scenario(of("MPI_Recv", r1=[10 + L], r2=[19 + L], r3=[28 + L]), 0, "MPI_Recv", steady=False),
    # Rank r has the token at r (5 + L); rank 0 waits for it from 5 to when rank 3 sends it.
    "token": Scenario(of("MPI_Recv", r1=[5], r2=[10 + L], r3=[15 + 2 * L], r0=[15 + 3 * L]), steady=False),
    # Rank 3 has its message at 20 + L, when it sends its own.
    "red-black": Scenario(of("MPI_Recv", r3=[20], r0=[20 + L]), 2, "MPI_Recv", indirect=PASSED_ON),
    "writer": Scenario(of("MPI_Allreduce", r0=[15], r1=[15], r2=[15]), 3, "MPI_Allreduce", steady=False),
}  # fmt: skip


Row: TypeAlias = "tuple[int, str, str]"
"""Rank, function and call path."""


@dataclass(eq=False)
class _Operation:
    """A blocking call, or a request with the call that completed it."""

    rank: int
    kind: str
    begin: int
    end: int
    completed_by: _core.RecordedCall
    partner: _Operation | None = None
    """The other end of a message."""
    tag: int = 0
    may_wait: bool = True
    """False: short messages go eagerly."""
    until: int = 0
    """Begin of the one that a collective waits for; of those that wait for nobody 0."""


KINDS = {
    name: kind
    for kind, names in {
        "all": "barrier allreduce allgather allgatherv alltoall alltoallv alltoallw reduce_scatter"
        " reduce_scatter_block",
        "from root": "bcast scatter scatterv",
        "to root": "reduce gather gatherv",
        "scan": "scan exscan",
        "send": "send ssend rsend bsend",
        "receive": "recv",
    }.items()
    for name in names.split()
}
COMPLETES = re.compile(r"MPI_(Wait|Test|Sendrecv|Request_free|Finalize).*")


def waits_shown(job: Job) -> dict[Row, float]:
    """Compute the seconds waited for others from the calls themselves, of one node, by the definitions of the guide."""
    operations: list[_Operation] = []
    requests: list[_Operation] = []
    begun: dict[tuple[int, int, int], list[_Operation]] = defaultdict(list)
    sends: dict[tuple[int, int, int, int], list[_Operation]] = defaultdict(list)
    receives: dict[tuple[int, int, int, int], list[_Operation]] = defaultdict(list)
    collectives: dict[tuple[int, int, int], list[tuple[int, int, _Operation]]] = defaultdict(list)
    world = {
        (one.id, one.rank): process.recorded.rank for process in job.processes for one in process.recorded.communicators
    }
    for process in job.processes:
        rank = process.recorded.rank
        starts: dict[tuple[int, int], int] = defaultdict(int)
        for call, by in _with_completing(process.calls()):
            kind, nonblocking = _kind_of(call)
            communicator = process.communicator(call.communicator)
            if not kind or communicator is None:
                continue
            one = _Operation(rank, kind, call.begin_real_ns, _end(by), by, tag=call.tag)
            one.may_wait = call.bytes >= 1024 or "ssend" in call.function.lower()
            other = world.get((communicator.id, call.peer))
            # A send is there from its call on, also where its request is freed; a persistent one from each start on.
            if kind == "send" and other is not None and call.is_request == ("_init" in call.function):
                sends[communicator.id, rank, other, call.tag].append(one)
                begun[rank, call.begin_real_ns, call.tag].append(one)
            if nonblocking != call.is_request:
                continue
            if kind == "send":
                requests.append(one)
            elif kind == "receive" and other is not None:
                receives[communicator.id, other, rank, call.tag].append(one)
            elif kind != "receive":
                # The starts of a persistent collective have one number.
                starts[communicator.id, call.instance] += 1
                key = (communicator.id, call.instance, starts[communicator.id, call.instance])
                collectives[key].append((communicator.rank, call.peer, one))
            operations.append(one)
    for channel, sent in sends.items():
        sent.sort(key=lambda one: one.begin)
        received = sorted(receives[channel], key=lambda one: one.begin)
        for send, receive in zip(sent, received, strict=False):
            send.partner, receive.partner = receive, send
    for one in requests:
        if same := begun[one.rank, one.begin, one.tag]:
            one.partner = same.pop(0).partner
    for members in collectives.values():
        for own, root, one in members:
            one.until = max((other.begin for r, _, other in members if _waits(one.kind, own, r, root)), default=0)
    longest: dict[int, tuple[int, _core.RecordedCall, int]] = {}
    for one in operations:
        call = one.completed_by
        until = one.until
        if one.partner and (one.kind == "receive" or (one.may_wait and one.end > one.partner.begin)):
            until = one.partner.begin
        waited = 0 if call.function.startswith("MPI_Test") else max(0, min(until, one.end) - call.begin_real_ns)
        if id(call) not in longest or waited > longest[id(call)][2]:
            longest[id(call)] = (one.rank, call, waited)
    paths = {process.recorded.rank: [_text(path) for path in process.recorded.paths] for process in job.processes}
    found: dict[Row, float] = defaultdict(float)
    for rank, call, waited in longest.values():
        found[rank, call.function, paths[rank][call.path]] += waited * 1e-9
    return found


def _kind_of(call: _core.RecordedCall) -> tuple[str, bool]:
    """Return what a call is, and whether it only starts it. The receive of an MPI_Sendrecv is recorded as a request."""
    name = call.function.removeprefix("MPI_").lower().removesuffix("_c")
    plain = name.removesuffix("_init")
    if plain.removeprefix("i").startswith("sendrecv"):
        return ("receive" if call.is_request else "send"), call.is_request
    if plain in KINDS:
        return KINDS[plain], plain != name
    return KINDS.get(plain.removeprefix("i"), ""), True


def _waits(kind: str, own: int, other: int, root: int) -> bool:
    """Whether in a collective a rank waits for another one."""
    if kind == "from root":
        return own != root and other == root
    return kind == "all" or (kind == "to root" and own == root) or (kind == "scan" and other <= own)


def _with_completing(
    calls: Sequence[_core.RecordedCall],
) -> Iterable[tuple[_core.RecordedCall, _core.RecordedCall]]:
    """Yield blocking calls with themselves, and requests with the call that completed them, whose end is theirs."""
    completing = [one for one in calls if COMPLETES.match(one.function) and not one.is_request]
    for call in calls:
        if not call.is_request:
            yield call, call
            continue
        # Ends are rounded, by the more the longer something took. Of calls that end in the same simulated nanosecond
        # the first has completed it.
        yield call, min(completing, key=lambda one: (abs(_end(one) - _end(call)), one.begin_real_ns))


def _end(call: _core.RecordedCall) -> int:
    return call.begin_real_ns + round(call.seconds * 1e9)


def _text(path: Sequence[_core.RecordedFrame]) -> str:
    return ";".join(f"{frame.module}@{frame.build_id}+{frame.offset}" for frame in path)


def analysed(job: Job) -> _core.Waits:
    """Return what the analysis finds, of one node, after comparing its sums with each other and with the records'."""
    waits = _core.find_waits([_core.TraceFile(str(path)) for path in {process.file for process in job.processes}])
    for row in waits.rows:
        split = row.split
        parts = (split.waiting_s, split.bound_s, split.excess_s, split.completion_s)
        assert min(parts) > -1e-12
        assert sum(parts) == pytest.approx(split.seconds, abs=1e-9)
        assert row.longest_wait_s <= split.waiting_s + 1e-9
    assert sum(cause.waiting_s for cause in waits.causes) == pytest.approx(
        sum(row.split.waiting_s for row in waits.rows), rel=1e-6, abs=1e-9
    )
    in_calls: dict[tuple[int, str], float] = defaultdict(float)
    for process in job.processes:
        for call in process.calls():
            if not call.is_request:
                in_calls[process.recorded.rank, call.function] += call.seconds
    for row in waits.rows:
        in_calls[waits.ranks[row.process], waits.functions[row.function]] -= row.split.seconds
    assert all(abs(left) < 1e-6 for left in in_calls.values())
    return waits


def waits_found(waits: _core.Waits) -> dict[Row, float]:
    """Return the waiting seconds that the analysis finds."""
    return {
        (waits.ranks[row.process], waits.functions[row.function], waits.paths[row.path]): row.split.waiting_s
        for row in waits.rows
    }


_FUNCTION = re.compile(r"planted(?:::|\d+)([a-z0-9_]+)")
"""Function of the scenario; its name may be as the linker knows it: _ZN7planted4onceEi."""


def scenarios_of(paths: Iterable[str]) -> dict[str, str]:
    """Return the scenario from which each call path starts, as far as it starts from one."""
    resolver = Resolver()
    frames = {path: frames_of(path) for path in paths}
    resolver.add(frame for own in frames.values() for frame in own)
    found = {}
    for path, own in frames.items():
        for place in (place for frame in own for place in resolver.places(frame)):
            match = _FUNCTION.search(place.function)
            if match and (name := match[1].replace("_", "-")) in SCENARIOS:
                found[path] = name
                break
    return found
