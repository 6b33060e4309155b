"""Neighbourhood collectives against the MPI's own."""

from __future__ import annotations

import pytest

from .conftest import Cluster, Mpi

pytestmark = pytest.mark.mpi

ALIKE = ("neighbor_allgather", "neighbor_alltoall")
DIFFERING = ("neighbor_allgatherv", "neighbor_alltoallv", "neighbor_alltoallw")


@pytest.mark.parametrize("ranks", [2, 7, 12])
def test_results_on_random_topologies_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "neighbours", "--seed", ranks, settings=cluster.settings(ranks))
    ran.assert_right()
    served = ran.served()
    combined = {"combined:level=node"} if ranks > 5 else set()
    assert {function: set(counts) for function, counts in served.items()} == {
        **{function: {"direct", *combined} for function in ALIKE},
        **{function: {"direct"} for function in DIFFERING},
    }
    assert not set(served) & set(ran.fallbacks())


def test_short_blocks_of_calls_with_lengths_are_combined_once_a_slot_is_agreed(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(9, "neighbours", "--cases", 5, "--calls", 120, settings=cluster.settings(9))
    ran.assert_right()
    served = ran.served()
    assert all(set(served[function]) == {"direct", "combined:level=node"} for function in DIFFERING), served
