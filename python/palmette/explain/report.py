"""Explaining a run's report: the deciding table row of each entry, its multiple of the bound and predicted costs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.explain.costs import Cost, costs
from palmette.explain.decision import CollectiveCall, limits_of
from palmette.files import parse_json, read_text

_ROW = re.compile(
    r"(?:(?:up to|from|counts repeat|\d)[^:;]*: )?table row (\d+)(?:: (.*?))?"
    r"(?:; (?:table row|the model gives it) .*)?$"
)
"""Pattern of the reason: the deciding row, optionally after its sizes; the first row where there are several."""


class ReportError(Exception):
    """A report can't be explained; one line with what, where and what to do next."""


@dataclass(frozen=True)
class CallSummary:
    """Calls of one kind. `algorithm`: mpi where left to the MPI. `row`, `limits`: of the table, where a row decided."""

    function: str
    size: str
    calls: int
    algorithm: str
    reason: str
    row: int | None
    limits: str
    mean_s: float | None
    bound_s: float | None = None
    multiple: float | None = None
    """The mean as a multiple of the bound, where each call has one."""
    predicted: tuple[Cost, ...] = ()
    """The chosen algorithm and the best others by the model, for calls of `predicted_bytes` by all ranks, root 0."""
    predicted_bytes: int | None = None
    """The calls' size; for several sizes the mean of the smallest and the largest, as a report has no others."""
    compared: Comparison | None = None


@dataclass(frozen=True)
class Comparison:
    """Median times of paired calls, one by palmette and one by the MPI, over the sizes of a class."""

    pairs: int
    ours_s: float
    mpi_s: float


def _writes(path: Path) -> str:
    return f"palmette run --report {shlex.quote(str(path))} mpiexec ..."


def read_report(path: Path) -> dict[str, Any]:
    """Return a report as `palmette run --report FILE.json` writes it. Raises ReportError."""
    try:
        report = parse_json(read_text(path))
    except FileNotFoundError:
        raise ReportError(f"{path}: no such file; `{_writes(path)}` writes one") from None
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: can't be read: {error}; write it again with `palmette run --report`") from None
    if not isinstance(report, dict) or report.get("format") != "palmette-report":
        raise ReportError(f"{path}: no report of a run; `{_writes(path)}` writes one")
    return report


def explain(
    report: dict[str, Any], table: _core.Table, name: str, model: bool = False
) -> tuple[list[CallSummary], list[str]]:
    """Return the explanation of each row of a report, served ones first, and notes about what can't be explained.

    A row's number is looked up in the table; where that row differs, the run had another table. `model`: also predict
    the times of other algorithms.
    """
    notes: dict[str, None] = {}
    found = []
    job = _job(report)
    for call in report.get("calls", []):
        row, limits = _look_up(str(call["reason"]), call["function"], table, name, notes)
        blocking = "" if call.get("blocking", True) else "nonblocking "
        asked = _asked(job, call) if model and job is not None else None
        predicted = tuple(costs(asked, str(call["algorithm"]), most=3)) if asked is not None else ()
        found.append(
            CallSummary(
                blocking + call["function"], _sizes(call["min_bytes"], call["max_bytes"]), int(call["calls"]),
                str(call["algorithm"]), str(call["reason"]), row, limits, float(call["mean_seconds"]),
                *_limit(call), predicted, asked.size_bytes if asked is not None and predicted else None,
                _compared(report, call),
            )
        )  # fmt: skip
    for call in report.get("fallbacks", []):
        detail = str(call.get("detail", ""))
        row, limits = _look_up(detail, call["function"], table, name, notes)
        reason = detail if call["reason"] == "chosen" and detail else ": ".join(filter(None, (call["reason"], detail)))
        found.append(CallSummary(call["function"], "", int(call["calls"]), "mpi", reason, row, limits, None))
    return found, list(notes)


def _job(report: dict[str, Any]) -> _core.Job | None:
    """The placement of all ranks as recorded by the run; None where the report has none."""
    try:
        return _core.Job.from_json(report["job"])
    except (KeyError, _core.Error):
        return None


def _asked(job: _core.Job, call: dict[str, Any]) -> CollectiveCall | None:
    """A call by all ranks with the mean of a row's smallest and largest size; None where that isn't known."""
    smallest, largest = int(call["min_bytes"]), int(call["max_bytes"])
    if smallest < 0 or largest < 0:
        return None
    function = str(call["function"])
    return CollectiveCall(function, (smallest + largest) // 2, 0, job, blocking=bool(call.get("blocking", True)))


def _limit(call: dict[str, Any]) -> tuple[float | None, float | None]:
    if "bounds" not in call:
        return None, None
    multiple = float(call["bounds"])
    return float(call["mean_seconds"]) / multiple, multiple


def _compared(report: dict[str, Any], call: dict[str, Any]) -> Comparison | None:
    for row in report.get("compared", []):
        same = row["function"] == call["function"] and row["algorithm"] == call["algorithm"]
        # A size class is identified by its largest size.
        if same and int(row["pairs"]) > 0 and call["max_bytes"] <= row["max_bytes"] < 2 * max(call["max_bytes"], 1):
            return Comparison(int(row["pairs"]), float(row["ours_seconds"]), float(row["mpi_seconds"]))
    return None


def _look_up(
    reason: str, function: str, table: _core.Table, name: str, notes: dict[str, None]
) -> tuple[int | None, str]:
    match = _ROW.match(reason)
    if match is None:
        return None, ""
    number, why = int(match[1]), match[2] or ""
    rows = table.rows
    # Irregular exchanges whose counts repeat are chosen by the rows of the regular one.
    of_function = "alltoall" if reason.startswith("counts repeat") else function
    if number >= len(rows) or rows[number].function != of_function or rows[number].why != why:
        notes[f"the run had another table than {name}: name it with --table to see the limits of its rows"] = None
        return number, ""
    return number, limits_of(rows[number])


def _sizes(low: int, high: int) -> str:
    if low < 0:
        return "unknown size"
    return _core.format_size(low) if low == high else f"{_core.format_size(low)} to {_core.format_size(high)}"
