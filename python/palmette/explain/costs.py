"""Predicted times of the chosen algorithm and its runners-up, by the cost model."""

from __future__ import annotations

from dataclasses import dataclass, field

from palmette import _core
from palmette.explain.decision import NONE, CollectiveCall
from palmette.plan.request import about_steps, details_of
from palmette.tune.candidates import candidates, sizes_unknown
from palmette.tune.forecast import Prediction, played, prediction_of
from palmette.tune.results import Cell

MOST_STEPS = 1_000_000
"""Plans with more steps, over all ranks, aren't simulated, as that takes seconds each."""
MOST_TIMES = 100
"""Algorithms predicted slower than the best by more than this factor aren't shown."""


@dataclass(frozen=True)
class Cost:
    """Predicted time of an algorithm; `multiple` of the bound where there is one; `shares` by level where known.

    `played`: the whole plan was simulated; otherwise the time comes from a closed formula, which is less accurate.
    """

    spec: str
    seconds: float
    multiple: float | None
    shares: dict[str, float] = field(default_factory=dict)
    played: bool = True


def costs(asked: CollectiveCall, taken: str, most: int = 5) -> list[Cost]:
    """Return the chosen algorithm and the best others by the model, fastest first: `most` in all, one per family.

    Empty without bytes, where the sizes aren't known, or where the plan uses rank order, which ignores the placement.
    Raises _core.Error.
    """
    if taken == NONE or asked.size_bytes < 0 or sizes_unknown(asked.function) or asked.in_rank_order:
        return []
    cell = Cell(asked.function, asked.size_bytes, asked.root)
    known: dict[str, Prediction] = {}
    for spec in dict.fromkeys([taken, *candidates(asked.job, cell.function, cell.size_bytes, cell.root)]):
        if spec == "mpi" or ("shared" in spec and not asked.may_share):
            continue
        predicted = prediction_of(asked.job, spec, cell, ordered=asked.ordered)
        if predicted is not None:
            known[spec] = predicted
    heads: dict[str, str] = {}
    best_s = min((one.seconds for one in known.values()), default=0.0)
    for spec in sorted(known, key=lambda spec: known[spec].seconds):
        if known[spec].seconds <= MOST_TIMES * best_s:
            heads.setdefault(spec.partition(":")[0], spec)
    shown = list(heads.values())[:most]
    if taken != "mpi" and taken not in shown:
        shown = [*shown[: most - 1], taken]
    bound_s = bound_of(asked)
    result = []
    for spec in shown:
        one = known.get(spec)
        if one is None or not one.played:
            one = _played(asked, cell, spec) or one
        if one is not None:
            multiple = one.seconds / bound_s if bound_s > 0 else None
            result.append(Cost(spec, one.seconds, multiple, one.shares, one.played))
    return sorted(result, key=lambda one: one.seconds)


def _played(asked: CollectiveCall, cell: Cell, spec: str) -> Prediction | None:
    """Prediction by simulating the plan; None where it is too large, or can't be made for the job."""
    collective = _core.collective_of(cell.function)
    details = details_of(collective, ordered=asked.ordered, shared_memory="shared" in spec)
    try:
        if about_steps(asked.job, collective, spec, cell.root, cell.size_bytes, details) > MOST_STEPS:
            return None
        return played(asked.job, spec, cell, ordered=asked.ordered)
    except _core.Error:
        return None


def bound_of(asked: CollectiveCall) -> float:
    """Return the physical bound in seconds, 0 where nothing is known."""
    if asked.size_bytes < 0:
        return 0.0
    return float(_core.bound(asked.job, _core.collective_of(asked.function), asked.size_bytes, asked.root).seconds)
