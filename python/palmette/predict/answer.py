"""Questions to the cost model and its answers: one cell for each collective, size and algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from palmette import _core
from palmette.plan.request import Details, about_steps, details_of, is_in_network

MOST_STEPS = 30_000_000
"""A simulation takes about 90 bytes a step."""
SIDE_BY_SIDE = "ranks side by side"


class TooManyStepsError(ValueError):
    """A plan is too large to be simulated."""


@dataclass(frozen=True)
class Question:
    """Which collectives on which job. `algorithms`: empty for the model's candidates."""

    job: _core.Job
    collectives: Sequence[str]
    sizes: Sequence[int]
    algorithms: Sequence[str] = ()
    root: int = 0
    shared_memory: bool = True

    def details(self, collective: str) -> Details:
        """The core's further parameters, besides job, collective, algorithm, root and size."""
        return details_of(collective, shared_memory=self.shared_memory)

    def named(self, collective: str) -> list[str]:
        """Return the algorithms of a collective that were asked for; those of other collectives are skipped."""
        if not self.algorithms:
            return _core.candidates(collective)
        known = {row.name for row in _core.algorithms() if row.collective == collective}
        return [spec for spec in self.algorithms if spec.split(":", 1)[0] in known]

    def taken(self, collective: str, size_bytes: int) -> str | None:
        """Return the built-in table's choice, for any MPI; None: the MPI's own."""
        table = _core.Table.built_in()
        choice = table.choose(collective, self.job, self.root, size_bytes, shared_memory=self.shared_memory)
        return choice.algorithm


@dataclass(frozen=True)
class Cell:
    """The predicted time of one algorithm. `bound_s`: no plan is faster; None where nothing bounds it."""

    collective: str
    size_bytes: int
    algorithm: str
    prediction: _core.Prediction
    bound_s: float | None
    taken: bool = False
    """Whether it is the built-in table's choice."""

    @property
    def seconds(self) -> float:
        """Time until the last rank is done."""
        return self.prediction.seconds

    @property
    def multiple(self) -> float | None:
        """The time as a multiple of the bound."""
        return self.seconds / self.bound_s if self.bound_s else None

    def shares(self) -> dict[str, float]:
        """Return the share of each level in the time, and of memory: copies and reductions inside of ranks."""
        whole = self.seconds or 1.0
        out = {part.level: part.seconds / whole for part in self.prediction.levels}
        out["memory"] = (self.prediction.copy_s + self.prediction.reduce_s) / whole
        return out


def sizes_of(question: Question, collective: str) -> Sequence[int]:
    """Return the sizes that make a difference: a barrier has none."""
    return [0] if collective == "barrier" else question.sizes


def predict_all(question: Question, progress: Callable[[str], None] = lambda _: None) -> list[Cell]:
    """Return the cells by collective, size and algorithm; algorithms that can't serve a cell are left out.

    `progress` is called with the next cell's name. Raises _core.Error for a bad root, size or algorithm, and
    TooManyStepsError.
    """
    costs = _core.Costs.of(question.job)
    cells = []
    for collective in question.collectives:
        details = question.details(collective)
        for size in sizes_of(question, collective):
            bounds = [
                _core.bound(question.job, collective, size, question.root, in_network=in_network).seconds
                for in_network in (False, True)
            ]
            taken = question.taken(collective, size)
            more = [taken] if taken is not None and not question.algorithms else []
            for algorithm in dict.fromkeys([*question.named(collective), *more]):
                if _core.refusal(question.job, collective, algorithm, question.root, size, **details) is not None:
                    continue
                progress(f"{collective} {_core.format_size(size)} {algorithm}")
                _check_steps(question, collective, algorithm, size)
                found = _core.predict_algorithm(
                    question.job, collective, algorithm, costs, question.root, size, **details
                )
                limit = bounds[is_in_network(collective, algorithm)] or None
                cells.append(Cell(collective, size, algorithm, found, limit, algorithm == taken))
    return cells


def fastest(cells: Sequence[Cell]) -> set[int]:
    """Return the indices of the fastest cell of each collective and size."""
    best: dict[tuple[str, int], int] = {}
    for index, cell in enumerate(cells):
        key = (cell.collective, cell.size_bytes)
        if key not in best or cell.seconds < cells[best[key]].seconds:
            best[key] = index
    return set(best.values())


def answer_json(question: Question, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the cells, their parts in seconds, and the cost values that they are based on."""
    best = fastest(cells)
    return {
        "ranks": question.job.size,
        "root": question.root,
        "rests_on": [
            {"what": one.what, "value": one.value, "unit": one.unit, "provenance": one.provenance}
            for one in _core.Costs.of(question.job).assumptions(question.job)
        ],
        "cells": [_cell_json(cell, index in best) for index, cell in enumerate(cells)],
    }


def _cell_json(cell: Cell, best: bool) -> dict[str, Any]:
    found = cell.prediction
    return {
        "collective": cell.collective,
        "size_bytes": cell.size_bytes,
        "algorithm": cell.algorithm,
        "seconds": cell.seconds,
        "bound_s": cell.bound_s,
        "multiple": cell.multiple,
        "best": best,
        "taken": cell.taken,
        "levels": [
            {
                "level": part.level,
                "latency_s": part.latency_s,
                "transfer_s": part.transfer_s,
                "overhead_s": part.overhead_s,
                "contention": part.contention,
                "messages": part.messages,
                "bytes": part.bytes,
            }
            for part in found.levels
        ],
        "copy_s": found.copy_s,
        "reduce_s": found.reduce_s,
        "stages": [{"stage": name, "seconds": seconds} for name, seconds in found.stages],
    }


def _check_steps(question: Question, collective: str, algorithm: str, size: int) -> None:
    """Refuse what wouldn't fit in memory, from the programs of a few ranks."""
    job, details = question.job, question.details(collective)
    about = about_steps(job, collective, algorithm, question.root, size, details)
    if about > MOST_STEPS:
        raise TooManyStepsError(
            f"{collective} {algorithm} has about {about:,.0f} steps on {job.size:,} ranks, too many to simulate; "
            "ask for fewer ranks with --ranks, or for another algorithm with --algorithm"
        )
