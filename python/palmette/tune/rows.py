"""From verdicts to rows of a decision table, in front of the rows that were there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

from palmette import _core
from palmette.tune.candidates import sizes_unknown
from palmette.tune.decide import Verdict
from palmette.tune.results import TABLE
from palmette.tune.validity import Range
from palmette.units import time_text

TUNED = "tuned "
"""What the `why` of a tuned row begins with."""


@dataclass(frozen=True)
class Surroundings:
    """The conditions of a row's measurement. `oversubscribed`: more ranks than cores on some host; None: unknown."""

    mpi: str
    scattered: bool
    oversubscribed: bool | None
    date: str
    place: str


@dataclass(frozen=True)
class FinalVerdict:
    """A final verdict, with the present choice's specification and the jobs for which it holds.

    `confirmed`: by a separate job, whose samples took no part in the choice.
    """

    verdict: Verdict
    before: str
    holds: Range
    confirmed: bool = True


def rows_of(
    decided: Sequence[FinalVerdict], around: Surroundings, *, unconfirmed: bool = False
) -> list[dict[str, Any]]:
    """Return the rows for cells of one MPI and placement: one for each run of sizes with the same choice.

    A choice that no separate job confirmed gives no row, unless `unconfirmed`.

    A row reaches from the smallest to the largest size at which its choice was measured; two different choices meet
    at the geometric mean. Where the present choice stays there is no row. Functions whose ranks don't know the sizes
    get a row only where one choice is best at some size and nowhere worse.
    """
    rows = []
    by_function: dict[str, list[FinalVerdict]] = {}
    for one in sorted(decided, key=lambda one: one.verdict.cell):
        if not (one.confirmed or unconfirmed):
            one = replace(one, verdict=replace(one.verdict, spec=TABLE))
        by_function.setdefault(one.verdict.cell.function, []).append(one)
    for function, found in by_function.items():
        if function == "barrier" or sizes_unknown(function):
            rows += _without_sizes(function, found, around)
        else:
            rows += _with_sizes(function, found, around)
    return rows


def _with_sizes(function: str, found: Sequence[FinalVerdict], around: Surroundings) -> list[dict[str, Any]]:
    rows = []
    runs: list[list[FinalVerdict]] = []
    for one in found:
        if runs and runs[-1][-1].verdict.spec == one.verdict.spec:
            runs[-1].append(one)
        else:
            runs.append([one])
    for number, run in enumerate(runs):
        if run[0].verdict.spec == TABLE:
            continue
        low, high = run[0].verdict.cell.size_bytes, run[-1].verdict.cell.size_bytes
        before = runs[number - 1] if number else None
        after = runs[number + 1] if number + 1 < len(runs) else None
        if before is not None and before[0].verdict.spec != TABLE:
            low = _between(before[-1].verdict.cell.size_bytes, low) + 1
        if after is not None and after[0].verdict.spec != TABLE:
            high = _between(high, after[0].verdict.cell.size_bytes)
        rows.append(_row(function, run, around, {"min_bytes": low, "max_bytes": high}))
    return rows


def _without_sizes(function: str, found: Sequence[FinalVerdict], around: Surroundings) -> list[dict[str, Any]]:
    choices = {one.verdict.spec for one in found} - {TABLE}
    if len(choices) != 1:
        return []
    run = [one for one in found if one.verdict.spec != TABLE]
    # At the other sizes the choice wasn't better, and hasn't been shown to be no worse.
    return [_row(function, run, around, {})] if len(run) == len(found) else []


def _between(low: int, high: int) -> int:
    return isqrt(low * high)


def _row(function: str, run: Sequence[FinalVerdict], around: Surroundings, sizes: Mapping[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"function": function, **sizes}
    # Where the range differs between sizes the row holds where all do.
    holds = Range(
        max(one.holds.min_ranks for one in run),
        min(one.holds.max_ranks for one in run),
        max(one.holds.min_nodes for one in run),
        min(one.holds.max_nodes for one in run),
        max(one.holds.min_switches for one in run),
        min(one.holds.max_switches for one in run),
    )
    row |= {
        "min_ranks": holds.min_ranks, "max_ranks": holds.max_ranks, "min_nodes": holds.min_nodes,
        "max_nodes": holds.max_nodes, "min_switches": holds.min_switches, "max_switches": holds.max_switches,
    }  # fmt: skip
    if around.mpi:
        row["mpi"] = around.mpi
    row["scattered"] = around.scattered
    if around.oversubscribed is not None:
        row["oversubscribed"] = around.oversubscribed
    row["blocking"] = True
    row["algorithm"] = run[0].verdict.spec
    row["why"] = f"{TUNED}{around.date} on {around.place}: " + "; ".join(map(_times_text, _shown(run)))
    return row


def _shown(run: Sequence[FinalVerdict]) -> Sequence[FinalVerdict]:
    """The first and the last size of a run."""
    return run if len(run) <= 2 else (run[0], run[-1])


def _times_text(one: FinalVerdict) -> str:
    verdict = one.verdict
    size = f"{_core.format_size(verdict.cell.size_bytes)} " if verdict.cell.size_bytes else ""
    text = f"{size}{time_text(verdict.time_s)} against {time_text(verdict.present_s)} by {one.before}"
    if not one.confirmed:
        text += " (not confirmed)"
    if verdict.mpi_s is not None and verdict.spec != "mpi" and one.before != "mpi":
        text += f", {time_text(verdict.mpi_s)} by the MPI"
    return text


def merged(new: Sequence[Mapping[str, Any]], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table document: the new rows in front of a table's, without older tuned rows that they cover fully."""
    kept = [row for row in base["rows"] if not (_is_tuned(row) and any(_covers(one, row) for one in new))]
    sources = {"sources": base["sources"]} if "sources" in base else {}
    document = {"format": "palmette-table", "version": 1, **sources, "rows": [*map(dict, new), *kept]}
    _core.Table.from_json(document)  # names and keys are checked here
    return document


def _is_tuned(row: Mapping[str, Any]) -> bool:
    return str(row.get("why", "")).startswith(TUNED)


def _covers(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    if any(new.get(key) != old.get(key) for key in ("function", "mpi", "scattered", "oversubscribed", "blocking")):
        return False
    return all(
        _limit(new, f"min_{what}", 0) <= _limit(old, f"min_{what}", 0)
        and _limit(new, f"max_{what}", 1 << 62) >= _limit(old, f"max_{what}", 1 << 62)
        for what in ("bytes", "ranks", "nodes", "switches")
    )


def _limit(row: Mapping[str, Any], key: str, default: int) -> int:
    value = row.get(key, default)
    return _core.parse_size(value) if isinstance(value, str) else int(value)
