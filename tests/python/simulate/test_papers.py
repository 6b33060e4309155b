"""The gather paper's tables on its test bed, simulated: direction and size of what was found there.

Kandalla, Subramoni, Vishnu, Panda: Designing topology-aware collective communication algorithms for large scale InfiniBand
clusters: case studies with scatter and gather, IPDPS 2010. 296 ranks: switch A with 4 nodes of 16, switch B with 29 nodes of
8, two DDR links each to switch C.

Palmette's plans stand against the simulator's `mpich` and `ompi`. The cells here are those that hold; those that palmette
loses stand in docs/guide/simulate.md.
"""

from __future__ import annotations

import statistics
from functools import cache

import pytest

from palmette.bench.traffic import Traffic
from palmette.simulate import cluster, job, limits, parameters, run

VALUES = parameters.read()
RIVALS = ("mpich", "ompi")
pytestmark = pytest.mark.slow


@cache
def times_s(
    smpirun: str,
    contender: str,
    collective: str,
    sizes: tuple[int, ...],
    placement: str,
    share: float = 1.0,
    algorithm: str = "",
    traffic: str = "",
) -> dict[int, float]:
    """Simulated times of right results on the test bed."""
    bed = cluster.prepared(cluster.from_stored("gather-paper"), VALUES, share)
    background = job.background_of(bed, Traffic.parse(traffic)) if traffic else None
    seats = job.make_job(bed, placement, None, background)
    environment = {f"PALMETTE_{collective.upper()}": algorithm} if algorithm else {}
    found = run.simulate(smpirun, seats, VALUES, contender, collective, sizes, environment=environment)
    assert not found.trouble
    assert not any(found.wrong_ranks.values())
    if algorithm:
        assert all(name == algorithm for name in found.algorithms.values())
    return found.times_s


def ratios(smpirun: str, collective: str, sizes: tuple[int, ...], placement: str, share: float = 1.0) -> list[float]:
    """Palmette's time over the better rival's, by size."""
    own = times_s(smpirun, run.PALMETTE, collective, sizes, placement, share)
    rivals = [times_s(smpirun, rival, collective, sizes, placement, share) for rival in RIVALS]
    return [own[size] / min(rival[size] for rival in rivals) for size in sizes]


@pytest.mark.parametrize("placement", ["block", "cyclic", "random:1"])
def test_scatter_loses_nowhere_and_takes_half_the_time_at_small_sizes(smpirun: str, placement: str) -> None:
    found = ratios(smpirun, "scatter", (64, 1024, 65_536), placement)
    assert max(found) <= 1.05
    assert found[0] <= 0.6


def test_gather_gains_on_random_placement_and_more_so_over_a_quarter_of_the_uplink(smpirun: str) -> None:
    whole = ratios(smpirun, "gather", (1024, 8192), "random:2")
    quarter = ratios(smpirun, "gather", (1024, 8192), "random:2", 0.25)
    assert max(quarter) < 1
    assert statistics.median(quarter) < statistics.median(whole) - 0.1


def test_large_blocks_are_gathered_at_the_physical_bound(smpirun: str) -> None:
    bed = cluster.prepared(cluster.from_stored("gather-paper"), VALUES)
    for placement in ("block", "random:1"):
        seats = job.make_job(bed, placement, None)
        own = times_s(smpirun, run.PALMETTE, "gather", (65_536,), placement)[65_536]
        assert own <= 1.05 * limits.bound_s(seats, VALUES, "gather", 65_536, 0)


def test_a_two_phase_gather_without_pipelining_loses_large_blocks_and_is_not_chosen(smpirun: str) -> None:
    chosen, two_phase = (
        times_s(smpirun, run.PALMETTE, "gather", (65_536,), "block", 1.0, algorithm)[65_536]
        for algorithm in ("", "by_topology:node=linear,leaf=linear,top=linear")
    )
    flat = min(times_s(smpirun, rival, "gather", (65_536,), "block")[65_536] for rival in RIVALS)
    assert two_phase > 1.2 * flat
    assert chosen <= flat
