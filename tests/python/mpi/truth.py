"""What a recording holds, added up from its calls without the code under test: converted files are compared with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from palmette import _core
from palmette.record.reading import read_job

Key = tuple[int, str]
"""Rank and function."""
Message = tuple[int, int, int]
"""Ranks of sender and receiver, tag."""
SENDS = ("MPI_Send", "MPI_Isend", "MPI_Send_init", "MPI_Sendrecv")
RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Recv_init", "MPI_Sendrecv")
COLLECTIVES = (
    "MPI_Bcast", "MPI_Allreduce", "MPI_Gather", "MPI_Scatter", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Iallgather",
    "MPI_Barrier",
)  # fmt: skip


@dataclass
class Truth:
    """Calls and requests of the job of tests/mpi/calls.cpp, whose messages are all on MPI_COMM_WORLD."""

    calls: Counter[Key] = field(default_factory=Counter)
    bytes: Counter[Key] = field(default_factory=Counter)
    seconds: dict[Key, float] = field(default_factory=lambda: defaultdict(float))
    requests: Counter[Key] = field(default_factory=Counter)
    sent: Counter[tuple[Message, int]] = field(default_factory=Counter)
    """Messages sent, with their bytes."""
    received: Counter[Message] = field(default_factory=Counter)
    collectives: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Collectives of all ranks, by function and size of the communicator."""
    collective_bytes: int = 0

    @property
    def in_mpi_s(self) -> float:
        """Seconds of all ranks in MPI."""
        return sum(self.seconds.values())

    @property
    def messages(self) -> Counter[Message]:
        """How many of each were sent."""
        found: Counter[Message] = Counter()
        for (message, _), count in self.sent.items():
            found[message] += count
        return found

    def by_rank(self, rank: int) -> dict[str, int]:
        """Return function -> calls."""
        return {function: count for (one, function), count in self.calls.items() if one == rank}


def truth_of(folder: Path) -> Truth:
    """Add up a trace."""
    truth = Truth()
    for process in read_job(folder).processes:
        for call in process.calls():
            _add(truth, process.recorded, call)
    assert truth.messages == truth.received
    return truth


def _add(truth: Truth, process: _core.RecordedProcess, call: _core.RecordedCall) -> None:
    rank, function = process.rank, call.function
    if call.is_request:
        truth.requests[rank, function] += 1
    else:
        truth.calls[rank, function] += 1
        truth.bytes[rank, function] += call.bytes
        truth.seconds[rank, function] += call.seconds
    by_request = function.startswith("MPI_I") or function.endswith("_init")
    if function in SENDS and call.is_request == by_request:
        truth.sent[(rank, call.peer, call.tag), call.bytes] += 1
    if function in RECEIVES and call.is_request == (by_request or function == "MPI_Sendrecv"):
        truth.received[call.peer, rank, call.tag] += 1
    if function in COLLECTIVES and call.is_request == by_request:
        truth.collectives[function, process.communicators[call.communicator].size] += 1
        truth.collective_bytes += call.bytes
