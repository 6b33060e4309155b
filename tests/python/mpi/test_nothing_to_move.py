"""Calls without bytes are served without a message."""

from __future__ import annotations

import pytest

from .conftest import LEVEL_BY_LEVEL, Cluster, Mpi

pytestmark = pytest.mark.mpi

TWICE = (
    "gather",
    "scatter",
    "allgather",
    "allgatherv",
    "alltoall",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)


def test_who_has_nothing_to_move_waits_for_nobody(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(5, "nothing_to_move", settings={**LEVEL_BY_LEVEL, **cluster.settings(5)})
    ran.assert_right()
    # And a nonblocking one of these two.
    assert ran.empty() == {**dict.fromkeys(TWICE, 2), "bcast": 3, "allreduce": 3}
    assert ran.served() == {}
    assert ran.fallbacks() == {}
