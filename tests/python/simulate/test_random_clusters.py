"""Clusters of any shape, drawn at random: palmette's choices hold where no row of the table was found."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def drawing(bench_program: Callable[[str], ModuleType]) -> ModuleType:
    """The program, as a module."""
    return bench_program("random_clusters")


def test_the_same_seed_draws_the_same_clusters(drawing: ModuleType) -> None:
    first, again, other = (list(drawing.draw(seed, 6, ("bcast", "alltoall"), 64, 4)) for seed in (1, 1, 2))
    assert first == again != other
    assert len({one.spec for one in first}) > 1
    for one in first:
        assert 2 <= one.ranks <= 64 + 64  # a leaf's nodes are rounded up
        assert all(size % 4 == 0 and 4 <= size <= 256 << 10 for size in one.sizes)


def test_fat_nodes_are_drawn_as_asked(drawing: ModuleType) -> None:
    drawn = list(drawing.draw(3, 12, ("bcast",), 256, 2, (16, 64)))
    assert {one.spec.rsplit(":", 1)[1] for one in drawn} == {"16core", "64core"}
    assert all(one.ranks <= 256 + 5 * 64 for one in drawn)  # a leaf's nodes are rounded up


@pytest.mark.slow
@pytest.mark.parametrize(
    "collective",
    ["reduce", *(pytest.param(one, marks=pytest.mark.long) for one in ("bcast", "allreduce", "allgather", "alltoall"))],
)
def test_few_cells_are_slower_than_the_best_rivals(collective: str, drawing: ModuleType, smpirun: str) -> None:
    options = SimpleNamespace(
        rivals="ompi,mpich,mvapich2,impi", cpu_limit=60, parallel=1, keep=None, env=[], parameters=None
    )
    drawn = list(drawing.draw(7, 6, (collective,), 48, 5))
    cells = [(one, drawing.honest(cell)) for one in drawn for cell in drawing.compared(smpirun, one, options)]
    ratios = [cell.ratio for _, cell in cells if cell.ratio is not None]
    assert len(ratios) > 20
    slower = [drawing.line_of(one, cell) for one, cell in cells if cell.is_slower]
    assert len(slower) <= 0.15 * len(ratios), "\n".join(slower)
    assert statistics.geometric_mean(ratios) <= 0.95
