"""Aggregators in a real run: none is in service, so plans through them are never run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palmette import _core

from .conftest import Cluster, Mpi, forced

pytestmark = pytest.mark.mpi


def test_a_forced_plan_through_aggregators_is_left_to_the_mpi_with_its_reason(mpi: Mpi, tmp_path: Path) -> None:
    machine = _core.Machine.synthetic("aggregator@1GB/s:3leaf@1GB/s:2node@1GB/s:4core")
    path = tmp_path / "topology.json"
    document = {"format": "palmette-topology", "version": 1, "machine": machine.to_json()}
    path.write_text(json.dumps(document), encoding="utf-8")
    where = Cluster(path, machine.hosts).settings(6, "block")
    ran = mpi.run(6, "random_arguments", "--seed", 5, "--cases", 60,
                  settings={**where, **forced(allreduce="in_network")})  # fmt: skip
    ran.assert_right()
    assert "allreduce" not in ran.served()
    assert ran.report is not None
    reasons = {row["reason"]: row["detail"] for row in ran.report["fallbacks"] if row["function"] == "allreduce"}
    assert "no aggregator serves the job" in reasons["the algorithm's precondition doesn't hold"]
