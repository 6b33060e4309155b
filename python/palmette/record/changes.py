"""Two recordings of one program compared: which functions compute longer, and which calls take longer, than before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette.record.contexts import Contexts

MOST = 200
"""Rows of a document."""


@dataclass(frozen=True)
class Change:
    """A function's computing, or the calls of one MPI function, in both runs: seconds of all ranks together."""

    kind: str
    """computing, by samples, or calls."""
    what: str
    """A function with its file, or an MPI function with the function that calls it."""
    before_s: float
    after_s: float

    @property
    def more_s(self) -> float:
        """By how much it takes longer than before."""
        return self.after_s - self.before_s


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], contexts: tuple[Contexts | None, Contexts | None]
) -> list[Change]:
    """Return what changed between two documents of recordings, the largest change first. Lines aren't told apart: they
    move with every edit. Cost: O(rows).
    """
    found = []
    if all(contexts):
        sums = [_computing(one) for one in contexts if one]
        found += _paired("computing", *sums)
    found += _paired("calls", _calls(before), _calls(after))
    return sorted(found, key=lambda one: (-abs(one.more_s), one.what))[:MOST]


def _paired(kind: str, before: Mapping[str, float], after: Mapping[str, float]) -> list[Change]:
    return [Change(kind, what, before.get(what, 0.0), after.get(what, 0.0)) for what in {**before, **after}]


def _computing(contexts: Contexts) -> dict[str, float]:
    """Return processor time outside of MPI by function of the program's own, with what it calls that isn't."""
    sums: dict[str, float] = defaultdict(float)
    for line in contexts.lines():
        sums[f"{line.site.name} in {Path(line.site.file).name}"] += line.cpu_s
    return sums


def _calls(document: Mapping[str, Any]) -> dict[str, float]:
    """Return time in calls by MPI function and the file that calls it."""
    sums: dict[str, float] = defaultdict(float)
    for row in document["paths"]:
        place = document["places"][row["place"]]
        sums[f"{document['functions'][row['function']]} at {place.rpartition(':')[0] or place}"] += row["seconds"]
    return sums
