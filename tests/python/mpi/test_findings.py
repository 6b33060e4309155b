"""What a traced job waits for: planted troubles are found, and waits are those that the records show."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from palmette import _core
from palmette.record.findings import Findings, findings_of
from palmette.record.reading import Job, RecordError, read_job

from .conftest import Mpi

pytestmark = pytest.mark.mpi

TROUBLES = {
    "late-rank": "MPI_Barrier",
    "late-sender": "MPI_Recv",
    "late-root": "MPI_Bcast",
    "early-root": "MPI_Reduce",
    "nonblocking": "MPI_Waitall",
}
"""Where others wait for rank 1 of four."""


def traced(mpi: Mpi, trouble: str) -> Job:
    folder = mpi.directory / trouble
    ran = mpi.run(4, "planted", trouble, mpi.directory / f"{trouble}.there", settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    return read_job(folder)


def waits_of(job: Job) -> dict[tuple[int, str], float]:
    """Compute (rank, function) -> seconds waited for others, from the calls themselves."""
    calls = {process.recorded.rank: process.calls() for process in job.processes}
    begins: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    sends: dict[int, list[int]] = defaultdict(list)
    for rank, all_calls in calls.items():
        for call in all_calls:
            nonblocking = call.function.startswith("MPI_I")
            if call.instance and call.is_request == nonblocking:
                begins[call.function, call.instance][rank] = call.begin_real_ns
            if (call.function == "MPI_Send" and not call.is_request) or (
                call.function == "MPI_Isend" and call.is_request
            ):
                sends[rank].append(call.begin_real_ns)
    found: dict[tuple[int, str], float] = defaultdict(float)
    for rank, all_calls in calls.items():
        received = 0
        requests = [call for call in all_calls if call.is_request]
        for call in all_calls:
            end = call.begin_real_ns + call.seconds * 1e9
            until = 0
            if call.is_request:
                continue
            there = begins.get((call.function, call.instance), {})
            if call.function in ("MPI_Barrier", "MPI_Allreduce"):
                until = max(there.values())
            elif call.function == "MPI_Bcast" and rank != call.peer:
                until = there[call.peer]
            elif call.function == "MPI_Reduce" and rank == call.peer:
                until = max(there.values())
            elif call.function == "MPI_Recv":
                until = sends[call.peer][received]
                received += 1
            elif call.function == "MPI_Waitall":
                for request in requests:
                    if abs(request.begin_real_ns + request.seconds * 1e9 - end) > 2000:
                        continue
                    if request.instance:
                        until = max(until, *begins[request.function, request.instance].values())
                    elif request.function == "MPI_Irecv":
                        mine = [one.begin_real_ns for one in requests if one.function == "MPI_Irecv"]
                        until = max(until, sends[request.peer][mine.index(request.begin_real_ns)])
            found[rank, call.function] += max(0.0, min(until, end) - call.begin_real_ns) * 1e-9
    return found


def own_waits(job: Job) -> dict[tuple[int, str], float]:
    """Return the same from the analysis."""
    waits = _core.find_waits([_core.TraceFile(str(path)) for path in {process.file for process in job.processes}])
    found: dict[tuple[int, str], float] = defaultdict(float)
    for row in waits.rows:
        split = row.split
        parts = split.waiting_s + split.bound_s + split.excess_s + split.completion_s
        assert parts == pytest.approx(split.seconds, abs=1e-9)
        found[waits.ranks[row.process], waits.functions[row.function]] += split.waiting_s
    assert sum(cause.waiting_s for cause in waits.causes) == pytest.approx(sum(found.values()), rel=1e-6)
    return found


@pytest.mark.parametrize("trouble", [*TROUBLES, "turns", "balanced"])
def test_waits_are_those_that_the_records_show(mpi: Mpi, trouble: str) -> None:
    job = traced(mpi, trouble)
    expected, found = waits_of(job), own_waits(job)
    for key in expected.keys() | found.keys():
        if key[1] not in ("MPI_Init", "MPI_Finalize"):
            assert found[key] == pytest.approx(expected[key], rel=1e-6, abs=1e-5), key


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_late_rank_is_named(mpi: Mpi, trouble: str) -> None:
    # On a busy machine calls that wait for a processor may cost more.
    found = next(one for one in findings_of(traced(mpi, trouble)).found if one.kind != "long_call")
    assert (found.kind, found.function, found.ranks) == ("late_rank", TROUBLES[trouble], (1,))
    assert found.place.file.endswith("planted.cpp") or found.place.function
    assert "rank 1 comes last" in found.sentence
    assert found.seconds > 0


def test_ranks_that_are_late_by_turns_are_no_single_rank(mpi: Mpi) -> None:
    found = next(one for one in findings_of(traced(mpi, "turns")).found if one.kind != "long_call")
    assert (found.kind, found.function) == ("taking_turns", "MPI_Allreduce")
    assert set(found.ranks) == {0, 1, 2, 3}


def test_a_report_fits_the_terminal_and_its_json_says_the_same(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any]
) -> None:
    job = traced(mpi_called("mpich"), "late-rank")
    shown = palmette("report", job.folder)
    assert shown.status == 0, shown.err
    assert all(len(line) <= 80 for line in shown.out.splitlines() if "next: " not in line), shown.out
    assert "MPI_Barrier at " in shown.out and "rank 1 comes last" in shown.out
    assert "parallel efficiency" in shown.out
    document = json.loads(palmette("report", job.folder, "--json").out)
    assert [1] in [one["ranks"] for one in document["findings"]]
    assert 0 < document["efficiencies"]["parallel"] < 1
    assert document["efficiencies"]["parallel"] == pytest.approx(
        document["efficiencies"]["load_balance"] * document["efficiencies"]["communication"]
    )


def test_a_profile_says_what_a_report_needs(mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any]) -> None:
    mpi = mpi_called("mpich")
    folder = mpi.directory / "profile"
    assert (
        mpi.run(2, "planted", "late-rank", mpi.directory / "there", settings={"PALMETTE_PROFILE": str(folder)}).status
        == 0
    )
    with pytest.raises(RecordError, match="a profile has no single calls"):
        findings_of(read_job(folder))
    assert palmette("report", folder).status == 2


def test_where_nothing_waits_that_is_said(mpi_called: Callable[[str], Mpi]) -> None:
    findings: Findings = findings_of(traced(mpi_called("mpich"), "balanced"))
    assert [one for one in findings.found if one.kind == "late_rank" and one.function != "MPI_Barrier"] == []
