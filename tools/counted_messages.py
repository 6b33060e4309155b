"""Which of MPI's functions send the program's messages, for the communication matrix, and how they are counted.

The list is src/palmette/matrix/functions.txt; tools/generate_recorder.py puts the counting into the recorder's
wrappers.
"""

from __future__ import annotations

from pathlib import Path

from mpi_prototypes import Prototype

KINDS = ("message", "lasting", "neighbours", "exchange", "uncounted")
TO_SEVERAL = {
    "neighbours": "sent_to_neighbours",
    "lasting neighbours": "keep_neighbours",
    "exchange": "exchanged",
    "lasting exchange": "keep_exchange",
}
"""What counts a call with a block for each of several ranks."""


def functions_of(kind: str, name: str) -> dict[str, str]:
    """Return the MPI functions that one line of the list stands for, each with its kind."""
    if kind not in ("neighbours", "exchange"):
        return {name: kind, f"{name}_c": kind}
    nonblocking = f"MPI_I{name.removeprefix('MPI_').lower()}"
    return {
        **{form: kind for plain in (name, nonblocking) for form in (plain, f"{plain}_c")},
        **dict.fromkeys((f"{name}_init", f"{name}_init_c"), f"lasting {kind}"),
    }


def read_kinds(path: Path) -> dict[str, str]:
    """Return each function of the list with its kind. Raises ValueError with the line that has no known kind."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in KINDS:
            raise ValueError(f"{path}:{number}: '{line}' is not one of {', '.join(KINDS)} with an MPI_NAME")
        found.update(functions_of(*words))
    return found


def counted(prototype: Prototype, kind: str) -> str:
    """Return the statement that counts a successful call."""
    names = [p.name for p in prototype.parameters]
    request = "*request, " if "lasting" in kind else ""
    counters = "Counters::instance()"
    if kind == "uncounted":
        return f"{counters}.one_sided()"
    if kind in TO_SEVERAL:
        blocks = [next(name for name in (f"send{what}s", f"send{what}") if name in names) for what in ("count", "type")]
        if "exchange" in kind:  # in place, the arguments of the sending side mean nothing
            blocks = [f"sendbuf == MPI_IN_PLACE ? {name.replace('send', 'recv')} : {name}" for name in blocks]
        return f"{counters}.{TO_SEVERAL[kind]}({request}comm, matrix::Blocks({', '.join(blocks)}))"
    count, datatype = ("sendcount", "sendtype") if "sendcount" in names else ("count", "datatype")
    if "partitions" in names:
        count = f"static_cast<std::int64_t>(partitions) * {count}"
    return f"{counters}.{'keep' if request else 'sent'}({request}comm, dest, {count}, {datatype})"
