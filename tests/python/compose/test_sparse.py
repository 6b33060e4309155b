"""Signatures of sparse sums, and the plans made of them, without MPI."""

from __future__ import annotations

import numpy as np
import pytest

from palmette import _core
from palmette.compose.sparse import compositions, signatures


def test_indices_with_the_same_contributors_are_one_block() -> None:
    touched = [np.array([0, 1, 4]), np.array([0, 1, 2]), np.array([], dtype=np.int64)]
    made = [(one.contributors, one.indices.tolist()) for one in signatures(touched, (0, 6))]
    assert made == [((0, 1), [0, 1]), ((1,), [2]), ((0,), [4])]


def test_coarse_blocks_begin_at_multiples_and_end_with_the_owners_range() -> None:
    made = [(one.contributors, one.indices.tolist()) for one in signatures([np.array([5, 9])], (5, 10), coarsen=4)]
    assert made == [((0,), [5, 6, 7, 8, 9])]
    assert signatures([np.array([], dtype=np.int64)], (0, 4), coarsen=2) == []


@pytest.mark.parametrize("method", ["direct", "ring", "tree.2", "direct/1"])
def test_plans_of_both_directions_are_right_on_scattered_ranks(method: str) -> None:
    random, ranks, indices = np.random.default_rng(3), 16, 320
    footprint = random.random((ranks, indices)) < 0.2
    share = indices // ranks
    blocks = []
    for owner in range(ranks):
        first = owner * share
        touched = [first + np.flatnonzero(footprint[rank, first : first + share]) for rank in range(ranks)]
        blocks.append([(one.contributors, len(one.indices)) for one in signatures(touched, (first, first + share))])
    job = _core.Job(_core.Machine.synthetic("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"), "random:1")
    for composition in compositions(blocks, 8, 4):
        plan = composition.factor(job, methods=[method] * len(_core.hierarchy_levels(job)))
        assert plan.verify() is None
