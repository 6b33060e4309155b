"""Hierarchical allreduce and all-to-all against flat ones, and a composed broadcast, simulated.

Allreduce with leaders: as MPICH, MVAPICH2 and Open MPI's HAN do it inside and between nodes. All-to-all with one message for
each rank and node: as for transposes of distributed FFTs. Broadcast: Hidayetoglu et al., HiCCL, 2024, with
t = (a + d / (f k)) (k + n - 2) for a ring of n nodes and depth k, best at k = sqrt(d (n - 2) / (f a)).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.slow
Took = Callable[..., dict[int, float]]


def nodes(count: int, ranks: int = 8) -> str:
    """Nodes on one switch."""
    return f"{count}node@1.5GB/s~1.57us:{ranks}core"


@pytest.mark.parametrize("count", [2, 4, 8, 16, 32, 64])
def test_a_hierarchical_allreduce_beats_a_flat_one_with_any_number_of_nodes(count: int, took: Took) -> None:
    sizes = (64, 16_384)
    flat = took(nodes(count), "palmette", "allreduce", sizes, "random:1", algorithm="recursive_doubling:order=rank")
    leaders = "leaders:leaders=4,between=recursive_doubling,inside=linear"
    hierarchical = took(nodes(count), "palmette", "allreduce", sizes, "random:1", algorithm=leaders)
    assert hierarchical[64] < flat[64]
    assert hierarchical[16_384] < 0.7 * flat[16_384]


def test_an_alltoall_by_nodes_wins_small_blocks_and_loses_large_ones(took: Took) -> None:
    sizes = (8, 64, 512, 4096, 32_768)
    flat = took(nodes(16, 16), "palmette", "alltoall", sizes, algorithm="linear")
    by_nodes = took(nodes(16, 16), "palmette", "alltoall", sizes, algorithm="node_aware:inside=linear")
    ratios = [by_nodes[size] / flat[size] for size in sizes]
    assert ratios[0] < 0.5
    assert ratios[-1] >= 1
    # One crossover: what is won with small blocks is lost step by step.
    assert ratios == sorted(ratios)


def test_a_ring_broadcast_is_fastest_at_the_depth_of_the_formula(took: Took) -> None:
    count, size = 16, 1 << 20
    depths = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    times = {
        depth: took(nodes(count, 1), "palmette", "bcast", (size,), factoring=f"method=ring pipeline={depth}")[size]
        for depth in depths
    }
    best = min(times, key=lambda depth: times[depth])
    formula = math.sqrt(size * (count - 2) / (1.5e9 * 1.57e-6))
    assert formula / 2 <= best <= formula * 2
    assert times[best] < times[1] / 5


def test_a_broadcast_gains_from_levels_stripes_and_a_pipeline(took: Took) -> None:
    size = 1 << 20
    spec = nodes(8, 4)
    direct, levels, striped, pipelined = (
        took(spec, "palmette", "bcast", (size,), factoring=factoring)[size]
        for factoring in (
            "hierarchy=32 method=direct",
            "hierarchy=8:4 method=tree.2,direct",
            "hierarchy=8:4 method=tree.2,direct stripes=4",
            "hierarchy=8:4 method=ring,direct stripes=4 pipeline=32",
        )
    )
    assert direct > levels > striped > pipelined
