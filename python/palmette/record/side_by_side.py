"""Two runs of a program side by side: rows of samples of the later one, with the time that they had in the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Key = tuple[str, ...]


def side_by_side(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the samples of the later run (`palmette.record.sampled.document`) with those of the other one: each row of
    `tree`, `callers` and `functions` has `before_s`, and its place in the later run's own list as `index`, None where
    it is only in the other. Loops are matched by their order in a function: lines move with edits. Cost: O(rows).
    """
    views = ("tree", "callers", "functions")
    return {**after, **{name: _merged(before[name], after[name]) for name in views}}


def _merged(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    rows: dict[Key, Row] = {}
    for index, (key, row) in enumerate(zip(_keys(after), after, strict=True)):
        rows.setdefault(key, {**row, "before_s": 0.0, "index": index})
    for key, row in zip(_keys(before), before, strict=True):
        if key in rows:
            rows[key]["before_s"] += row["cpu_s"]
        else:
            rows[key] = {
                "depth": row.get("depth", 0), "function": row["function"], "file": row["file"], "kind": row["kind"],
                "lines": [], "cpu_s": 0.0, "own_s": 0.0, "is_hot": False, "before_s": row["cpu_s"], "index": None,
            }  # fmt: skip
    below: dict[Key, list[Key]] = defaultdict(list)
    for key in rows:
        below[key[:-1]].append(key)
    found = []
    left: list[Key] = [()]
    while left:
        key = left.pop()
        if key:
            found.append(rows[key])
        left += sorted(below[key], key=lambda one: max(rows[one]["cpu_s"], rows[one]["before_s"]))
    return found


def _keys(rows: Sequence[Row]) -> list[Key]:
    """Return what rows are called from the outside in, whatever their lines."""
    numbers = _numbers_of_loops(rows)
    keys: list[Key] = []
    above: list[str] = []
    for at, row in enumerate(rows):
        depth = row.get("depth", 0)
        name = f"loop {numbers[at]}" if row["kind"] == "loop" else row["function"]
        above[depth:] = [f"{name}\n{Path(row['file'] or '').name}\n{row['kind']}"]
        keys.append(tuple(above))
    return keys


def _numbers_of_loops(rows: Sequence[Row]) -> dict[int, int]:
    """Return the numbers of loops among those of the same function or loop, by their lines."""
    siblings: dict[int, list[int]] = defaultdict(list)
    above: list[int] = []
    for at, row in enumerate(rows):
        depth = row.get("depth", 0)
        if row["kind"] == "loop":
            siblings[above[depth - 1] if depth else -1].append(at)
        above[depth:] = [at]

    def line(at: int) -> int:
        number = rows[at]["function"].rpartition(":")[2]
        return int(number) if number.isdigit() else 0

    return {at: number for own in siblings.values() for number, at in enumerate(sorted(own, key=line), 1)}
