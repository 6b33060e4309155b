"""Comparing with the MPI's own collectives while a program runs: what loses is given up, by all ranks at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .conftest import Mpi, ProgramResult

pytestmark = pytest.mark.mpi

LOST = "the MPI's own was faster in this job"
SAMPLED = "done by the MPI to compare it with palmette"
UNDECIDED = "the MPI's until a comparison shows that palmette is faster"


SLOW = {"PALMETTE_COMPARE": "50%", "PALMETTE_FAKE_DELAY": "3ms"}
"""Palmette's calls lose by far whenever they are compared."""
CALLS = (400, 1200, 3600, 10800)
"""How many it takes until that is decided depends on how long the MPI's take, and so on the machine's load."""


CHOSEN = {
    "bcast": "linear",
    "allgather": "ring",
    "allgatherv": "ring",
    "alltoallv": "pairwise",
    "allreduce": "ring",
    "reduce": "linear",
    "reduce_scatter": "ring",
    "reduce_scatter_block": "ring",
    "scan": "linear",
    "exscan": "linear",
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that serves the collectives of the test program on any job."""
    rows = [{"function": name, "algorithm": algorithm, "why": "for a test"} for name, algorithm in CHOSEN.items()]
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return str(path)


def rows_of(ran: ProgramResult) -> dict[str, dict[str, Any]]:
    """Return the report's comparisons of the table's choices, by function."""
    assert ran.report is not None
    return {row["function"]: row for row in ran.report["compared"] if row["algorithm"] == CHOSEN[row["function"]]}


def run_until_decided(
    mpi: Mpi, functions: Sequence[str], *options: str | int, settings: dict[str, str]
) -> ProgramResult:
    """Run the test program with ever more calls until the table's choices for `functions` are decided."""
    for calls in CALLS:
        ran = mpi.run(3, "comparison", "--calls", calls, *options, settings=settings)
        ran.assert_right()
        plans = [rows_of(ran)[function]["plans"] for function in functions]
        # Before the first pair a plan is not even open.
        if all(any(one.values()) and not one["open"] for one in plans):
            break
    return ran


def calls_of(ran: ProgramResult) -> int:
    assert ran.report is not None
    return sum(row["calls"] for row in ran.report["fallbacks"] + ran.report["calls"] if row["function"] == "bcast")


def test_a_choice_that_loses_is_given_up_by_all_ranks_at_the_same_call(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table, "PALMETTE_VERBOSE": "1"}
    ran = run_until_decided(mpi, ["bcast", "allgather"], "--reals", 0, settings=settings)
    assert ran.report is not None
    calls = Counter[str]()
    for row in ran.report["calls"]:
        calls[row["function"]] += row["calls"]
    for function in ("bcast", "allgather"):
        row = rows_of(ran)[function]
        assert row["plans"] == {"open": 0, "faster": 0, "same": 0, "slower": 1}, ran.report
        assert row["ours_seconds"] > row["mpi_seconds"] > 0
        assert row["pairs"] >= 3
        reasons = {f["reason"]: f for f in ran.report["fallbacks"] if f["function"] == function}
        assert reasons[SAMPLED]["calls"] >= row["pairs"]
        # Each call of each rank is counted once, whoever did it.
        left = {reason: reasons[reason]["calls"] for reason in (SAMPLED, UNDECIDED, LOST) if reason in reasons}
        assert calls[function] + sum(left.values()) == calls_of(ran), ran.report
        assert all(reasons[reason]["rank_calls"] == 3 * count for reason, count in left.items())
        assert f"palmette: {function} of" in ran.err
    gain = ran.report["gain"]
    served = sum(row["rank_seconds"] for row in ran.report["calls"]) / 3
    assert gain["served_seconds"] == pytest.approx(served)
    assert gain["saved_seconds"] < 0
    assert gain["kinds"] >= gain["settled_kinds"] >= 2
    assert "topology" not in ran.report


def test_the_page_begins_with_what_was_gained(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table, "PALMETTE_REPORT": "1"}
    for calls in CALLS:
        ran = mpi.run(3, "comparison", "--calls", calls, "--reals", 0, settings=settings)
        if " more than with the MPI alone (" in " ".join(ran.err.split()):
            break
    page = ran.err[ran.err.index("palmette: 3 ranks") :].splitlines()
    assert page[1] == "  topology: none (levels from the MPI); --topology FILE"
    head = next(at for at, line in enumerate(page) if line.startswith("  collective "))
    sentence = " ".join(" ".join(page[2:head]).split())
    assert sentence.startswith("served collectives took "), page
    assert " more than with the MPI alone (" in sentence
    assert "pairs of calls compared" in sentence
    assert max(map(len, page)) <= 80


def test_sizes_and_roots_that_never_come_back_are_compared_by_their_class(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table}
    options = ("--reals", 0, "--vary", 20, "--count", 1000)
    ran = run_until_decided(mpi, ["bcast", "allgather"], *options, settings=settings)
    assert ran.report is not None
    for function in ("bcast", "allgather"):
        row = rows_of(ran)[function]
        assert row["max_bytes"] == 4096
        assert row["plans"] == {"open": 0, "faster": 0, "same": 0, "slower": 1}, ran.report
        assert ran.fallbacks()[function] & {LOST, UNDECIDED}


def test_calls_whose_lengths_are_their_own_are_compared(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table}
    ran = run_until_decided(mpi, ["allgatherv", "alltoallv"], "--reals", 0, settings=settings)
    assert rows_of(ran)["allgatherv"]["max_bytes"] == 2048
    assert rows_of(ran)["alltoallv"]["max_bytes"] == -1
    for function in ("allgatherv", "alltoallv"):
        assert rows_of(ran)[function]["plans"]["slower"] == 1, ran.report


SUMS = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")


def test_sums_of_real_numbers_take_turns_and_are_given_up_where_they_lose(mpi: Mpi, table: str) -> None:
    alone = [function for function in SUMS if function != "allreduce"]  # which adds up integers, too
    ran = run_until_decided(mpi, alone, settings={**SLOW, "PALMETTE_TABLE": table})
    assert ran.report is not None
    for function in alone:
        row = rows_of(ran)[function]
        assert row["max_bytes"] == 64
        assert row["plans"] == {"open": 0, "faster": 0, "same": 0, "slower": 1}, function
        assert ran.fallbacks()[function] & {LOST, UNDECIDED}


def test_sums_that_must_be_reproducible_are_never_compared(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table, "PALMETTE_REPRODUCIBLE": "1"}
    ran = mpi.run(3, "comparison", "--calls", 45, "--same-bits", 1, settings=settings)
    ran.assert_right()
    assert ran.report is not None
    assert not any(row["function"] in SUMS and row["max_bytes"] == 64 for row in ran.report["compared"])


def test_the_next_communicator_of_the_same_ranks_knows_what_has_lost(mpi: Mpi, table: str) -> None:
    settings = {**SLOW, "PALMETTE_TABLE": table, "PALMETTE_VERBOSE": "1"}
    for calls in CALLS:
        ran = mpi.run(3, "comparison", "--calls", calls, "--reals", 0, "--duplicates", 3, settings=settings)
        ran.assert_right()
        lost = [line for line in ran.err.splitlines() if "palmette: allgather of" in line and ": ring took" in line]
        if lost:
            break
    assert len(lost) == 1, ran.err


def test_comparing_can_be_switched_off(mpi: Mpi, table: str) -> None:
    ran = mpi.run(3, "comparison", "--calls", 200, settings={**SLOW, "PALMETTE_TABLE": table, "PALMETTE_COMPARE": "0"})
    ran.assert_right()
    assert rows_of(ran) == {}
    assert ran.fallbacks() == {}


def test_forced_algorithms_are_not_compared(mpi: Mpi) -> None:
    settings = {**SLOW, "PALMETTE_FORCE": "bcast=chain:segment=16"}
    ran = mpi.run(2, "comparison", "--calls", 200, "--reals", 0, settings=settings)
    ran.assert_right()
    assert "bcast" not in rows_of(ran)


def test_a_share_that_is_none_is_told_and_the_usual_one_taken(mpi: Mpi, table: str) -> None:
    settings = {"PALMETTE_TABLE": table, "PALMETTE_COMPARE": "lots"}
    ran = mpi.run(2, "comparison", "--calls", 10, settings=settings)
    ran.assert_right()
    assert "PALMETTE_COMPARE='lots': expected 0 or a percentage" in ran.err
