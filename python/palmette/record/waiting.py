"""Who is in which MPI call, and whom it waits for.

Collectives on a communicator come in the same order on all of its ranks, so the n-th on one rank belongs to the n-th on
the others: a rank that is in it waits for those that have begun fewer. A receive waits for its sender, a synchronous
send for its receiver. In a Wait it waits for what its requests wait for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from palmette import _core
from palmette.record.reading import Job, Process

_Waits: TypeAlias = "_core.OpenCall | _core.OutstandingRequest"
ANY = -2
RECEIVES = ("MPI_Recv", "MPI_Probe", "MPI_Mprobe", "MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Irecv", "MPI_Recv_init")
SENDS = (
    "MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Send_init",
    "MPI_Ssend_init", "MPI_Rsend_init",
)  # fmt: skip


@dataclass
class PendingCall:
    """A call that a process is in."""

    process: Process
    call: _core.OpenCall
    since_s: float
    waits_for: list[str] = field(default_factory=list)
    """Names of processes, as far as they can be told."""
    requests: list[_core.OutstandingRequest] = field(default_factory=list)
    """Requests that the call waits for."""


@dataclass
class Collective:
    """A collective that some ranks of its communicator are in and others haven't come to."""

    function: str
    communicator: _core.RecordedCommunicator
    instance: int
    inside: list[PendingCall]
    missing: list[Process]
    """Ranks that have begun fewer collectives on the communicator."""
    unknown: int
    """Ranks of the communicator of which nothing is known."""

    @property
    def since_s(self) -> float:
        """For how long the first of them has been in it."""
        return max(one.since_s for one in self.inside)


@dataclass
class State:
    """A job at one instant."""

    job: Job
    open: list[PendingCall]
    collectives: list[Collective]


def state_of(job: Job, now_ns: int | None = None) -> State:
    """Return who is in which call, now; `now_ns`: at that moment of the nodes' time.

    Cost: O(processes x communicators).
    """
    calls = [
        PendingCall(process, call, max(0.0, ((now_ns or process.now_ns()) - call.begin_real_ns) * 1e-9))
        for process in job.processes
        for call in process.recorded.open
        if process.recorded.state != _core.RecordState.finalized
    ]
    members: dict[int, dict[int, Process]] = defaultdict(dict)
    for process in job.processes:
        for communicator in process.recorded.communicators[1:]:
            if communicator.rank < 0:  # between groups: peers and roots are of the other one
                continue
            members[communicator.id][communicator.rank] = process
    waiting: dict[tuple[int, int], list[tuple[PendingCall, _Waits]]] = defaultdict(list)
    for one in calls:
        one.requests = [one_of for one_of in one.process.recorded.outstanding if one_of.waited_by == one.call.thread]
        both: list[_Waits] = [one.call, *one.requests]
        for what in both:
            where = one.process.communicator(what.communicator)
            if where is None or where.rank < 0:
                continue
            if what.instance:
                waiting[where.id, what.instance].append((one, what))
            elif what.function.removesuffix("_c") in RECEIVES + SENDS:
                if isinstance(what, _core.OpenCall):  # a sender before a receiver
                    one.waits_for += _rank(what.receives_from, members[where.id])
                one.waits_for += _rank(what.peer, members[where.id])
    collectives = [_collective(inside, members) for inside in waiting.values()]
    for found in collectives:
        for one in found.inside:
            one.waits_for += [process.name for process in found.missing]
    for one in calls:
        one.waits_for = list(dict.fromkeys(one.waits_for))
    collectives.sort(key=lambda found: -found.since_s)
    return State(job, sorted(calls, key=lambda one: -one.since_s), collectives)


def _rank(rank: int, members: dict[int, Process]) -> list[str]:
    if rank == ANY:
        return ["any rank"]
    if rank < 0:
        return []
    process = members.get(rank)
    return [process.name if process else f"rank {rank} of its communicator"]


def _collective(inside: list[tuple[PendingCall, _Waits]], members: dict[int, dict[int, Process]]) -> Collective:
    first, what = inside[0]
    communicator = first.process.communicator(what.communicator)
    assert communicator is not None
    there = members[communicator.id]
    missing = []
    for process in there.values():
        own = next(one for one in process.recorded.communicators[1:] if one.id == communicator.id)
        if own.collectives < what.instance:
            missing.append(process)
    missing.sort(key=lambda process: process.recorded.rank)
    return Collective(
        what.function, communicator, what.instance, [one for one, _ in inside], missing, communicator.size - len(there)
    )
