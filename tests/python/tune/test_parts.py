"""Part by part."""

from __future__ import annotations

from itertools import product

import pytest

from palmette import _core
from palmette.tune import parts
from palmette.tune.forecast import prediction_of
from palmette.tune.results import Cell
from palmette.tune.specs import written

from .samples import cell

EVEN, UNEVEN = "4leaf@50Mbit/s:4node@100Mbit/s:2core", "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def job(spec: str) -> _core.Job:
    return _core.Job(_core.Machine.synthetic(spec), "block")


def test_a_star_changes_one_level_at_a_time() -> None:
    base = "by_topology:leaf=linear,node=linear,top=linear"
    shapes = ("linear", "binomial")
    found = parts.star(base, ("top", "leaf", "node"), {"leaf": shapes, "node": shapes, "top": shapes})
    assert found == [
        base,
        "by_topology:leaf=linear,node=linear,top=binomial",
        "by_topology:leaf=binomial,node=linear,top=linear",
        "by_topology:leaf=linear,node=binomial,top=linear",
    ]


def test_a_star_of_leaders_knows_their_defaults_and_writes_keys_as_candidates_do() -> None:
    grid = {"leaders": (None, "all"), "between": (None, "ring"), "inside": (None, "shared"), "segment": (None, "8K")}
    assert parts.star("leaders:leaders=all,inside=shared", ("between", "inside"), grid) == [
        "leaders:leaders=all,inside=shared",
        "leaders:leaders=all,between=ring,inside=shared",
        "leaders:leaders=all",
    ]


def test_the_best_shapes_are_put_together() -> None:
    base = "by_topology:leaf=linear,node=linear,top=linear"
    result = cell(
        {
            base: [1.0] * 5,
            "by_topology:leaf=linear,node=linear,top=binomial": [0.8] * 5,
            "by_topology:leaf=binomial,node=linear,top=linear": [1.2] * 5,
            "by_topology:leaf=linear,node=binomial,top=linear": [0.9] * 5,
        }
    )
    assert parts.combined(result, base, ("top", "leaf", "node")) == "by_topology:leaf=linear,node=binomial,top=binomial"


def test_the_best_stages_of_leaders_are_put_together_defaults_among_them() -> None:
    base = "leaders:leaders=all,between=ring,inside=shared"
    result = cell(
        {
            base: [1.0] * 5,
            "leaders:leaders=all,inside=shared": [0.8] * 5,
            "leaders:leaders=all,between=direct,inside=shared": [1.1] * 5,
            "leaders:leaders=all,between=ring": [0.9] * 5,
            "leaders:between=direct": [0.1] * 5,
        }
    )
    assert parts.combined(result, base, ("between", "inside")) == "leaders:leaders=all"
    # Keys may stand in another order: it's the same plan, and was measured.
    measured = cell({"leaders:inside=shared,leaders=all": [1.0] * 5, "leaders:leaders=all,inside=shared": [0.9] * 5})
    assert parts.combined(measured, "leaders:leaders=all,inside=shared", ("between", "inside")) is None


def test_a_combination_that_was_measured_isnt_measured_again() -> None:
    base = "by_topology:node=linear,top=linear"
    result = cell({base: [1.0] * 5, "by_topology:node=linear,top=binomial": [2.0] * 5})
    assert parts.combined(result, base, ("top", "node")) is None


def test_it_is_exact_without_segments_and_with_equal_groups_only() -> None:
    assert parts.is_exact(job(EVEN), "by_topology:leaf=linear,node=linear,top=linear")
    assert not parts.is_exact(job(UNEVEN), "by_topology:leaf=linear,node=linear,top=linear")
    assert not parts.is_exact(job(EVEN), "by_topology:leaf=linear,node=linear,top=linear,segment=8K")
    assert not parts.is_exact(job(EVEN), "k_nomial")
    # Leaders overlap what they do among each other with what they do inside of their groups.
    assert parts.has_parts("leaders:between=ring")
    assert not parts.is_exact(job(EVEN), "leaders:between=ring")


@pytest.mark.parametrize(
    ("function", "size"),
    [("gather", 256), ("gather", 65536), ("scatter", 64), ("reduce", 1024), ("bcast", 1024), ("bcast", 16384)],
)
def test_on_equal_groups_level_by_level_finds_the_best_tree_of_all(function: str, size: int) -> None:
    here = job("6leaf@50Mbit/s~200us:5node@100Mbit/s~80us:2core")
    cell_here, keys, shapes = Cell(function, size), ("leaf", "node", "top"), ("linear", "binomial", "k_nomial.4")

    def seconds(*chosen: str) -> float:
        spec = written("by_topology", dict(zip(keys, chosen, strict=True)))
        found = prediction_of(here, spec, cell_here)
        assert found is not None
        return found.seconds

    alone = [
        min(shapes, key=lambda shape, at=at: seconds(*(shape if i == at else "linear" for i in range(3))))  # type: ignore[misc]
        for at in range(3)
    ]
    assert seconds(*alone) == pytest.approx(min(seconds(*all_three) for all_three in product(shapes, repeat=3)))
