"""Recordings of more communicators and kinds of calls than they have room for: figures stay right, or it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.record.findings import findings_of
from palmette.record.reading import Job, read_job

from .conftest import Mpi

pytestmark = pytest.mark.mpi

PLACES = 40
"""Places that the program calls from."""


def recorded(mpi: Mpi, mode: str, what: str, number: int, **settings: str) -> tuple[Path, dict[str, tuple[int, int]]]:
    """Run the program; return the recording, and function -> calls and bytes of both ranks."""
    folder = mpi.directory / f"{what}-{mode}"
    ran = mpi.run(2, "many_communicators", what, number, settings={f"PALMETTE_{mode}": str(folder), **settings})
    assert ran.status == 0, ran.text
    expected: dict[str, tuple[int, int]] = {}
    for line in ran.out.splitlines():
        match line.split():
            case ["expected", _, function, calls, size]:
                before = expected.get(function, (0, 0))
                expected[function] = before[0] + int(calls), before[1] + int(size)
    return folder, expected


def sums_of(job: Job) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for process in job.processes:
        for row in process.recorded.aggregates:
            if not row.is_request:
                before = found.get(row.function, (0, 0))
                found[row.function] = before[0] + row.calls, before[1] + row.bytes
    return found


def top(palmette: Callable[..., Any], folder: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for row in json.loads(palmette("top", folder, "--calls", "--json").out)["rows"]:
        before = found.get(row["function"], (0, 0))
        found[row["function"]] = before[0] + row["calls"], before[1] + row["bytes"]
    return found


def check_the_late_rank(palmette: Callable[..., Any], folder: Path) -> dict[str, Any]:
    waits = findings_of(read_job(folder)).view.waits
    assert waits.unmatched_messages == 0
    late = {waits.ranks[cause.process] for cause in waits.causes if waits.functions[cause.function] == "MPI_Allreduce"}
    # On a busy machine another one is late, too, now and then.
    assert 1 in late
    told: dict[str, Any] = json.loads(palmette("report", folder, "--json").out)
    assert any(row["function"] == "MPI_Allreduce" and row["waiting_s"] > 0 for row in told["paths"])
    return told


def test_a_thousand_communicators_are_told_apart(mpi: Mpi, palmette: Callable[..., Any]) -> None:
    folder, expected = recorded(mpi, "TRACE", "made", 1100)
    job = read_job(folder)
    assert {name: sums_of(job)[name] for name in expected} == expected
    assert {name: top(palmette, folder)[name] for name in expected} == expected
    for process in job.processes:
        assert process.recorded.merged >= process.recorded.unaggregated == process.recorded.unnumbered == 0
        calls = [call for call in process.calls() if call.function == "MPI_Alltoall"]
        assert len({call.communicator for call in calls} - {0}) == 1100
        assert {call.instance for call in calls} == {1}
    told = check_the_late_rank(palmette, folder)
    assert not [note for note in told["notes"] if "communicators" in note]


def test_places_of_freed_communicators_are_taken_again(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any]
) -> None:
    mpi = mpi_called("mpich")
    folder, expected = recorded(mpi, "TRACE", "made", 300, PALMETTE_FAKE_COMMUNICATORS="40")
    job = read_job(folder)
    assert {name: sums_of(job)[name] for name in expected} == expected
    ids: dict[int, set[int]] = {}
    for process in job.processes:
        own = process.recorded
        assert own.unnumbered == 0 and own.reused > 30
        calls = [call for call in process.calls() if call.function == "MPI_Alltoall"]
        # The last ones are known; of older ones nobody knows any more on which communicator they were.
        assert all(call.communicator == 0 for call in calls[:250])
        assert all(call.communicator > 2 for call in calls[-30:])
        ids[own.rank] = {own.communicators[call.communicator].id for call in calls[-30:]}
        assert len(ids[own.rank]) == 30
    assert ids[0] == ids[1]
    told = check_the_late_rank(palmette, folder)
    assert any("in the places of freed ones" in note for note in told["notes"])


@pytest.mark.parametrize("mode", ["TRACE", "PROFILE"])
def test_communicators_without_a_place_are_told_wherever_they_matter(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any], tmp_path: Path, mode: str
) -> None:
    mpi = mpi_called("mpich")
    folder, expected = recorded(mpi, mode, "live", 60, PALMETTE_FAKE_COMMUNICATORS="40")
    job = read_job(folder)
    assert {name: sums_of(job)[name] for name in expected} == expected
    # Entry 0 is none; the world and each rank's own have two.
    assert {process.recorded.unnumbered for process in job.processes} == {60 - 37}
    told = "46 communicators more than a recording can tell apart"
    assert told in " ".join(palmette("top", folder).out.split())
    converted = palmette("convert", folder, "--to", "csv", "-o", tmp_path / "calls.csv")
    assert told in " ".join((converted.out + converted.err).split())
    if mode == "TRACE":
        assert any(told in note for note in json.loads(palmette("report", folder, "--json").out)["notes"])


def test_of_too_many_kinds_the_functions_are_told(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any], tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    # Kinds: some 480 for each communicator, of which 3,072 are told apart; then 512 for all together.
    folder, expected = recorded(mpi, "PROFILE", "kinds", 20)
    job = read_job(folder)
    assert {name: sums_of(job)[name] for name in expected} == expected
    assert {name: top(palmette, folder)[name] for name in expected} == expected
    for process in job.processes:
        assert process.recorded.merged + process.recorded.unaggregated > 20 * PLACES * 12 - 3072
        assert "others" not in {row.function for row in process.recorded.aggregates}
    converted = palmette("convert", folder, "--to", "csv", "-o", tmp_path / "sums.csv")
    assert "sums don't tell their communicators" in " ".join((converted.out + converted.err).split())
