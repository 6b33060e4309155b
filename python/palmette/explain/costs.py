"""What the choice and its runners-up should cost by the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from palmette import _core
from palmette.explain.decision import Asked
from palmette.plan.request import about_steps, details_of
from palmette.tune.candidates import candidates, sizes_unknown
from palmette.tune.forecast import played, prediction_of
from palmette.tune.results import Cell

MOST_STEPS = 1_000_000
"""Plans of more steps than that, of all ranks together, aren't played: seconds each."""
MOST_TIMES = 100
"""What should take so many times as long as the best isn't shown."""


@dataclass(frozen=True)
class Cost:
    """Predicted time of an algorithm; `multiple` of the bound where there is one; `shares` by level where known.

    `played`: the whole plan was played; otherwise a formula says so, which knows less.
    """

    spec: str
    seconds: float
    multiple: float | None
    shares: dict[str, float] = field(default_factory=dict)
    played: bool = True


def costs(asked: Asked, taken: str, most: int = 5) -> list[Cost]:
    """Return what is taken and the best others by the model, fastest first: `most` in all, one a family of algorithms.

    Nothing where the sizes aren't known, or where the plan is for ranks in their own order, whose places it doesn't know.
    Raises _core.Error.
    """
    if asked.size_bytes < 0 or sizes_unknown(asked.function) or asked.in_rank_order:
        return []
    cell = Cell(asked.function, asked.size_bytes, asked.root)
    found: list[tuple[float, str]] = []
    for spec in dict.fromkeys([taken, *candidates(asked.job, cell.function, cell.size_bytes, cell.root)]):
        if spec == "mpi" or ("shared" in spec and not asked.may_share):
            continue
        predicted = prediction_of(asked.job, spec, cell, ordered=asked.ordered)
        if predicted is not None:
            found.append((predicted.seconds, spec))
    found.sort()
    heads: dict[str, str] = {}
    for seconds, spec in found:
        if seconds <= MOST_TIMES * found[0][0]:
            heads.setdefault(spec.partition(":")[0], spec)
    shown = list(heads.values())[:most]
    if taken != "mpi" and taken not in shown:
        shown = [*shown[: most - 1], taken]
    bound_s = bound_of(asked)
    result = [cost for spec in shown if (cost := _cost(asked, cell, spec, bound_s)) is not None]
    return sorted(result, key=lambda one: one.seconds)


def _cost(asked: Asked, cell: Cell, spec: str, bound_s: float) -> Cost | None:
    """By playing the plan, where it isn't too large."""
    try:
        collective = _core.collective_of(cell.function)
        details = details_of(collective, ordered=asked.ordered, shared_memory="shared" in spec)
        steps = about_steps(asked.job, collective, spec, cell.root, cell.size_bytes, details)
        can_play = steps <= MOST_STEPS
        predicted = played(asked.job, spec, cell, ordered=asked.ordered) if can_play else None
    except _core.Error:
        return None  # the job refuses it
    if predicted is None:
        predicted = prediction_of(asked.job, spec, cell, ordered=asked.ordered)
    if predicted is None:
        return None
    return Cost(
        spec, predicted.seconds, predicted.seconds / bound_s if bound_s > 0 else None, predicted.shares, can_play
    )


def bound_of(asked: Asked) -> float:
    """Return the physical bound in seconds, 0 where nothing is known."""
    if asked.size_bytes < 0:
        return 0.0
    return float(_core.bound(asked.job, _core.collective_of(asked.function), asked.size_bytes, asked.root).seconds)
