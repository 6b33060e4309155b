"""Tuning of composed plans: the best candidates by the model, and how many of them fit in a time budget."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from palmette import _core
from palmette.compose.auto import Explorer
from palmette.compose.bench import BenchCase, NamedFactoring, Settings
from palmette.compose.composition import Composition

MAX_CANDIDATES = 32
"""Maximum number of candidates, before the budget is applied."""
BEST_SHAPES = 6
DROP = 1.5
"""Candidates slower than the best one by more than this factor are dropped after three rounds."""
_CALLS = 2 + 3 + 2
"""Minimum number of calls of a candidate: warm-up, rounds, checks."""
_START_S = 4.0
_UNKNOWN_S = 0.1
"""Assumed time of a call without a prediction."""
MIN_CANDIDATES = 2


def candidates(
    composition: Composition, job: _core.Job, progress: Callable[[str], None] | None = None
) -> tuple[NamedFactoring, ...]:
    """Return the candidates to measure, the best by the model first. Raises `_core.Error`."""
    explorer = Explorer(composition, job, progress)
    shapes = sorted(explorer.evaluate_all(explorer.shapes()), key=lambda one: one.cost)[:BEST_SHAPES]
    rings = explorer.evaluate_all(explorer.rings())
    bases = dict.fromkeys(one.factoring for one in [*shapes, *rings])
    tried = explorer.evaluate_all(
        base.with_(stripes=stripes, pipeline=parts)
        for base, stripes, parts in itertools.product(bases, (1, *explorer.stripes()), (1, *explorer.depths()))
    )
    found = sorted({one.factoring: one for one in [*shapes, *tried]}.values(), key=lambda one: one.cost)[
        :MAX_CANDIDATES
    ]
    return tuple(
        NamedFactoring(f"candidate {number}", one.factoring, one.seconds) for number, one in enumerate(found, start=1)
    )


def choose_seconds(asked: Sequence[BenchCase], settings: Settings, share_s: float) -> tuple[list[BenchCase], Settings]:
    """Return the candidates and settings for a budget of `share_s` seconds per composition.

    These are as many candidates, the best by the model first, as can be called a few times each in half of it, but at
    least two. The other half is for those that are not dropped.
    """
    usable_s = max(share_s - _START_S / max(len(asked), 1), 1.0)
    shorter = []
    for one in asked:
        spent_s, fitting = 0.0, 0
        for variant in one.variants:
            spent_s += _CALLS * (variant.predicted_s or _UNKNOWN_S)
            if spent_s > usable_s / 2 and fitting >= MIN_CANDIDATES:
                break
            fitting += 1
        shorter.append(replace(one, variants=one.variants[:fitting]))
    return shorter, replace(settings, seconds=usable_s / 2, min_rounds=3, drop=DROP)
