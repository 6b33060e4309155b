"""A few nodes with a fast network, which most people have: nowhere slower than the best of SimGrid's four selectors."""

from __future__ import annotations

import pytest

from palmette.simulate import cluster, parameters
from palmette.simulate.compare import Asked, compare
from palmette.simulate.job import make_job
from palmette.simulate.run import SELECTORS

pytestmark = pytest.mark.slow
VALUES = parameters.read()
COLLECTIVES = ("gather", "scatter", "bcast", "reduce", "allreduce")


@pytest.mark.parametrize("machine", ["1leaf@6GB/s:3node@1.5GB/s:4core", "4leaf@6GB/s:4node@1.5GB/s:4core"])
def test_no_size_is_slower_than_the_best_rivals(machine: str, smpirun: str) -> None:
    bed = cluster.prepared(cluster.from_spec(machine), VALUES)
    jobs = [make_job(bed, placement, None) for placement in ("block", "random:1")]
    sizes = (8, 64, 512, 4096, 16_384, 65_536)
    found = compare(smpirun, Asked(jobs, COLLECTIVES, sizes, SELECTORS, parallel=2), VALUES, lambda _: None)
    assert len(found.cells) == len(jobs) * len(COLLECTIVES) * len(sizes)
    assert [cell for cell in found.cells if cell.is_slower or cell.palmette_s is None] == []
    assert all(cell.rivals_s for cell in found.cells)
