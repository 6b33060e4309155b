"""Two runs of one program compared: which functions compute longer, and which calls take longer, than before.

For recordings (`palmette report A B`) and for runs of an archive (`palmette runs A B`) alike. Seconds are per rank:
those of all ranks together divided by their number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palmette.record.contexts import Contexts

COMPUTING, CALLS = "computing", "calls"


@dataclass(frozen=True)
class Key:
    """What takes time."""

    kind: str
    """COMPUTING, by samples but for all of it together, or CALLS."""
    function: str
    """Function of MPI for CALLS, else of the program; empty: all of them."""
    place: str = ""
    """Where calls are made, or the function's file. Lines aren't told apart: they move with every edit."""

    @property
    def name(self) -> str:
        """The key in words."""
        if not self.function:
            return "computing, in all"
        return f"{self.function} {'at' if self.kind == CALLS else 'in'} {self.place}" if self.place else self.function


@dataclass
class RunCost:
    """Seconds and calls of one run, per rank."""

    seconds: float = 0.0
    calls: float = 0.0


@dataclass(frozen=True)
class Change:
    """What a function took in both runs, seconds and calls per rank; None: it wasn't met in that run."""

    key: Key
    before: RunCost | None
    after: RunCost | None

    @property
    def more_s(self) -> float:
        """Seconds that it takes longer than before."""
        return (self.after.seconds if self.after else 0.0) - (self.before.seconds if self.before else 0.0)

    @property
    def ratio(self) -> float | None:
        """What it takes over what it took; None where that isn't known."""
        if self.before is None or self.after is None or self.before.seconds <= 0:
            return None
        return self.after.seconds / self.before.seconds


Rows = Mapping[Key, RunCost]


def changes(before: Rows, after: Rows) -> list[Change]:
    """Return all rows of two runs side by side, the largest change first. Cost: O(rows log rows)."""
    found = [Change(key, before.get(key), after.get(key)) for key in {**before, **after}]
    return sorted(found, key=lambda one: (-abs(one.more_s), one.key.kind, one.key.function, one.key.place))


def rows_from(
    computing_s: float | None,
    calls: Iterable[tuple[str, str, float, int]],
    functions: Iterable[tuple[str, str, float]],
    ranks: int,
) -> Rows:
    """Return the rows of a run of so many ranks. `calls`: MPI function, place, seconds and number; `functions`: the
    program's own, by samples: name, file and processor seconds.
    """
    found: dict[Key, RunCost] = defaultdict(RunCost)
    ranks = max(1, ranks)
    if computing_s is not None:
        found[Key(COMPUTING, "")].seconds += computing_s / ranks
    for function, place, seconds, number in calls:
        row = found[Key(CALLS, function, _without_line(place))]
        row.seconds += seconds / ranks
        row.calls += number / ranks
    for function, file, seconds in functions:
        found[Key(COMPUTING, function, Path(file).name)].seconds += seconds / ranks
    return dict(found)


def rows_of(document: Mapping[str, Any], contexts: Contexts | None) -> Rows:
    """Return the rows of a recording. A function of the program's own has what it calls that isn't."""
    names, places = document["functions"], document["places"]
    calls = (
        (names[row["function"]], places[row["place"]], row["seconds"], row["calls"]) for row in document["paths"]
    )  # fmt: skip
    lines = contexts.lines() if contexts else []
    functions = ((one.site.name, one.site.file, one.cpu_s) for one in lines)
    return rows_from(document["split"]["computing_s"], calls, functions, document["ranks"])


def _without_line(place: str) -> str:
    head, colon, line = place.rpartition(":")
    return head if colon and line.isdigit() else place


def to_json(found: Iterable[Change]) -> list[dict[str, Any]]:
    """Return changes as a document; null: not met in that run, or not known."""
    return [
        {
            **asdict(one.key), "before_s": one.before.seconds if one.before else None,
            "after_s": one.after.seconds if one.after else None,
            "calls_before": one.before.calls if one.before else None,
            "calls_after": one.after.calls if one.after else None, "difference_s": one.more_s, "ratio": one.ratio,
        }
        for one in found
    ]  # fmt: skip
