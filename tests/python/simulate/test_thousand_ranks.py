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


@pytest.mark.parametrize(
    ("collective", "rivals", "at_most"),
    [
        ("gather", ("mpich",), {8: 0.6, 1024: 0.9, 16_384: 0.95}),
        ("scatter", ("ompi",), {8: 0.5, 1024: 1.05, 16_384: 1.05}),
        ("bcast", ("binomial_tree",), {8: 0.35, 1024: 0.4, 16_384: 0.15}),
        # Longer vectors in slices take minutes.
        ("allreduce", ("rdb",), {8: 0.4, 1024: 0.2}),
    ],
)
def test_a_thousand_scattered_ranks_are_served_no_slower_than_by_the_best_rival(
    collective: str, rivals: tuple[str, ...], at_most: dict[int, float], took: Took
) -> None:
    own, *others = (took(RANGER, one, collective, (*at_most,), "random:1") for one in (run.PALMETTE, *rivals))
    for size, limit in at_most.items():
        assert own[size] <= limit * min(other[size] for other in others), size
