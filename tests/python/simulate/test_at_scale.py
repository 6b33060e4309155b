"""296 and 1,024 ranks: the sets `test-bed` and `clos-1024` in short; the whole of them is made on demand."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from palmette_lab.simulate import cluster, job, limits, parameters, run

pytestmark = [pytest.mark.slow, pytest.mark.long]
Took = Callable[..., dict[int, float]]
VALUES = parameters.read()
TEST_BED = "gather-paper"
RANGER = "ranger-64"
SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
FROM_ALL_TO_ONE_OR_BACK = ("bcast", "reduce", "allreduce")

# The one cell of these that is neither 1.5 times as fast as the best rival nor near the bound: it takes 0.82 of its
# time.
KNOWN_MISSES = {("reduce", 512)}


def against(
    took: Took, platform: str, collective: str, rivals: tuple[str, ...], sizes: tuple[int, ...], at: str
) -> list[float]:
    """Palmette's time over the best rival's, by size, with placement `at`."""
    own, *others = (took(platform, one, collective, sizes, at) for one in (run.PALMETTE, *rivals))
    return [own[size] / min(other[size] for other in others) for size in sizes]


@pytest.mark.parametrize(
    ("collective", "sizes", "mean"),
    [
        ("gather", (8, 4096, 65_536), 0.8),
        ("scatter", (8, 4096, 65_536), 0.8),
        ("bcast", (8, 512, 4096), 0.55),
        ("reduce", (8, 512, 4096), 0.75),
        ("allreduce", (8, 512, 4096), 0.6),
        ("allgather", (8, 64), 0.4),
        ("alltoall", (8,), 0.4),
    ],
)
def test_scattered_ranks_of_the_test_bed_are_far_ahead_or_near_the_bound(
    collective: str, sizes: tuple[int, ...], mean: float, took: Took
) -> None:
    ratios = against(took, TEST_BED, collective, SELECTORS, sizes, "random:1")
    assert statistics.geometric_mean(ratios) <= mean
    assert max(ratios) <= 1.05
    seats = job.make_job(cluster.prepared(cluster.from_stored(TEST_BED), VALUES), "random:1", None)
    own = took(TEST_BED, run.PALMETTE, collective, sizes, "random:1")
    near = 1.5 if collective in FROM_ALL_TO_ONE_OR_BACK else 1.15
    misses = {
        (collective, size)
        for size, ratio in zip(sizes, ratios, strict=True)
        if ratio > 1 / 1.5 and own[size] > near * limits.bound_s(seats, VALUES, collective, size, 0)
    }
    assert misses <= KNOWN_MISSES


@pytest.mark.parametrize("collective", FROM_ALL_TO_ONE_OR_BACK)
def test_ranks_in_order_on_the_test_bed_are_served_no_slower(collective: str, took: Took) -> None:
    assert max(against(took, TEST_BED, collective, SELECTORS, (8, 4096), "block")) <= 1.05


# Rivals are those that begin without ranks² messages, which SMPI's node-aware ones take. Those of reduce are slower
# than the best (mvapich2: 11.5 and 12.1 us for 8 and 64 B, a minute of a core), so its limits are low enough to be
# ahead of that, too.
@pytest.mark.parametrize(
    ("collective", "rivals", "at_most"),
    [
        ("gather", ("mpich",), {8: 0.6, 1024: 0.9, 16_384: 0.95}),
        ("scatter", ("ompi",), {8: 0.5, 1024: 1.05, 16_384: 1.05}),
        ("bcast", ("binomial_tree",), {8: 0.35, 1024: 0.4, 16_384: 0.15}),
        ("reduce", ("ompi",), {8: 0.3, 512: 0.42, 4096: 0.22}),
        # Longer vectors in slices take minutes.
        ("allreduce", ("rdb",), {8: 0.4, 1024: 0.2}),
        ("allgather", ("rdb",), {8: 0.3}),
    ],
)
def test_a_thousand_scattered_ranks_are_served_no_slower_than_by_a_rival_that_is_cheap_to_simulate(
    collective: str, rivals: tuple[str, ...], at_most: dict[int, float], took: Took
) -> None:
    ratios = against(took, RANGER, collective, rivals, (*at_most,), "random:1")
    for (size, limit), ratio in zip(at_most.items(), ratios, strict=True):
        assert ratio <= limit, size


@pytest.mark.parametrize("collective", ["bcast", "reduce"])
def test_64_bytes_to_or_from_a_thousand_scattered_ranks_are_near_the_bound(collective: str, took: Took) -> None:
    seats = job.make_job(cluster.prepared(cluster.from_stored(RANGER), VALUES), "random:1", None)
    own = took(RANGER, run.PALMETTE, collective, (64,), "random:1")
    assert own[64] <= 1.5 * limits.bound_s(seats, VALUES, collective, 64, 0)
