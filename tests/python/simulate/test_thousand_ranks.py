"""Chosen cells of 1,024 ranks: the set `clos-1024` in short, on random placement.

Rivals are those that begin without ranks² messages, which SMPI's node-aware ones take; the set has all four selectors.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from palmette.simulate import run

pytestmark = pytest.mark.slow
Took = Callable[..., dict[int, float]]
RANGER = "ranger-64"
SIZES = (8, 1024, 16_384)


@pytest.mark.parametrize(
    ("collective", "rivals", "at_most"),
    [
        ("gather", ("mpich",), (0.6, 0.9, 0.95)),
        ("scatter", ("ompi",), (0.5, 1.05, 1.05)),
        ("bcast", ("binomial_tree",), (0.35, 0.4, 0.2)),
        ("allreduce", ("rdb",), (0.4, 0.2, 0.15)),
    ],
)
def test_a_thousand_scattered_ranks_are_served_no_slower_than_by_the_best_rival(
    collective: str, rivals: tuple[str, ...], at_most: tuple[float, ...], took: Took
) -> None:
    own, *others = (took(RANGER, one, collective, SIZES, "random:1") for one in (run.PALMETTE, *rivals))
    for size, limit in zip(SIZES, at_most, strict=True):
        assert own[size] <= limit * min(other[size] for other in others), size
