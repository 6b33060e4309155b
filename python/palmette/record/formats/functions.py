"""What MPI functions do, as their names say: which send, which receive, which only start what completes later."""

from __future__ import annotations

from functools import cache

from palmette.record.formats.selection import Call

COLLECTIVES = frozenset({
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
    "alltoallw", "allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
})  # fmt: skip
SENDS = frozenset({"send", "ssend", "rsend", "bsend", "sendrecv", "sendrecv_replace"})
RECEIVES = frozenset({"recv"})


@cache
def operation(function: str) -> str:
    """Return MPI_Iallgather_c's "allgather": without the marks of nonblocking, persistent and large-count forms."""
    name = function.removeprefix("MPI_").lower().removesuffix("_c").removesuffix("_init")
    plain = COLLECTIVES | SENDS | RECEIVES
    return name[1:] if name not in plain and name.startswith("i") and name[1:] in plain else name


@cache
def only_starts(function: str) -> bool:
    """Whether what a function does is done by the request that it makes."""
    return function.startswith("MPI_I") or "_init" in function


def is_collective(call: Call) -> bool:
    """Whether it stands for a collective: the call itself, or a nonblocking one's request."""
    return (
        call.instance > 0 and call.is_request == only_starts(call.function) and operation(call.function) in COLLECTIVES
    )


def is_send(call: Call) -> bool:
    """Whether it stands for a message that goes out: the call itself, or a nonblocking one's request."""
    if call.peer < 0 or call.communicator == 0:
        return False
    return operation(call.function) in SENDS and call.is_request == only_starts(call.function)


def is_receive(call: Call) -> bool:
    """Whether it stands for a message that comes in. That of an MPI_Sendrecv is its request."""
    if call.peer < 0 or call.communicator == 0:
        return False
    name = operation(call.function)
    if name.startswith("sendrecv"):
        return call.is_request and not only_starts(call.function)
    return name in RECEIVES and call.is_request == only_starts(call.function)


def category(call: Call) -> str:
    """Return a word to color by."""
    if call.is_request:
        return "request"
    if call.instance:
        return "collective"
    return "message" if call.peer != -1 else "other"
