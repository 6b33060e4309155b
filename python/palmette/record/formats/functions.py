"""What recorded calls stand for: a message that goes out or comes in, a collective."""

from __future__ import annotations

from palmette.record.formats.selection import Call
from palmette.record.functions import COLLECTIVES, RECEIVES, SENDS, is_started_later, only_starts, operation


def is_collective(call: Call) -> bool:
    """Whether it stands for a collective: the call itself, or a nonblocking one's request."""
    return (
        call.instance > 0 and call.is_request == only_starts(call.function) and operation(call.function) in COLLECTIVES
    )


def is_send(call: Call) -> bool:
    """Whether it stands for a message that goes out: the call itself, or a nonblocking one's request.

    Of an MPI_Sendrecv or MPI_Isendrecv the call sends and its request receives.
    """
    if call.peer < 0 or call.communicator == 0:
        return False
    name = operation(call.function)
    if name.startswith("sendrecv"):
        return not call.is_request
    return name in SENDS and call.is_request == only_starts(call.function)


def starts_send(call: Call) -> bool:
    """Whether it is a call whose request is a message that goes out, from the call on: it arrives, also where the
    request is never completed.
    """
    if call.peer < 0 or call.communicator == 0 or call.is_request:
        return False
    name = operation(call.function)
    return name in SENDS and not name.startswith("sendrecv") and (
        only_starts(call.function) and not is_started_later(call.function)
    )  # fmt: skip


def is_receive(call: Call) -> bool:
    """Whether it stands for a message that comes in."""
    if call.peer < 0 or call.communicator == 0:
        return False
    name = operation(call.function)
    if name.startswith("sendrecv"):
        return call.is_request
    return name in RECEIVES and call.is_request == only_starts(call.function)


def category(call: Call) -> str:
    """Return a word to color by."""
    if call.is_request:
        return "request"
    if call.instance:
        return "collective"
    return "message" if call.peer != -1 else "other"
