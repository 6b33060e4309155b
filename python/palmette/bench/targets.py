"""Performance targets of a benchmark set, and whether a run meets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from palmette.bench.evaluate import Row, evaluate
from palmette.bench.pass_through import PassCost, pass_costs
from palmette.bench.results import LOADED, Run
from palmette.bench.side_by_side import MeanSpeed, SideCell, mean_speeds, side_cells
from palmette.bench.text import size_text

Kind = Literal["bound", "alone", "fastest", "mean_speed", "pass_through", "gain_or_bound"]


@dataclass(frozen=True)
class Target:
    """A limit for each MPI that palmette runs on. Without collectives or sizes it applies to all of them.

    bound         time with palmette as a multiple of the physical bound, at most
    alone         time with palmette over that of the MPI alone, at most
    fastest       time with palmette over that of the fastest MPI alone, at most
    mean_speed    geometric mean over sizes of the fastest MPI's time over that with palmette, at least
    pass_through  overhead in nanoseconds of a call that is passed through, at most
    gain_or_bound time with palmette as a multiple of the physical bound, at most; or `gain` times faster than the
                  fastest MPI alone

    `placements` are given without LOADED, and include loaded cells. `min_bytes` excludes smaller sizes, and barriers.
    """

    kind: Kind
    limit: float
    collectives: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    placements: tuple[str, ...] = ()
    min_bytes: int = 0
    gain: float = 1.0

    @property
    def text(self) -> str:
        """A few words: `bcast, reduce 256K, in bounds`."""
        what = ", ".join(self.collectives) or "every collective"
        sizes = ", ".join(map(size_text, self.sizes))
        measure = {
            "bound": "in bounds",
            "alone": "of the MPI alone",
            "fastest": "of the fastest MPI",
            "mean_speed": "mean speed to the fastest MPI",
            "pass_through": "ns more for a call passed through",
            "gain_or_bound": f"in bounds or {self.gain:g} times faster than the fastest MPI",
        }[self.kind]
        if self.kind == "pass_through":
            return measure
        if self.min_bytes:
            sizes = f"{size_text(self.min_bytes)} and more"
        where = f", {', '.join(self.placements)}" if self.placements else ""
        return f"{what}{' ' + sizes if sizes else ''}{where}, {measure}"

    def is_met(self, value: float) -> bool:
        """Whether a value is within the limit."""
        return value >= self.limit if self.kind == "mean_speed" else value <= self.limit

    def takes(self, collective: str, size_bytes: int | None = None, placement: str | None = None) -> bool:
        """Whether the target applies to that collective, size and placement."""
        if self.placements and placement is not None and placement.removesuffix(LOADED) not in self.placements:
            return False
        named = not self.collectives or collective in self.collectives
        return named and (
            size_bytes is None or ((not self.sizes or size_bytes in self.sizes) and size_bytes >= self.min_bytes)
        )


@dataclass(frozen=True)
class Value:
    """The value of one cell for a target. `certain`: False where noise allows the other side of the limit as well."""

    value: float
    cell: str
    certain: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; an infinite value (a wrong result) becomes null."""
        return {"value": self.value if math.isfinite(self.value) else None, "cell": self.cell, "certain": self.certain}


Answer = Literal["met", "missed", "undecided", "not measured"]


@dataclass(frozen=True)
class Outcome:
    """The outcome for one target: the worst value of each MPI. MPIs without such cells are missing.

    `best`: the same under the MPI on which palmette is the fastest in each cell, where MPIs are compared side by side;
    informative only. `missed`: the certain and uncertain misses of each MPI, out of its number of cells in `cells`.
    """

    target: Target
    worst: dict[str, Value]
    best: Value | None = None
    missed: dict[str, list[Value]] = field(default_factory=dict)
    cells: dict[str, int] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """Missed where a certain value of some MPI is beyond the limit, undecided where only uncertain ones are."""
        if not self.worst:
            return "not measured"
        beyond = [value for value in self.worst.values() if not self.target.is_met(value.value)]
        if any(value.certain for value in beyond):
            return "missed"
        return "undecided" if beyond else "met"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "target": self.target.text,
            "limit": self.target.limit,
            "at_least": self.target.kind == "mean_speed",
            "answer": self.answer,
            "worst": {mpi: value.to_json() for mpi, value in self.worst.items()},
            "best": self.best.to_json() if self.best else None,
            "cells": self.cells,
            "missed": {mpi: [value.to_json() for value in values] for mpi, values in self.missed.items()},
        }


def outcomes(run: Run, targets: Sequence[Target]) -> list[Outcome]:
    """Return the outcome for each target, in their order."""
    rows = [row for row in evaluate(run) if not row.is_variant]
    cells, costs = side_cells(run), pass_costs(run.jobs)
    means = mean_speeds(cells)
    result = []
    for target in targets:
        values = _values(target, rows, cells, means, costs)
        worst = _worst(target, values)
        best = worst.pop(_BEST, None)
        missed = {mpi: [one for name, one in values if name == mpi and not target.is_met(one.value)] for mpi in worst}
        counts = {mpi: sum(name == mpi for name, _ in values) for mpi in worst}
        result.append(Outcome(target, worst, best, missed, counts))
    return result


_BEST = "best"
"""Stands for the MPI on which palmette is the fastest."""


def _values(
    target: Target,
    rows: Sequence[Row],
    cells: Sequence[SideCell],
    means: Sequence[MeanSpeed],
    costs: Sequence[PassCost],
) -> list[tuple[str, Value]]:
    """MPI and value of all cells that a target applies to. A wrong result counts as infinitely slow."""
    where = _where_of(rows)
    if target.kind == "pass_through":
        return [
            (
                cost.mpi,
                Value(
                    cost.more_ns,
                    f"{cost.function} on {cost.where}",
                    certain=(cost.low_ns <= target.limit) == (cost.high_ns <= target.limit),
                ),
            )
            for cost in costs
        ]
    if target.kind == "mean_speed":
        return [
            (mpi, Value(speed, f"{mean.collective}{where(mean.placement)}"))
            for mean in means
            if target.takes(mean.collective, placement=mean.placement)
            for mpi, speed in {**mean.by_mpi, _BEST: mean.best}.items()
        ]
    if target.kind == "fastest":
        return [
            (mpi, Value(1 / speed, _cell(cell.collective, cell.size_bytes, where(cell.placement))))
            for cell in cells
            if target.takes(cell.collective, cell.size_bytes, cell.placement)
            for mpi, speed in {**{mpi: cell.speed(mpi) for mpi in cell.palmette_s}, _BEST: cell.best_speed}.items()
        ]
    mine = [row for row in rows if target.takes(row.collective, row.size_bytes, row.placement)]
    if target.kind == "gain_or_bound":
        fastest = {(cell.placement, cell.collective, cell.size_bytes): cell.alone_s[cell.fastest] for cell in cells}
        return [(row.mpi, _gain_or_bound(target, row, fastest, where)) for row in mine]
    found = [(row.mpi, _of_row(target.kind, row, where)) for row in mine]
    return [(mpi, value) for mpi, value in found if value is not None]


def _gain_or_bound(target: Target, row: Row, fastest: dict[tuple[str, str, int], float], where: Where) -> Value:
    """The multiple of the bound, at most the limit where the gain over the fastest MPI is met: one of both suffices."""
    cell = _cell(row.collective, row.size_bytes, where(row.placement))
    if row.wrong:
        return Value(math.inf, cell)
    quickest = fastest.get((row.placement, row.collective, row.size_bytes), row.alone.median_s)
    speed = quickest / row.palmette.median_s
    cell += f", {speed:.2f} times"
    if speed >= target.gain:
        return Value(min(target.limit, row.palmette_multiple or target.limit), cell)
    return Value(math.inf if row.palmette_multiple is None else row.palmette_multiple, cell)


def _of_row(kind: Kind, row: Row, where: Where) -> Value | None:
    """Nothing where the cell has no bound, or no samples to compare."""
    cell = _cell(row.collective, row.size_bytes, where(row.placement))
    if row.wrong:
        return Value(math.inf, cell)
    if kind == "bound":
        return None if row.palmette_multiple is None else Value(row.palmette_multiple, cell)
    if not math.isfinite(row.ratio.value):
        return None
    return Value(row.ratio.value, cell, certain=row.ratio.verdict != "ambiguous")


def _worst(target: Target, values: Sequence[tuple[str, Value]]) -> dict[str, Value]:
    """The worst value of each MPI; certain misses rank below all others."""

    def badness(value: Value) -> tuple[bool, float]:
        beyond = value.certain and not target.is_met(value.value)
        return beyond, -value.value if target.kind == "mean_speed" else value.value

    worst: dict[str, Value] = {}
    for mpi, value in values:
        if mpi not in worst or badness(value) > badness(worst[mpi]):
            worst[mpi] = value
    return worst


def _cell(collective: str, size_bytes: int, where: str) -> str:
    return (f"{collective} {size_text(size_bytes)}" if size_bytes else collective) + where


Where = Callable[[str], str]
"""Suffix of a cell's name for its placement: empty where all cells have the same, so that lines stay short."""


def _where_of(rows: Sequence[Row]) -> Where:
    several = len({row.placement for row in rows}) > 1
    return (lambda placement: f", {placement}") if several else (lambda placement: "")
