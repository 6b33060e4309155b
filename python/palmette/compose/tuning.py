"""Tuning of a composed plan: the candidates that the model finds best, and how many of them a budget has time for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from palmette import _core
from palmette.compose.auto import Explorer
from palmette.compose.bench import Asked, Named, Settings
from palmette.compose.composition import Composition

MOST = 32
"""Candidates, before the budget is looked at."""
BEST_SHAPES = 6
DROP = 1.5
"""Candidates that take longer than the best one by more are not measured on after three rounds."""
_CALLS = 2 + 3 + 2
"""A candidate is called so often at least: warm-up, rounds, checks."""
_START_S = 4.0
_UNKNOWN_S = 0.1
"""A call where the model has no opinion."""
FEWEST = 2


def candidates(
    composition: Composition, job: _core.Job, tell: Callable[[str], None] | None = None
) -> tuple[Named, ...]:
    """Return what is worth measuring, the best by the model first. Raises `_core.Error`."""
    explorer = Explorer(composition, job, tell)
    shapes = sorted(explorer.known(explorer.shapes()), key=lambda one: one.figure)[:BEST_SHAPES]
    rings = explorer.known(explorer.rings())
    bases = dict.fromkeys(one.factoring for one in [*shapes, *rings])
    tried = explorer.known(
        base.with_(stripes=stripes, pipeline=parts)
        for base, stripes, parts in itertools.product(bases, (1, *explorer.stripes()), (1, *explorer.depths()))
    )
    found = sorted({one.factoring: one for one in [*shapes, *tried]}.values(), key=lambda one: one.figure)[:MOST]
    return tuple(Named(f"candidate {number}", one.factoring, one.seconds) for number, one in enumerate(found, start=1))


def choose_seconds(asked: Sequence[Asked], settings: Settings, share_s: float) -> tuple[list[Asked], Settings]:
    """Return what fits when each composition has `share_s` seconds: as many candidates, the best by the model first, as
    can be called a few times each in half of it, but two at least. The other half goes to those that are not dropped.
    """
    usable_s = max(share_s - _START_S / max(len(asked), 1), 1.0)
    shorter = []
    for one in asked:
        spent_s, fitting = 0.0, 0
        for variant in one.variants:
            spent_s += _CALLS * (variant.predicted_s or _UNKNOWN_S)
            if spent_s > usable_s / 2 and fitting >= FEWEST:
                break
            fitting += 1
        shorter.append(replace(one, variants=one.variants[:fitting]))
    return shorter, replace(settings, seconds=usable_s / 2, min_rounds=3, drop=DROP)
