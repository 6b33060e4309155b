"""Hierarchical allreduce and all-to-all against flat ones, simulated.

Allreduce with leaders: Luo, Wu, Bosilca, Pei, Cao, Patinyasakdikul, Zhong, Dongarra, "HAN: a hierarchical autotuned
collective communication framework", IEEE CLUSTER 2020. All-to-all with one message for each rank and node: Kinkead,
Wesley, Schonbein, DeBonis, Dosanjh, Bienz, SC Workshops 2025.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long]
Took = Callable[..., dict[int, float]]


def nodes(count: int, ranks: int) -> str:
    """Nodes on one switch."""
    return f"{count}node@1.5GB/s~1.57us:{ranks}core"


@pytest.mark.parametrize("count", [2, 4, 8, 16, 32, 64])
def test_a_hierarchical_allreduce_beats_a_flat_one_with_any_number_of_nodes(count: int, took: Took) -> None:
    sizes = (64, 16_384)
    spec = nodes(count, 4)
    flat, leaders = (
        took(spec, "palmette", "allreduce", sizes, "random:1", algorithm=algorithm)
        for algorithm in ("recursive_doubling:order=rank", "leaders:leaders=4,between=recursive_doubling,inside=linear")
    )
    # 0.66 to 0.80, and 0.24 to 0.42.
    assert leaders[64] < 0.9 * flat[64]
    assert leaders[16_384] < 0.55 * flat[16_384]


def test_an_alltoall_by_nodes_wins_small_blocks_and_loses_large_ones(took: Took) -> None:
    sizes = (8, 64, 128, 512, 4096)
    flat = took(nodes(8, 8), "palmette", "alltoall", sizes, algorithm="linear")
    by_nodes = took(nodes(8, 8), "palmette", "alltoall", sizes, algorithm="node_aware:inside=linear")
    ratios = [by_nodes[size] / flat[size] for size in sizes]
    assert ratios[0] < 0.5
    assert ratios[-1] >= 1
    # One crossover, between 64 and 128 bytes a pair: what is won with small blocks is lost step by step.
    assert ratios[1] < 1 < ratios[2]
    assert ratios == sorted(ratios)


def test_rounds_of_an_alltoall_hide_what_goes_on_inside_of_nodes(took: Took) -> None:
    # The uplink is the limit; without rounds everything arrives at the end, and is handed on only then.
    sizes = (512, 4096)
    machine = "2leaf@1.5GB/s~2.45us:4node@1.5GB/s~1.57us:8core"
    at_once, in_rounds = (
        took(machine, "palmette", "alltoall", sizes, "random:1", algorithm=algorithm)
        for algorithm in ("node_aware", "node_aware:rounds=3")
    )
    for size in sizes:
        assert in_rounds[size] < 0.95 * at_once[size]


def test_ranks_of_a_node_that_share_its_messages_beat_its_leader_for_tiny_vectors(took: Took) -> None:
    # Bienz, Olson, Gropp, ExaMPI 2019, found node-aware allreduces up to 4 times faster than others for small vectors.
    one, all_of_them = "by_topology:node=postal.5,top=postal.5", "by_topology:node=postal.5,top=linear,relays=all"
    for collective, leaders, shared in (
        ("bcast", one, all_of_them),
        ("reduce", one, all_of_them),
        ("allreduce", "leaders:between=recursive_multiplying.4,inside=linear", "node_aware"),
    ):
        by_leader, by_all = (
            took(nodes(16, 8), "palmette", collective, (8, 4096), algorithm=name) for name in (leaders, shared)
        )
        assert by_all[8] < 0.9 * by_leader[8], collective
        # Longer vectors have the node's one link to share.
        assert by_all[4096] > by_leader[4096], collective
