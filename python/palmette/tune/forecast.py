"""Predicted times of candidates, so that few of many have to be measured.

The model simulates a candidate's plan where it can (`palmette plan --predict`). It discards candidates, and doesn't
pick the best: measurements decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from palmette import _core
from palmette.plan.request import Details, details_of
from palmette.tune.candidates import candidates, sizes_unknown
from palmette.tune.results import Cell

MOST_PLAYED_RANKS, MOST_PLANNED_RANKS = 64, 256
"""Plans of all ranks are simulated up to the first number, and up to the second where there is no formula."""
GIVEN_UP_AT = 3.0
"""A family of algorithms isn't measured if its best is predicted this many times slower than the best of all."""

Predict = Callable[[str, Cell], "float | None"]


@dataclass(frozen=True)
class Forecast:
    """A candidate with its predicted time, None where it is unknown."""

    spec: str
    seconds: float | None

    @property
    def family(self) -> str:
        """The algorithm's name."""
        return self.spec.partition(":")[0]


@dataclass(frozen=True)
class Prediction:
    """A predicted time. `played`: by simulating the whole plan, with the shares of levels; otherwise by a formula."""

    seconds: float
    shares: dict[str, float]
    played: bool = True


def predictor(job: _core.Job) -> Predict:
    """Return a function from specification and cell to seconds on this job."""

    def predict(spec: str, cell: Cell) -> float | None:
        found = prediction_of(job, spec, cell)
        return found.seconds if found is not None else None

    return predict


def prediction_of(job: _core.Job, spec: str, cell: Cell, *, ordered: bool = False) -> Prediction | None:
    """Return the prediction of a candidate; None where there is none, or the job refuses the algorithm.

    Small jobs are simulated, larger ones computed in closed form as at run time, or simulated up to some size where
    there is no formula.
    `ordered`: the operation isn't commutative.
    """
    try:
        if job.size > MOST_PLAYED_RANKS:
            formula = _by_formula(job, spec, cell, ordered)
            if formula is not None:
                return Prediction(formula, {}, played=False)
        if job.size <= MOST_PLANNED_RANKS:
            return played(job, spec, cell, ordered=ordered)
    except _core.Error:
        return None
    return None


def _details(spec: str, collective: str, ordered: bool) -> Details:
    return details_of(collective, ordered=ordered, shared_memory="shared" in spec)


def _by_formula(job: _core.Job, spec: str, cell: Cell, ordered: bool) -> float | None:
    collective = _core.collective_of(cell.function)
    if _core.refusal(job, collective, spec, cell.root, cell.size_bytes, **_details(spec, collective, ordered)):
        return None
    costs, details = _core.Costs.of(job), _details(spec, collective, ordered)
    return _core.estimate(job, collective, spec, costs, cell.root, cell.size_bytes, **details)


def played(job: _core.Job, spec: str, cell: Cell, *, ordered: bool = False) -> Prediction:
    """Return the prediction by simulating the plan, with the programs of all ranks.

    Raises _core.Error where the job refuses the algorithm.
    """
    collective = _core.collective_of(cell.function)
    costs, details = _core.Costs.of(job), _details(spec, collective, ordered)
    found = _core.predict_algorithm(job, collective, spec, costs, cell.root, cell.size_bytes, **details)
    parts = {level.level: level.seconds for level in found.levels}
    parts |= {"copies": found.copy_s, "reductions": found.reduce_s}
    total = found.seconds
    return Prediction(total, {name: part / total for name, part in parts.items() if part > 0} if total > 0 else {})


def forecasts(job: _core.Job, cell: Cell, predict: Predict | None = None) -> list[Forecast]:
    """Return all candidates of a cell, those that should be fastest first; those without a prediction at the end."""
    predict = predict or predictor(job)
    size = cell.size_bytes if not sizes_unknown(cell.function) else max(cell.size_bytes, 1)
    found = [Forecast(spec, predict(spec, cell)) for spec in candidates(job, cell.function, size, cell.root)]
    return sorted(found, key=lambda one: (one.seconds is None, one.seconds or 0.0))


def chosen(found: Iterable[Forecast], most: int) -> list[Forecast]:
    """Return at most `most` of sorted forecasts that are worth measuring.

    Half of the places go to the best of each family, since errors of the model are mostly common to a family;
    the rest to the best of all. Equal predictions to the last digit within a family are mostly equal plans, so one
    of them goes before the others.
    """
    ordered = _distinct_first(found)
    if not ordered:
        return []
    best = next((one.seconds for one in ordered if one.seconds is not None), None)
    heads: dict[str, Forecast] = {}
    for one in ordered:
        heads.setdefault(one.family, one)
    worth = [one for one in heads.values() if best is None or one.seconds is None or one.seconds <= GIVEN_UP_AT * best]
    taken = worth[: max(1, (most + 1) // 2)]
    taken += [one for one in ordered if one not in taken][: most - len(taken)]
    return sorted(taken, key=ordered.index)


def _distinct_first(found: Iterable[Forecast]) -> list[Forecast]:
    distinct: dict[tuple[str, float | str], Forecast] = {}
    again = []
    for one in found:
        key: tuple[str, float | str] = (one.family, one.seconds if one.seconds is not None else one.spec)
        if distinct.setdefault(key, one) is not one:
            again.append(one)
    return [*distinct.values(), *again]
