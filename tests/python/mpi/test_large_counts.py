"""The functions with MPI_Count for int: MPI_Bcast_c and the like."""

from __future__ import annotations

import os

import pytest

from .conftest import Cluster, Mpi
from .test_nonblocking import BY_LEVEL, TREES

pytestmark = pytest.mark.mpi

LARGE_BYTES = int(os.environ.get("PALMETTE_TEST_LARGE_BYTES", "0"))
"""Bytes of a broadcast, more than 2^31, which each of two ranks needs as memory."""


@pytest.mark.parametrize("specs", [TREES, BY_LEVEL], ids=["trees", "by_level"])
def test_they_are_served_as_the_others_are(mpi: Mpi, cluster: Cluster, specs: dict[str, str]) -> None:
    ran = mpi.run(4, "large_counts", settings={**specs, **cluster.settings(4)})
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no functions with large counts")
    ran.assert_right()
    blocking = {
        "bcast",
        "reduce",
        "allreduce",
        "reduce_scatter",
        "reduce_scatter_block",
        "gather",
        "gatherv",
        "scatter",
    }
    blocking |= {"scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "scan", "exscan"}
    assert set(ran.served()) == blocking
    assert ran.report is not None
    assert {row["function"] for row in ran.report["calls"] if not row["blocking"]} == {
        "bcast", "allreduce", "allgatherv"
    }  # fmt: skip


def test_a_broadcast_of_more_bytes_than_an_int_counts(mpi: Mpi, cluster: Cluster) -> None:
    if LARGE_BYTES <= 2**31:
        pytest.skip("needs memory and time: set PALMETTE_TEST_LARGE_BYTES to more than 2147483648")
    ran = mpi.run(
        2, "large_counts", "--bytes", LARGE_BYTES, "--timeout", 400,
        settings={**TREES, **cluster.settings(2)}, timeout_s=500,
    )  # fmt: skip
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no functions with large counts")
    ran.assert_right()
    assert sum(ran.served()["bcast"].values()) == 1
