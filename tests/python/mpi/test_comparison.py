"""Comparing with the MPI's own collectives while a program runs: what loses is given up, by all ranks at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Mpi, Ran

pytestmark = pytest.mark.mpi

LOST = "the MPI's own was faster in this job"
SAMPLED = "done by the MPI to compare it with palmette"


SLOW = {"PALMETTE_COMPARE": "50%", "PALMETTE_FAKE_DELAY": "40ms"}
"""Palmette's calls lose by far whenever they are compared, on a busy machine too."""


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that serves the collectives of the test program on any job."""
    rows = [
        {"function": "bcast", "algorithm": "linear", "why": "for a test"},
        {"function": "allgather", "algorithm": "ring", "why": "for a test"},
        {"function": "allreduce", "algorithm": "ring", "why": "for a test"},
    ]
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return str(path)


def rows_of(ran: Ran) -> dict[str, dict[str, Any]]:
    """Return the report's comparisons by function."""
    assert ran.report is not None
    return {row["function"]: row for row in ran.report["compared"]}


def test_a_choice_that_loses_is_given_up_by_all_ranks_at_the_same_call(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table, "PALMETTE_VERBOSE": "1"}
    ran = mpi.run(3, "comparison", "--calls", 600, settings=settings)
    ran.assert_right()
    assert ran.report is not None
    calls = {row["function"]: row["calls"] for row in ran.report["calls"]}
    for function in ("bcast", "allgather"):
        row = rows_of(ran)[function]
        assert row["plans"] == {"open": 0, "faster": 0, "same": 0, "slower": 1}, ran.report
        assert row["ours_seconds"] > row["mpi_seconds"] > 0
        assert row["pairs"] >= 5
        reasons = {f["reason"]: f for f in ran.report["fallbacks"] if f["function"] == function}
        assert reasons[SAMPLED]["calls"] == row["pairs"]
        assert "medians of" in reasons[LOST]["detail"]
        # Each call of each rank is counted once, whoever did it.
        assert calls[function] + reasons[SAMPLED]["calls"] + reasons[LOST]["calls"] == 600
        assert reasons[LOST]["rank_calls"] == 3 * reasons[LOST]["calls"]
        assert f"palmette: {function} of" in ran.err


def test_sums_of_real_numbers_are_never_compared_since_their_bits_would_depend_on_timing(mpi: Mpi, table: str) -> None:
    ran = mpi.run(3, "comparison", "--calls", 600, settings={**SLOW, "PALMETTE_TABLE": table})
    ran.assert_right()
    assert ran.report is not None
    # Integers of 4,000 bytes are compared, doubles of 64 aren't.
    assert [r["max_bytes"] for r in ran.report["compared"] if r["function"] == "allreduce"] == [4096]


def test_comparing_can_be_switched_off(mpi: Mpi, table: str) -> None:
    ran = mpi.run(3, "comparison", "--calls", 200, settings={**SLOW, "PALMETTE_TABLE": table, "PALMETTE_COMPARE": "0"})
    ran.assert_right()
    assert rows_of(ran) == {}
    assert ran.fallbacks() == {}


def test_forced_algorithms_are_not_compared(mpi: Mpi) -> None:
    settings = {**SLOW, "PALMETTE_BCAST": "chain:segment=16"}
    ran = mpi.run(2, "comparison", "--calls", 200, settings=settings)
    ran.assert_right()
    assert "bcast" not in rows_of(ran)


def test_few_calls_are_never_compared(mpi: Mpi, table: str) -> None:
    ran = mpi.run(2, "comparison", "--calls", 60, settings={**SLOW, "PALMETTE_TABLE": table})
    ran.assert_right()
    assert rows_of(ran) == {}


def test_a_share_that_is_none_is_told_and_the_usual_one_taken(mpi: Mpi, table: str) -> None:
    settings = {"PALMETTE_TABLE": table, "PALMETTE_COMPARE": "lots"}
    ran = mpi.run(2, "comparison", "--calls", 10, settings=settings)
    ran.assert_right()
    assert "PALMETTE_COMPARE='lots' is neither 0 nor a percentage" in ran.err
