"""What the choice and its runners-up should cost by the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from palmette import _core
from palmette.explain.decision import Asked
from palmette.tune.candidates import candidates, sizes_unknown
from palmette.tune.forecast import prediction_of
from palmette.tune.results import Cell


@dataclass(frozen=True)
class Cost:
    """Predicted time of an algorithm; `multiple` of the bound where there is one; `shares` by level where known."""

    spec: str
    seconds: float
    multiple: float | None
    shares: dict[str, float] = field(default_factory=dict)


def costs(asked: Asked, taken: str, most: int = 5) -> list[Cost]:
    """Return what is taken and the best others by the model, fastest first: `most` in all, one a family of algorithms.

    Nothing where the sizes aren't known, or the model knows no job of that size. Raises _core.Error.
    """
    if asked.size_bytes < 0 or sizes_unknown(asked.function):
        return []
    cell = Cell(asked.function, asked.size_bytes, asked.root)
    bound_s = bound_of(asked)
    found: list[Cost] = []
    for spec in dict.fromkeys([taken, *candidates(asked.job, cell.function, cell.size_bytes, cell.root)]):
        if spec == "mpi" or ("shared" in spec and not (asked.shared_memory and asked.blocking)):
            continue
        predicted = prediction_of(asked.job, spec, cell)
        if predicted is not None:
            multiple = predicted.seconds / bound_s if bound_s > 0 else None
            found.append(Cost(spec, predicted.seconds, multiple, predicted.shares))
    found.sort(key=lambda one: one.seconds)
    heads: dict[str, Cost] = {}
    for one in found:
        heads.setdefault(one.spec.partition(":")[0], one)
    shown = list(heads.values())[:most]
    mine = next((one for one in found if one.spec == taken), None)
    if mine is not None and mine not in shown:
        shown = [*shown[: most - 1], mine]
    return sorted(shown, key=lambda one: one.seconds)


def bound_of(asked: Asked) -> float:
    """Return the physical bound in seconds, 0 where nothing is known."""
    if asked.size_bytes < 0:
        return 0.0
    return float(_core.bound(asked.job, _core.collective_of(asked.function), asked.size_bytes, asked.root).seconds)
