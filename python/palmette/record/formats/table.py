"""Comma-separated values: the calls of a trace one by one, or the sums of a profile."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import words

CALLS = (
    "rank", "thread", "function", "is_request", "begin_s", "seconds", "bytes", "communicator", "communicator_size",
    "peer", "tag", "instance", "algorithm", "called_by", "file", "line",
)  # fmt: skip
SUMS = (
    "rank", "function", "is_request", "calls", "bytes", "seconds", "longest_s", "communicator", "communicator_size",
    "called_by", "file", "line", "path",
)  # fmt: skip


def write(path: Path, selection: Selection) -> Counts:
    """Write the calls of a selection, or its sums where there are no calls. Cost: O(calls) or O(sums)."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        return _calls(rows, selection) if selection.records_calls else _sums(rows, selection)


def _calls(rows: Any, selection: Selection) -> Counts:
    counts = Counts()
    rows.writerow(CALLS)
    for index in selection.chosen:
        rank = selection.everyone[index].recorded.rank
        for call in selection.calls(index):
            communicator = selection.communicators[call.communicator]
            place = selection.place(call.path)
            rows.writerow((
                rank, call.thread, call.function, int(call.is_request), _seconds(call.begin_ns),
                _seconds(call.end_ns - call.begin_ns), call.bytes, *_named(communicator.name, communicator.size),
                call.peer if call.peer >= 0 else "", "" if call.instance or call.peer == -1 else call.tag,
                call.instance or "", call.algorithm, place.function, place.file, place.line or "",
            ))  # fmt: skip
            counts.add(call)
    return counts


def _sums(rows: Any, selection: Selection) -> Counts:
    counts = Counts()
    rows.writerow(SUMS)
    for index in selection.chosen:
        rank = selection.everyone[index].recorded.rank
        for one in selection.sums(index):
            communicator = selection.communicators[one.communicator]
            place = selection.place(one.path)
            rows.writerow((
                rank, one.function, int(one.is_request), one.calls, one.bytes, f"{one.seconds:.9f}",
                f"{one.longest_s:.9f}", *_named(communicator.name, communicator.size), place.function, place.file,
                place.line or "", ";".join(words(selection, one.path)),
            ))  # fmt: skip
            counts.add_sum(one)
    return counts


def _named(name: str, size: int) -> tuple[str, int | str]:
    return (name, size) if size else ("", "")


def _seconds(time_ns: int) -> str:
    """Exactly: a float would have 15 digits, which a long run's nanoseconds need all."""
    return f"{time_ns // 1_000_000_000}.{time_ns % 1_000_000_000:09}"
