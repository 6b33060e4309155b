"""Samples of two runs side by side."""

from __future__ import annotations

from typing import Any

from palmette.record.side_by_side import side_by_side


def row(depth: int, function: str, cpu_s: float, kind: str = "native") -> dict[str, Any]:
    return {"depth": depth, "function": function, "file": "/src/a.c", "kind": kind, "lines": [], "cpu_s": cpu_s}


def test_rows_of_both_runs_are_one_tree() -> None:
    before = [
        row(0, "main", 9), row(1, "loop at a.c:5", 6, "loop"), row(2, "slow", 6), row(1, "loop at a.c:9", 3, "loop"),
        row(2, "gone", 3),
    ]  # fmt: skip
    # A line was put in before both loops, and the second one has become the heavier one.
    after = [
        row(0, "main", 7), row(1, "loop at a.c:10", 5, "loop"), row(2, "made", 5), row(1, "loop at a.c:6", 2, "loop"),
        row(2, "slow", 2),
    ]  # fmt: skip
    nothing: dict[str, Any] = {"tree": [], "callers": [], "functions": []}
    found = side_by_side({**nothing, "tree": before}, {**nothing, "tree": after})["tree"]
    assert [(one["depth"], one["function"], one["cpu_s"], one["before_s"], one["index"]) for one in found] == [
        (0, "main", 7, 9, 0), (1, "loop at a.c:6", 2, 6, 3), (2, "slow", 2, 6, 4), (1, "loop at a.c:10", 5, 3, 1),
        (2, "made", 5, 0.0, 2), (2, "gone", 0.0, 3, None),
    ]  # fmt: skip


def test_flat_rows_have_no_depth() -> None:
    flat = {"function": "f", "file": None, "kind": "mpi", "cpu_s": 2.0, "own_s": 1.0}
    empty: dict[str, Any] = {"tree": [], "callers": [], "functions": []}
    found = side_by_side(empty, {**empty, "functions": [flat]})["functions"]
    assert [(one["function"], one["before_s"], one["index"]) for one in found] == [("f", 0.0, 0)]
