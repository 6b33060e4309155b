"""alltoallv and alltoallw with counts that repeat are chosen by size; ranks that change theirs are noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cluster, Mpi, ProgramResult

pytestmark = pytest.mark.mpi

RELAYS = ("node_aware:inside=linear", "leaders:leaders=1", "bruck")


def table(folder: Path, algorithm: str) -> dict[str, str]:
    """Return settings with a table in which the regular alltoall always takes an algorithm, and the others none."""
    path = folder / "table.json"
    rows = [{"function": "alltoall", "algorithm": algorithm, "why": "for this test"}]
    path.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    return {"PALMETTE_TABLE": str(path), "PALMETTE_COMPARE": "0"}


def served(ran: ProgramResult, function: str) -> list[dict[str, Any]]:
    """Return the report's rows of what was served of a function."""
    assert ran.report is not None, ran.text
    return [row for row in ran.report["calls"] if row["function"] == function]


def changed(ran: ProgramResult, function: str) -> int:
    """Return how many calls the MPI had to make as counts had changed."""
    assert ran.report is not None, ran.text
    rows = [row for row in ran.report["fallbacks"] if row["function"] == function]
    return sum(row["calls"] for row in rows if row["reason"].startswith("counts of an alltoallv or alltoallw"))


@pytest.mark.parametrize("algorithm", RELAYS)
@pytest.mark.parametrize("change", ["none", "one", "some", "empty"])
def test_whoever_changes_counts_gets_what_they_say(
    mpi: Mpi, cluster: Cluster, tmp_path: Path, algorithm: str, change: str
) -> None:
    settings = {**cluster.settings(7), **table(tmp_path, algorithm)}
    ran = mpi.run(7, "repeated_counts", "--change", change, settings=settings)
    ran.assert_right()
    for function in ("alltoallv", "alltoallw"):
        rows = served(ran, function)
        assert {row["algorithm"].partition(":")[0] for row in rows} == {algorithm.partition(":")[0]}, rows
        assert all("counts repeat, at most" in row["reason"] for row in rows)
        if change == "none":  # the first three calls are the MPI's
            assert sum(row["calls"] for row in rows) == 147
        assert (changed(ran, function) > 0) == (change != "none")


def test_input_in_place_survives_a_call_that_the_mpi_has_to_make(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    settings = {**cluster.settings(6), **table(tmp_path, "leaders")}
    ran = mpi.run(6, "repeated_counts", "--change", "some", "--in-place", 1, settings=settings)
    ran.assert_right()
    assert changed(ran, "alltoallv") > 0
    assert changed(ran, "alltoallw") > 0


def test_changes_while_calls_are_compared(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    settings = {**cluster.settings(5), **table(tmp_path, "bruck"), "PALMETTE_COMPARE": "50%"}
    ran = mpi.run(5, "repeated_counts", "--change", "one", "--calls", 400, "--seed", 3, settings=settings)
    ran.assert_right()
    assert changed(ran, "alltoallv") + changed(ran, "alltoallw") > 0


@pytest.mark.parametrize("change", ["none", "some"])
def test_forced_algorithms_exchange_lengths(mpi: Mpi, cluster: Cluster, change: str) -> None:
    settings = {**cluster.settings(6), "PALMETTE_FORCE": "alltoallw=leaders", "PALMETTE_COMPARE": "0"}
    ran = mpi.run(6, "repeated_counts", "--function", "w", "--change", change, "--seed", 5, settings=settings)
    ran.assert_right()
    assert sum(row["calls"] for row in served(ran, "alltoallw")) == 150


def test_long_blocks_are_chosen_as_the_regular_ones_are(mpi: Mpi, cluster: Cluster) -> None:
    settings = {**cluster.settings(5), "PALMETTE_COMPARE": "0"}
    ran = mpi.run(5, "repeated_counts", "--elements", 1000, "--calls", 30, "--change", "none", settings=settings)
    ran.assert_right()
    for function in ("alltoallv", "alltoallw"):
        assert {row["algorithm"] for row in served(ran, function)} == {"linear"}


def test_uneven_counts_stay_with_the_mpi(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    settings = {**cluster.settings(4), **table(tmp_path, "linear")}
    ran = mpi.run(4, "repeated_counts", "--change", "uneven", "--calls", 70, settings=settings)
    ran.assert_right()
    assert served(ran, "alltoallv") == served(ran, "alltoallw") == []


def test_one_node_keeps_its_own_choice(mpi: Mpi, tmp_path: Path) -> None:
    ran = mpi.run(3, "repeated_counts", "--calls", 40, settings=table(tmp_path, "linear"))
    ran.assert_right()
    assert not any("counts repeat" in row["reason"] for row in served(ran, "alltoallv"))
