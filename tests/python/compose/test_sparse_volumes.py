"""What crosses between hosts in a tomography's sums: studies/sparse_volumes.py, counted without MPI."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from palmette import _core

from ..conftest import ROOT


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    pytest.importorskip("scipy", reason="the example's projector needs SciPy: pip install scipy")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "studies")
        yield importlib.import_module("sparse_volumes")


@pytest.fixture(scope="module")
def projector(study: ModuleType) -> ModuleType:
    return sys.modules["projector"]


def cells(parts: NDArray[np.float64], side: int) -> NDArray[np.int64]:
    """Return the cell of a grid that each part is, as (row, column)."""
    edges = np.rint(parts * side).astype(int)
    np.testing.assert_allclose(parts * side, edges, atol=1e-9)
    assert (edges[:, 1] == edges[:, 0] + 1).all()
    assert (edges[:, 3] == edges[:, 2] + 1).all()
    return edges[:, ::2]


@pytest.mark.parametrize("side", [1, 2, 4, 16])
def test_hilbert_s_order_visits_each_cell_once_and_goes_to_neighbours(projector: ModuleType, side: int) -> None:
    order = projector.hilbert(side)
    assert {tuple(cell) for cell in order.tolist()} == {(x, y) for x in range(side) for y in range(side)}
    assert (np.abs(np.diff(order, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("side", "high"), [(2, 1), (2, 2), (4, 1), (4, 2), (16, 2), (16, 4)])
def test_strips_visit_each_cell_once_and_go_to_neighbours_or_to_the_next_strip(
    projector: ModuleType, side: int, high: int
) -> None:
    order = cells(projector.strips(side * side, high), side)
    assert {tuple(cell) for cell in order.tolist()} == {(y, x) for x in range(side) for y in range(side)}
    for number, (a, b) in enumerate(pairwise(order), start=1):
        rows, columns = np.abs(b - a)
        next_strip = number % (side * high) == 0
        assert (rows <= high and columns == 0) if next_strip else rows + columns == 1


@pytest.mark.parametrize(("ranks", "high"), [(1, 1), (5, 2), (6, 2), (7, 1), (11, 2), (43 * 6, 2)])
def test_parts_of_any_number_of_ranks_cover_the_image_once_in_either_order(
    projector: ModuleType, ranks: int, high: int
) -> None:
    geometry = projector.Geometry(64, 64)
    for height in (0, high):
        seen = np.zeros((64, 64), dtype=int)
        sizes = []
        for position in range(ranks):
            row, column = geometry.cells_of(position, ranks, height)
            np.add.at(seen, (row, column), 1)
            sizes.append(len(row))
        assert (seen == 1).all()
        assert min(sizes) > 0


@pytest.mark.parametrize(("ranks", "high"), [(1, 0), (2, 0), (3, 2), (4, 0), (6, 2), (8, 0), (12, 3), (48, 7)])
def test_strips_are_taken_where_runs_of_hilbert_s_order_are_not_compact(
    projector: ModuleType, ranks: int, high: int
) -> None:
    assert projector.height_of_strips(ranks) == high


def test_a_part_s_shadow_is_as_wide_as_the_part_seen_from_that_angle(study: ModuleType) -> None:
    # Half an image of 4 x 4, the left one and the upper one, from 0 and 90 degrees.
    touched = study.footprints(np.array([[0, 1, 0, 0.5], [0, 0.5, 0, 1]]), 4, 2)
    left, upper = touched.astype(int).tolist()
    assert left == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert upper == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_hosts_send_what_their_ranks_have_in_common_once(study: ModuleType) -> None:
    # Ranks 0 and 1 on a host, 2 and 3 on another; a ray for each, which that rank owns.
    touched = np.array([[1, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 0], [0, 1, 1, 1]], dtype=bool)[:, None]
    owner, host = np.arange(4), np.array([0, 0, 1, 1])
    # Flat: three rays leave the first host, two the other; summed: rays 2 and 3, and ray 1.
    assert study.crossing(touched, owner, host) == (3 + 2, 2 + 1)
    assert study.crossing(touched, owner, np.zeros(4, dtype=int)) == (0, 0)
    assert study.crossing(touched, owner, owner) == (7, 7)


def test_tiles_are_touched_whole(study: ModuleType) -> None:
    touched = np.zeros((1, 4, 4), dtype=bool)
    touched[0, 1, 2] = True
    assert np.argwhere(study.in_tiles(touched, 2)[0]).tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_six_ranks_a_host_save_58_percent_exactly_and_60_in_tiles(study: ModuleType) -> None:
    case = next(one for one in study.cases() if one.name == "256 ranks, 6 a host")
    touched = study.footprints(study.parts_of(case, "strips"), case.image, case.angles)
    for tiles, wanted in ((1, 0.58), (4, 0.60)):
        counted = study.volume(case, "strips", touched, tiles)
        assert counted.saved() >= wanted


def test_the_plans_of_a_sparse_sum_put_on_the_network_what_unions_of_hosts_touch(study: ModuleType) -> None:
    volumes = importlib.import_module("volumes")
    touched = study.footprints(study.parts_of(study.Case("", 16, 32, 24, tuple(range(16))), "hilbert"), 32, 24)
    hosts = np.arange(16) // 3
    job = _core.Job.from_groups(["node"], [[host] for host in hosts.tolist()])
    owner = np.arange(24 * 32) // 48
    rows = [np.flatnonzero(one) for one in touched.reshape(16, -1)]
    flat, summed = study.crossing(touched, owner, hosts)
    assert volumes.of_sparse_sum(job, rows, np.arange(17) * 48, 8, None) == {
        "node": {"sum": 8 * summed, "spread": 8 * summed}
    }
    sizes = np.array([np.bincount(owner[some], minlength=16) * 8 for some in rows])
    assert volumes.of_messages(job, sizes) == {"node": {"sum": 8 * flat, "spread": 8 * flat}}
    assert volumes.of_allreduce(job, 1000) == {"node": {"sum": 2 * 5 * 1000, "spread": 0}}
    assert volumes.ranks_a_host(job) == 3
