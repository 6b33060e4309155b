"""Calls that the table leaves to the MPI take the shortest way, and each is counted all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Mpi

pytestmark = pytest.mark.mpi

CALLS = 50


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that keeps short sums, all broadcasts and all barriers for the MPI, and serves longer sums."""
    rows = [
        {"function": "allreduce", "max_bytes": 1024, "algorithm": "mpi", "why": "for a test"},
        {"function": "allreduce", "algorithm": "ring", "why": "for a test"},
        {"function": "bcast", "algorithm": "mpi", "why": "for a test"},
        {"function": "barrier", "algorithm": "mpi", "why": "for a test"},
    ]
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("settings", [{}, {"PALMETTE_CHECK": "1"}], ids=["usual", "checked"])
def test_each_call_that_is_left_to_the_mpi_is_counted_once(mpi: Mpi, table: str, settings: dict[str, str]) -> None:
    ran = mpi.run(
        3, "left_to_mpi", "--calls", CALLS, settings={**settings, "PALMETTE_TABLE": table, "PALMETTE_COMPARE": "0"}
    )
    ran.assert_right()
    assert ran.report is not None
    served = {row["function"]: row["calls"] for row in ran.report["calls"]}
    left = {(row["function"], row.get("detail")): row for row in ran.report["fallbacks"]}
    short = left["allreduce", "up to 1K: table row 0: for a test"]
    assert short["calls"] == 5 * CALLS
    assert short["rank_calls"] == 3 * short["calls"]
    assert served["allreduce"] == CALLS
    # On MPI_COMM_SELF each rank is the first.
    alone = [row for row in ran.report["fallbacks"] if row["function"] == "allreduce" and "one rank" in row["reason"]]
    assert [row["calls"] for row in alone] == [3 * CALLS]
    for function, each in (("barrier", 1), ("bcast", 2)):
        rows = [row for row in ran.report["fallbacks"] if row["function"] == function]
        assert sum(row["rank_calls"] for row in rows) == 3 * CALLS * each + (3 * CALLS if function == "bcast" else 0)
