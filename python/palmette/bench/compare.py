"""Comparing two stored runs: which cells became faster or slower, with the MPI alone as the control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palmette.bench.evaluate import Key, group, usable_pairs
from palmette.bench.results import Cell, Job, Run
from palmette.measure.errors import BenchError
from palmette.measure.statistics import Ratio, Summary, Times, compare_groups, summarize


@dataclass(frozen=True)
class Change:
    """A cell that both runs have.

    `palmette` is the time with palmette in the second run over that in the first. `alone` is the same for the MPI
    alone: the control. When the control isn't `same`, the machine or the MPI has changed, and `palmette` by itself is
    inconclusive.
    """

    mpi: str
    placement: str
    collective: str
    size_bytes: int
    before: Summary
    after: Summary
    palmette: Ratio
    alone: Ratio

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        return {
            "mpi": self.mpi,
            "placement": self.placement,
            "collective": self.collective,
            "size_bytes": self.size_bytes,
            "before_s": self.before.median_s,
            "after_s": self.after.median_s,
            "palmette": _ratio(self.palmette),
            "alone": _ratio(self.alone),
        }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high, "verdict": ratio.verdict}


def compare_runs(first: Run, second: Run) -> list[Change]:
    """Return the change of every cell that both runs have with samples. Raises BenchError when there is none."""
    before, after = group(first.jobs, "measure"), group(second.jobs, "measure")
    changes = [_change(key, before[key], after[key]) for key in after if key in before]
    found = [change for change in changes if change is not None]
    if not found:
        raise BenchError(f"runs {first.id} and {second.id} have no cell in common; compare runs of the same settings")
    return found


def differences(first: Run, second: Run) -> list[str]:
    """Return the differences between the runs other than the code, a line each: the control doesn't show them all."""
    lines = []
    if first.place != second.place:
        lines.append(f"place: {first.place} | {second.place}")
    for name in ("name", "cpu", "cores", "kernel"):
        if first.machine.get(name) != second.machine.get(name):
            lines.append(f"{name}: {first.machine.get(name)} | {second.machine.get(name)}")
    for name in ("env", "root", "ppn", "ranks", "clock"):
        if first.settings.get(name) != second.settings.get(name):
            lines.append(f"{name}: {first.settings.get(name)} | {second.settings.get(name)}")
    return lines


def _change(key: Key, before: list[tuple[Job, Cell]], after: list[tuple[Job, Cell]]) -> Change | None:
    alone_before, palmette_before = _pooled(before)
    alone_after, palmette_after = _pooled(after)
    if palmette_before.size == 0 or palmette_after.size == 0:
        return None
    return Change(
        *key,
        before=summarize(palmette_before),
        after=summarize(palmette_after),
        palmette=compare_groups(palmette_after, palmette_before),
        alone=compare_groups(alone_after, alone_before),
    )


def _pooled(cells: list[tuple[Job, Cell]]) -> tuple[Times, Times]:
    pairs = [usable_pairs(cell) for _, cell in cells]
    return np.concatenate([alone for alone, _ in pairs]), np.concatenate([palmette for _, palmette in pairs])
