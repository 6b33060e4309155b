"""Neighbourhood collectives against the MPI's own."""

from __future__ import annotations

import pytest

from palmette.settings import force

from .conftest import Cluster, Mpi

pytestmark = pytest.mark.mpi

ALIKE = ("neighbor_allgather", "neighbor_alltoall")
DIFFERING = ("neighbor_allgatherv", "neighbor_alltoallv", "neighbor_alltoallw")


ALL = (*ALIKE, *DIFFERING)


def forced(way: str) -> dict[str, str]:
    return force(**dict.fromkeys(ALL, way))


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
    assert {function: set(counts) for function, counts in ran.served().items()} == {key: {"direct"} for key in ALL}


def test_what_is_not_combined_is_left_to_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(9, "neighbours", "--cases", 4, "--calls", 120, "--dense", 1, settings=cluster.settings(9))
    ran.assert_right()
    served, left = ran.served(), ran.fallbacks()
    assert {function: set(counts) for function, counts in served.items()} == {
        key: {"combined:level=node"} for key in ALL
    }
    # By length, or before a length is agreed.
    assert all("chosen" in left[function] for function in (*DIFFERING, "neighbor_alltoall")), left


def test_graphs_where_combining_saves_little_are_left_to_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(9, "neighbours", "--blocking", 1, settings=cluster.settings(9))
    ran.assert_right()
    details = {row["detail"] for row in ran.report["fallbacks"]} if ran.report else set()
    assert "a rank without neighbours doesn't know the length" in details, details
    assert any("messages would go between nodes instead of" in detail for detail in details), details


def test_a_setting_leaves_a_function_to_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    settings = cluster.settings(7) | {"PALMETTE_FORCE": "neighbor_alltoall=mpi"}
    ran = mpi.run(7, "neighbours", "--blocking", 1, settings=settings)
    ran.assert_right()
    assert "neighbor_alltoall" not in ran.served()
    assert set(ran.fallbacks()["neighbor_alltoall"]) == {"chosen"}
