"""A few nodes with a fast network, which most people have: nowhere slower than the best of SimGrid's four selectors."""

from __future__ import annotations

import pytest

from palmette_lab.simulate import cluster, parameters
from palmette_lab.simulate.compare import ComparisonRequest, compare
from palmette_lab.simulate.job import make_job
from palmette_lab.simulate.run import SELECTORS

pytestmark = [pytest.mark.slow, pytest.mark.long]
VALUES = parameters.read()
COLLECTIVES = ("gather", "scatter", "bcast", "reduce", "allreduce")


@pytest.mark.parametrize(
    "machine",
    ["1leaf@6GB/s:3node@1.5GB/s:4core", pytest.param("4leaf@6GB/s:4node@1.5GB/s:4core", marks=pytest.mark.long)],
)
def test_no_size_is_slower_than_the_best_rivals(machine: str, smpirun: str) -> None:
    bed = cluster.prepared(cluster.from_spec(machine), VALUES)
    jobs = [make_job(bed, placement, None) for placement in ("block", "random:1")]
    sizes = (8, 64, 512, 4096, 16_384, 65_536)
    found = compare(smpirun, ComparisonRequest(jobs, COLLECTIVES, sizes, SELECTORS, parallel=2), VALUES, lambda _: None)
    assert len(found.cells) == len(jobs) * len(COLLECTIVES) * len(sizes)
    assert [cell for cell in found.cells if cell.is_slower or cell.palmette_s is None] == []
    assert all(cell.rivals_s for cell in found.cells)


def test_ranks_that_are_dealt_out_in_turn_get_what_a_simulation_of_each_candidate_finds(smpirun: str) -> None:
    # Formulas alone chose a tree that took 2.5 times as long as Open MPI's.
    job = make_job(cluster.prepared(cluster.from_spec("1leaf@37.5GB/s:3node@12.5GB/s:24core"), VALUES), "cyclic", None)
    found = compare(smpirun, ComparisonRequest([job], ["bcast"], [140_324], SELECTORS), VALUES, lambda _: None)
    (cell,) = found.cells
    assert cell.reason is not None and "shortest simulated time" in cell.reason
    assert cell.ratio is not None and cell.ratio < 1.2
