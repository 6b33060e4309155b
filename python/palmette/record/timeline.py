"""The timeline of a page: levels of detail, the longest calls and messages one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.columns import packed
from palmette.record.findings import Findings
from palmette.record.tables import Tables


def ranks_of_rows(view: _core.TraceView) -> list[list[int]]:
    """Return the ranks that share each row, in order; not all ranks need be recorded."""
    found: list[list[int]] = [[] for _ in range(view.rows)]
    for rank, row in sorted(zip(view.waits.ranks, view.row_of, strict=True)):
        found[row].append(rank)
    return found


def row_name(ranks: Sequence[int]) -> str:
    """Return what a row of these ranks is called."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"


def timeline(findings: Findings, tables: Tables) -> dict[str, Any] | None:
    """Return the timeline's part of the document; None where nothing is to be drawn. Cost: O(what is drawn)."""
    view = findings.view
    span_ns = view.end_ns - view.begin_ns
    if span_ns <= 0 or view.rows == 0:
        return None
    row_of = np.asarray(view.row_of, np.int64)
    ranks = np.asarray(view.waits.ranks, np.int64)
    hosts = {process.recorded.rank: process.host for process in tables.job.processes}
    by_row = ranks_of_rows(view)
    rows = [{"name": row_name(own), "host": hosts.get(own[0], "")} for own in by_row]
    functions = np.asarray([tables.functions.of(name) for name in view.waits.functions] + [0], np.int64)
    functions = np.minimum(functions, 254)
    columns = {name: np.frombuffer(raw, _KINDS.get(name, np.dtype(np.int64))) for name, raw in view.calls.items()}
    order = np.argsort(columns["begin_ns"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()}
    messages = {name: np.frombuffer(raw, _KINDS.get(name, np.dtype(np.int64))) for name, raw in view.messages.items()}
    places = np.asarray([tables.places.of(str(place)) for place in findings.places] or [0], np.int64)
    unit = span_ns / 2**32

    def times(values: NDArray[Any], since: int = 0) -> str:
        return packed(np.round((values - since) / unit), "u4")

    waits_for = columns["waits_for"]
    return {
        "span_s": span_ns * 1e-9, "rows": rows, "levels": _levels(view, functions),
        "calls": {
            "count": len(order), "total": view.calls_in_all,
            "row": packed(row_of[columns["process"]], "u2"), "begin": times(columns["begin_ns"], view.begin_ns),
            "length": times(columns["length_ns"]), "waiting": times(columns["waiting_ns"]),
            "function": packed(functions[columns["function"]], "u1"), "place": packed(places[columns["path"]], "u2"),
            "bytes": packed(columns["bytes"], "f4"),
            "waits_for": packed(np.where(waits_for >= 0, ranks[np.maximum(waits_for, 0)], -1), "i4"),
        },
        "messages": {
            "count": len(messages["from"]), "total": view.messages_in_all,
            "from": packed(row_of[messages["from"]], "u2"), "to": packed(row_of[messages["to"]], "u2"),
            "sent": times(messages["sent_ns"], view.begin_ns),
            "received": times(messages["received_ns"], view.begin_ns), "bytes": packed(messages["bytes"], "f4"),
        },
    }  # fmt: skip


def critical_path(findings: Findings, stretches: Sequence[tuple[int, int, int]]) -> dict[str, Any] | None:
    """Return the rows and times of the critical path, of many stretches the longest; None where there is none."""
    view = findings.view
    span_ns = view.end_ns - view.begin_ns
    if not stretches or span_ns <= 0:
        return None
    process, begin, end = (np.asarray(column, np.int64) for column in zip(*stretches, strict=True))
    kept = np.sort(np.argsort(begin - end, kind="stable")[:MOST_STRETCHES])
    unit = span_ns / 2**32
    limits = [np.clip(np.round((one[kept] - view.begin_ns) / unit), 0, 2**32 - 1) for one in (begin, end)]
    row_of = np.asarray(view.row_of, np.int64)
    return {
        "count": len(kept), "total": len(stretches), "row": packed(row_of[process[kept]], "u2"),
        "begin": packed(limits[0], "u4"), "end": packed(limits[1], "u4"),
    }  # fmt: skip


MOST_STRETCHES = 20_000
_KINDS: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("process", "waits_for", "function", "path", "from", "to"), np.dtype(np.int32)),
    "bytes": np.dtype(np.float64),
}
COARSENING = 4
"""Bins of a level of detail that the next coarser one has as one."""
FEWEST_BINS = 128


def _levels(view: _core.TraceView, functions: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Return the levels of detail, coarse to fine; a bin takes the function of its part with most time in MPI."""
    mpi, waiting, function = (
        np.frombuffer(raw, np.uint8).reshape(view.rows, view.bins) for raw in (view.mpi, view.waiting, view.function)
    )
    bins = view.bins
    lookup = np.full(256, 255, np.uint8)
    known = min(len(functions) - 1, 255)
    lookup[:known] = functions[:known]
    function = lookup[function]
    levels = []
    while True:
        levels.append(
            {"bins": bins, "mpi": packed(mpi, "u1"), "waiting": packed(waiting, "u1"),
             "function": packed(function, "u1")}
        )  # fmt: skip
        if bins % COARSENING or bins // COARSENING < FEWEST_BINS:
            return levels[::-1]
        bins //= COARSENING
        parts = (view.rows, bins, COARSENING)
        most = mpi.reshape(parts).argmax(axis=2)[..., None]
        function = np.take_along_axis(function.reshape(parts), most, axis=2)[..., 0]
        mpi, waiting = (np.round(values.reshape(parts).mean(axis=2)).astype(np.uint8) for values in (mpi, waiting))
