"""Who has sent how much to whom: exactly, for the whole run, of a profile as of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palmette.map.pattern import pattern_of_messages
from palmette.map.traffic_file import RecordedTraffic
from palmette.record.functions import COLLECTIVES, only_starts, operation
from palmette.record.machine import hosts_of
from palmette.record.reading import Job, Process, RecordError, read_job
from palmette.record.timeline import row_name

EXCHANGES = frozenset({"alltoall", "alltoallv", "alltoallw"})
OUTSIDE, OTHERS = -1, -2
"""`RecordedPeer.rank` of processes that aren't in MPI_COMM_WORLD, and of those for which there was no entry."""


@dataclass(frozen=True)
class Pairs:
    """Messages and bytes from rank source[i] to target[i]; a pair may come several times. Arrays of one length."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    messages: NDArray[np.float64]
    bytes: NDArray[np.float64]


@dataclass(frozen=True)
class Matrix:
    """Bytes by sender and receiver: ranks, or groups of successive ranks where a page can't draw all."""

    names: list[str]
    messages: NDArray[np.float64]
    bytes: NDArray[np.float64]
    counted: str
    """What is in it, in a sentence."""


def of_world(job: Job) -> list[Process]:
    """Return the processes of the first MPI_COMM_WORLD, by rank: what these have spawned has ranks of its own."""
    found: dict[int, Process] = {}
    for process in job.processes:
        rank = process.recorded.rank
        known = found.get(rank)
        if rank >= 0 and (known is None or process.recorded.begin_real_ns < known.recorded.begin_real_ns):
            found[rank] = process
    return [found[rank] for rank in sorted(found)]


def own_messages(job: Job) -> Pairs:
    """Return what the program itself has sent point to point. Cost: O(pairs)."""
    return _pairs(
        job,
        (
            (process.recorded.rank, peer.rank, peer.messages, peer.message_bytes)
            for process in of_world(job)
            for peer in process.recorded.peers
            if peer.messages
        ),
    )


def own_blocks(job: Job, *, neighbours: bool = True, exchanges: bool = True) -> Pairs:
    """Return the blocks that collectives over neighbours and all-to-alls have sent whose counts say to whom, as their
    arguments have them; none of a kind of which palmette served some: what their plans sent is known. Cost: O(pairs).
    """
    world = of_world(job)
    served = {operation(plan.function) for process in world for plan in process.recorded.plans[1:] if plan.calls}
    near = int(neighbours and not any(name.startswith("neighbor_") for name in served))
    far = int(exchanges and not served & EXCHANGES)

    def sends() -> Iterator[tuple[int, int, int, int]]:
        for process in world:
            for peer in process.recorded.peers:
                blocks = near * peer.neighbour_blocks + far * peer.exchange_blocks
                if blocks and peer.rank != process.recorded.rank:
                    size = near * peer.neighbour_bytes + far * peer.exchange_bytes
                    yield process.recorded.rank, peer.rank, blocks, size

    return _pairs(job, sends())


def exchanged_by_rank(job: Job) -> dict[int, float]:
    """Return the bytes that each rank gets from others in all-to-alls whose blocks may differ. Cost: O(pairs)."""
    received = dict.fromkeys((process.recorded.rank for process in of_world(job)), 0.0)
    for process in of_world(job):
        for peer in process.recorded.peers:
            if peer.rank in received and peer.rank != process.recorded.rank:
                received[peer.rank] += peer.exchange_bytes
    return received


def served_messages(job: Job) -> Pairs:
    """Return what collectives that palmette served have sent. Cost: O(what plans send)."""
    members: dict[int, dict[int, int]] = {}
    world = of_world(job)
    for process in world:
        for one in process.recorded.communicators[1:]:
            if one.rank >= 0:
                members.setdefault(one.id, {})[one.rank] = process.recorded.rank

    def sends() -> Iterator[tuple[int, int, int, int]]:
        for process in world:
            for plan in process.recorded.plans[1:]:
                known = process.communicator(plan.communicator)
                ranks = members.get(known.id, {}) if known else {}
                for send in plan.sends:
                    yield process.recorded.rank, ranks.get(send.peer, OUTSIDE), send.messages, send.bytes

    return _pairs(job, sends())


def _pairs(job: Job, rows: Iterator[tuple[int, int, int, int]]) -> Pairs:
    size = job.size
    kept = [row for row in rows if row[0] < size and 0 <= row[1] < size]
    columns = np.array(kept, np.float64).reshape(-1, 4).T
    return Pairs(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], columns[3])


def matrix_of(job: Job, most_rows: int) -> Matrix | None:
    """Return the program's own messages, blocks whose counts say to whom they go, and messages of collectives that
    palmette served; None where there are none.

    Cost: O(pairs + what plans send + most_rows^2).
    """
    own, blocks, served = own_messages(job), own_blocks(job), served_messages(job)
    if not (own.messages.any() or blocks.messages.any() or served.messages.any()):
        return None
    each = max(1, -(-job.size // most_rows))
    rows = -(-job.size // each)
    messages, sizes = np.zeros((rows, rows)), np.zeros((rows, rows))
    for pairs in (own, blocks, served):
        at = pairs.source // each, pairs.target // each
        np.add.at(messages, at, pairs.messages)
        np.add.at(sizes, at, pairs.bytes)
    names = [row_name(range(first, min(first + each, job.size))) for first in range(0, job.size, each)]
    counted = "The program's own messages"
    if blocks.messages.any():
        counted += ", blocks of its collectives over neighbours and of all-to-alls"
    if (by_plans := served.bytes.sum()) > 0:
        counted += f", and what collectives that palmette served sent ({by_plans / sizes.sum():.0%} of all)"
    if _has_unserved(job):
        counted += (
            "; how other collectives of the MPI itself travel isn't known"
            if blocks.messages.any()
            else ("; how collectives of the MPI itself travel isn't known")
        )
    return Matrix(names, messages, sizes, counted + ".")


def _has_unserved(job: Job) -> bool:
    """Whether the MPI itself has done a collective that moves data."""
    called = sum(
        one.calls
        for process in job.processes
        for one in process.recorded.aggregates
        if operation(one.function) in COLLECTIVES - {"barrier"} and one.is_request == only_starts(one.function)
    )
    return called > sum(plan.calls for process in job.processes for plan in process.recorded.plans[1:])


def traffic_of(folder: Path) -> RecordedTraffic:
    """Return what a recorded run's program sent and exchanged itself, for `palmette map`, and where its ranks were.

    Messages, blocks of collectives over neighbours, and of all-to-alls those that depend on the order of ranks. Raises
    RecordError. Cost: as `read_job`, and O(pairs).
    """
    job = read_job(folder)
    if missing := job.missing_ranks():
        raise RecordError(
            f"{folder}: it lacks what rank {missing[0]} sent; copy all nodes' files of the recording into one folder"
        )
    sent: list[tuple[int, int, float]] = []
    exchanged = 0.0
    lost = {OUTSIDE: 0, OTHERS: 0}
    one_sided = uncounted = 0
    world = of_world(job)
    for process in world:
        recorded = process.recorded
        one_sided += recorded.one_sided
        uncounted += recorded.uncounted
        for peer in recorded.peers:
            if peer.rank in lost:
                lost[peer.rank] += peer.messages + peer.neighbour_blocks + peer.exchange_blocks
            elif peer.rank < job.size:
                if peer.messages or peer.neighbour_blocks:
                    sent.append((recorded.rank, peer.rank, peer.message_bytes + peer.neighbour_bytes))
                if peer.exchange_bytes and peer.rank != recorded.rank:
                    sent.append((recorded.rank, peer.rank, peer.exchange_bytes))
                    exchanged += peer.exchange_bytes
    lacks = (
        (lost[OUTSIDE], "messages to processes outside of MPI_COMM_WORLD"),
        (lost[OTHERS], "messages to ranks for which there was no room"),
        (one_sided, "one-sided calls"),
        (uncounted, "persistent sends for which there was no room"),
        (len(job.processes) - len(world), "spawned processes"),
    )
    hosts, _ = hosts_of(job)
    return RecordedTraffic(
        pattern_of_messages(folder.name, job.size, sent, exchanged),
        tuple(hosts or ()),
        tuple(f"{count:,} {what}" for count, what in lacks if count),
    )
