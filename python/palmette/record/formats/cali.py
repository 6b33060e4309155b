"""Caliper's text records (.cali), which caliper-reader, Hatchet and Thicket read.

A record for each rank, call path and function, with the names that Hatchet knows: `mpi.rank`, `sum#time.duration` in
seconds, besides `calls` and `bytes`. The stack is the nested attribute `function`. With samples, what lies outside of
MPI has records, too, whose time is processor time.

Callers have records of zeros, and ranks are nodes instead of values: otherwise Hatchet fills in rows itself, the root
twice, and Thicket, which joins the files of several runs, refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TextIO

from palmette.record.contexts import Site
from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import computing_of, sampled_words, without_starts, words

# Numbers that the format has from the beginning: types, and what an attribute is described by.
TYPES = {"int": 1, "uint": 2, "string": 3, "double": 5}
ATTRIBUTE_NAME, ATTRIBUTE_PROPERTIES = 8, 10
FIRST_FREE = 12
AS_VALUE, PER_PROCESS, NESTED, GLOBAL, AGGREGATABLE = 1, 12, 256, 512, 2048
"""Properties of an attribute: AS_VALUE, its values stand in records themselves; NESTED, its nodes are a stack."""


class _Writer:
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._next = FIRST_FREE
        self._nodes: dict[tuple[int, str, int | None], int] = {}

    def attribute(self, name: str, kind: str, properties: int) -> int:
        """Define an attribute and return its number."""
        described = self.node(ATTRIBUTE_PROPERTIES, str(properties), TYPES[kind])
        return self.node(ATTRIBUTE_NAME, name, described)

    def node(self, attribute: int, value: str, parent: int | None) -> int:
        """Return the number of an attribute's value below a node; each is written once."""
        key = attribute, value, parent
        if key not in self._nodes:
            self._nodes[key] = self._next
            below = "" if parent is None else f",parent={parent}"
            self._file.write(f"__rec=node,id={self._next},attr={attribute},data={_escaped(value)}{below}\n")
            self._next += 1
        return self._nodes[key]

    def record(self, kind: str, nodes: Sequence[int], values: dict[int, object]) -> None:
        """Write a record: what its nodes and all above them say, and values."""
        reference = f",ref={'='.join(map(str, nodes))}" if nodes else ""
        attributes = "=".join(map(str, values))
        data = "=".join(_escaped(str(value)) for value in values.values())
        self._file.write(f"__rec={kind}{reference},attr={attributes},data={data}\n")


def write(path: Path, selection: Selection) -> Counts:
    """Write the sums of a selection. Cost: O(sums); of a window O(calls)."""
    counts = Counts()
    with path.open("w", encoding="utf-8") as file:
        writer = _Writer(file)
        function = writer.attribute("function", "string", NESTED)
        rank = writer.attribute("mpi.rank", "int", PER_PROCESS)
        metric = AS_VALUE | AGGREGATABLE
        calls = writer.attribute("calls", "uint", metric)
        size = writer.attribute("bytes", "uint", metric)
        time = writer.attribute("sum#time.duration", "double", metric)
        computing: dict[int, list[tuple[list[Site], float]]] = dict(computing_of(selection))
        for index in selection.chosen:
            sampled = computing.pop(selection.everyone[index].recorded.rank, [])
            own = writer.node(rank, str(selection.everyone[index].recorded.rank), None)
            for stack, row in _rows(selection, index, counts, sampled).items():
                node = None
                for word in stack:
                    node = writer.node(function, word, node)
                if node is not None:
                    writer.record("ctx", (node, own), {calls: row.calls, size: row.bytes, time: f"{row.seconds:.9f}"})
        _about(writer, selection)
    return counts


@dataclass
class _Row:
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0


def _rows(
    selection: Selection, index: int, counts: Counts, sampled: Sequence[tuple[list[Site], float]]
) -> dict[tuple[str, ...], _Row]:
    """Return a process's sums by call path and function, and zeros for all callers, each before what it calls."""
    rows: dict[tuple[str, ...], _Row] = {}

    def row_of(stack: tuple[str, ...]) -> _Row:
        for length in range(1, len(stack)):
            rows.setdefault(stack[:length], _Row())
        return rows.setdefault(stack, _Row())

    for one in selection.sums(index):
        if one.is_request:  # overlaps with calls
            continue
        counts.add_sum(one)
        stack = (*words(selection, one.path), one.function)
        # What starts main isn't told in samples.
        row = row_of(tuple(without_starts(stack)) if sampled else stack)
        row.calls += one.calls
        row.bytes += one.bytes
        row.seconds += one.seconds
    for sites, seconds in sampled:
        row_of(tuple(sampled_words(sites))).seconds += seconds
    return rows


def _about(writer: _Writer, selection: Selection) -> None:
    """Write what is true of the run as a whole: Thicket tells runs apart by it."""
    begin = datetime.fromtimestamp(selection.begin_real_ns * 1e-9, timezone.utc)
    about = {
        "recording": str(selection.job.folder.resolve()),
        "executable": selection.everyone[selection.chosen[0]].recorded.executable,
        "jobsize": str(selection.job.size),
        "launchdate": str(int(begin.timestamp())),
    }
    text = AS_VALUE | GLOBAL
    writer.record("globals", (), {writer.attribute(name, "string", text): value for name, value in about.items()})


def _escaped(value: str) -> str:
    value = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    return value.replace("\n", "\\n")
