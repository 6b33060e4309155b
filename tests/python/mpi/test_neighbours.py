"""Neighbourhood collectives against the MPI's own."""

from __future__ import annotations

import pytest

from .conftest import Cluster, Mpi

pytestmark = pytest.mark.mpi

ALIKE = ("neighbor_allgather", "neighbor_alltoall")
DIFFERING = ("neighbor_allgatherv", "neighbor_alltoallv", "neighbor_alltoallw")


ALL = (*ALIKE, *DIFFERING)


def forced(way: str) -> dict[str, str]:
    return {f"PALMETTE_{function.upper()}": way for function in ALL}


@pytest.mark.parametrize("ranks", [2, 7, 12])
def test_results_on_random_topologies_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "neighbours", "--seed", ranks, settings=cluster.settings(ranks) | forced("combined"))
    ran.assert_right()
    served = {function: set(counts) for function, counts in ran.served().items()}
    alike = "combined:level=node" if ranks > 5 else "direct"
    assert all(alike in served[function] for function in ALIKE), served
    assert all("direct" in served[function] for function in DIFFERING), served
    assert not set(served) & set(ran.fallbacks())


def test_direct_plans_give_what_the_mpi_gives(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(9, "neighbours", "--seed", 5, settings=cluster.settings(9) | forced("direct"))
    ran.assert_right()
    assert {function: set(counts) for function, counts in ran.served().items()} == dict.fromkeys(ALL, {"direct"})


def test_what_is_not_combined_is_left_to_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(9, "neighbours", "--cases", 8, "--calls", 120, "--blocking", 1, settings=cluster.settings(9))
    ran.assert_right()
    served, left = ran.served(), ran.fallbacks()
    assert all("combined:level=node" in served[function] for function in ALL), served
    # A rank without neighbours may pass any length: such calls aren't left to the MPI by their length.
    assert set().union(*served.values()) <= {"combined:level=node", "direct", "none"}, served
    assert all("chosen" in left[function] for function in DIFFERING), left


def test_a_setting_leaves_a_function_to_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    settings = cluster.settings(7) | {"PALMETTE_NEIGHBOR_ALLTOALL": "mpi"}
    ran = mpi.run(7, "neighbours", "--blocking", 1, settings=settings)
    ran.assert_right()
    assert "neighbor_alltoall" not in ran.served()
    assert set(ran.fallbacks()["neighbor_alltoall"]) == {"chosen"}
