"""Forcing algorithms while the program runs."""

from __future__ import annotations

import pytest

from .conftest import Cluster, Mpi

pytestmark = pytest.mark.mpi


def test_algorithms_are_switched_within_one_job(mpi: Mpi, cluster: Cluster) -> None:
    done = mpi.run(6, "control", settings={**cluster.settings(6), "PALMETTE_FORCE": "allreduce=direct"})
    done.assert_right()
    served = done.served()["allreduce"]
    assert {"rabenseifner", "recursive_doubling", "direct"} <= set(served), "each is a row of the report"
    assert "PALMETTE_ settings differ between ranks" in done.fallbacks()["allreduce"], "ranks that disagree are told"
    assert done.report is not None
    reasons = {row["algorithm"]: row["reason"] for row in done.report["calls"] if row["function"] == "allreduce"}
    assert reasons["rabenseifner"] == "forced by palmette_force"


def test_without_the_preload_there_is_nothing_to_call(mpi: Mpi) -> None:
    done = mpi.run(2, "control", "--preloaded", 0, preload=False)
    done.assert_right()
