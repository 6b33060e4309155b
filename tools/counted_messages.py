"""How the recorder counts the bytes of functions that move data (mpi_functions.py): by call, and by the rank that they
go to. Of tools/generate_recorder.py.
"""

from __future__ import annotations

from mpi_functions import COLLECTIVE
from mpi_prototypes import Prototype

TO_SEVERAL = {
    "neighbours": "sent_to_neighbours",
    "lasting neighbours": "keeps_for_neighbours",
    "exchange": "exchanged",
    "lasting exchange": "keeps_exchange",
}
"""What counts a call with a block for each of several ranks by these."""


def _first(prototype: Prototype, *names: str) -> str:
    """Return the first of the names that the function has as a parameter; MPIs name some of them otherwise."""
    have = {p.name for p in prototype.parameters}
    return next(name for name in names if name in have)


def _side(prototype: Prototype, which: str) -> tuple[str, str]:
    """Return count and type, or lists of them, of the side "send" or "recv" of a collective."""
    counts = (f"{which}counts", f"{which}cnts", f"{which}count", "count")  # sendcnts: the simulator's
    return _first(prototype, *counts), _first(prototype, f"{which}types", f"{which}type", "datatype")


def _message(prototype: Prototype) -> tuple[str, str]:
    """Return count and type of what a call sends, or receives where it does nothing else."""
    count = _first(prototype, "sendcount", "origin_count", "count")
    if any(p.name == "partitions" for p in prototype.parameters):
        count = f"static_cast<std::int64_t>(partitions) * {count}"
    return count, _first(prototype, "sendtype", "origin_datatype", "datatype", "type")


def counted(prototype: Prototype, kind: str) -> str:
    """Return the statement that counts what a call has sent by ranks; empty: the program doesn't say which bytes go to
    whom.
    """
    request = "*request, " if "lasting" in kind else ""
    if kind == "one-sided":
        return "call.one_sided()"
    if kind in TO_SEVERAL:
        blocks = list(_side(prototype, "send"))
        if "exchange" in kind:  # in place, the arguments of the sending side mean nothing
            other = _side(prototype, "recv")
            blocks = [f"sendbuf == MPI_IN_PLACE ? {b} : {a}" for a, b in zip(blocks, other, strict=True)]
        return f"call.{TO_SEVERAL[kind]}({request}comm, Blocks({', '.join(blocks)}))"
    if kind not in ("message", "lasting"):
        return ""
    count, datatype = _message(prototype)
    arguments = f"{request}comm, {_first(prototype, 'dest', 'dst')}, {count}, {datatype}"
    return f"call.{'keeps' if request else 'sent'}({arguments})"


def payload(prototype: Prototype, kind: str) -> list[str]:
    """Return the statements by which the recorder counts a call's bytes: what this rank sends, to all ranks together;
    of a receive or a scatter what it gets at most.

    Those of persistent requests are counted when they are started.
    """
    what = kind.removeprefix("lasting ")
    if what in COLLECTIVE:
        return _of_collective(prototype, what)
    if kind == "matched":
        count, datatype = _message(prototype)
        return ["call.takes(*message);", f"if (*message != MPI_MESSAGE_NO_PROC) call.bytes({count}, {datatype});"]
    if kind == "one-sided" and not any(p.name == "origin_count" for p in prototype.parameters):
        return ["call.bytes_of_message(1, datatype);"]
    count, datatype = _message(prototype)
    if kind == "file":
        return [f"call.bytes({count}, {datatype});"]
    return [f"call.bytes_of_message({count}, {datatype});"]


def _of_collective(prototype: Prototype, kind: str) -> list[str]:
    """Return `payload` of a collective. Buffers that are MPI_IN_PLACE leave the other side's arguments."""
    have = {p.name for p in prototype.parameters}
    rooted = ""
    if "root" in have:  # on an inter-communicator some ranks' arguments mean nothing
        broadcast = not {"sendbuf", "recvbuf"} & have
        rooted = f"if ({'takes_part' if broadcast else 'is_rank'}(root)) "
    if kind == "shares":
        count, datatype = _side(prototype, "recv")
        if count == "recvcounts":
            return [f"call.bytes_of_list({count}, {datatype}, comm, true);"]
        return [f"call.bytes_for_all({count}, {datatype}, comm, true);"]
    if kind == "block" and "sendcount" not in have:
        return [f"{rooted}call.bytes(count, datatype);"]
    own, other, buffer = ("recv", "send", "recvbuf") if kind == "scatter" else ("send", "recv", "sendbuf")
    statements = [
        _of_side(*_side(prototype, side), kind) for side in ((own,) if kind == "neighbours" else (own, other))
    ]
    line = statements[0] if kind == "neighbours" else (
        f"if ({buffer} != MPI_IN_PLACE) {statements[0]} else {statements[1]}"
    )  # fmt: skip
    return [f"{rooted}{{ {line} }}" if rooted else line]


def _of_side(count: str, datatype: str, kind: str) -> str:
    """Return the statement that counts one side's blocks: its own block, or that for each rank or neighbour."""
    listed = count.endswith("s")
    if kind in ("block", "scatter"):
        return f"call.bytes_of_own({count}, {datatype}, comm);" if listed else f"call.bytes({count}, {datatype});"
    if kind == "neighbours":
        return f"call.bytes_for_neighbours(Blocks({count}, {datatype}), comm);"
    if datatype.endswith("s"):
        return f"call.bytes_of_lists({count}, {datatype}, comm);"
    several = "bytes_of_list" if listed else "bytes_for_all"
    return f"call.{several}({count}, {datatype}, comm, false);"
