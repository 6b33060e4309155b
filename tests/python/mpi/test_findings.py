"""What a traced job waits for: planted troubles are found, and named in a report."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from palmette.record.findings import Findings, findings_of
from palmette.record.reading import Job, RecordError, read_job

from .conftest import Mpi

pytestmark = pytest.mark.mpi

TROUBLES = {
    "late-rank": ("MPI_Barrier", "rank 1 comes last"),
    "late-sender": ("MPI_Recv", "rank 1 sends late"),
    "late-receiver": ("MPI_Ssend", "rank 1 begins to receive late"),
    "late-root": ("MPI_Bcast", "the root, rank 1, comes late"),
    "early-root": ("MPI_Reduce", "rank 1 comes last"),
    "nonblocking": ("MPI_Waitall", "rank 1 lets others wait"),
}
"""Where others wait for rank 1 of four, and what is said of it."""


def traced(mpi: Mpi, trouble: str) -> Job:
    folder = mpi.directory / trouble
    # Twice the delays: they cost more than what a busy machine delays.
    ran = mpi.run(4, "planted", trouble, mpi.directory / "there", 2, settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    return read_job(folder)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_late_rank_is_named(mpi: Mpi, trouble: str) -> None:
    # On a busy machine calls that wait for a processor may cost more.
    found = next(one for one in findings_of(traced(mpi, trouble)).found if one.kind != "long_call")
    function, sentence = TROUBLES[trouble]
    assert (found.kind, found.function, found.ranks) == ("late_rank", function, (1,))
    assert "planted" in found.place.function
    assert sentence in found.sentence
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


def test_of_a_profile_it_is_said_that_it_has_no_waits(mpi_called: Callable[[str], Mpi]) -> None:
    mpi = mpi_called("mpich")
    folder = mpi.directory / "profile"
    ran = mpi.run(4, "planted", "late-rank", mpi.directory / "there", settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    with pytest.raises(RecordError, match="a profile has no single calls"):
        findings_of(read_job(folder))


def test_where_nothing_waits_that_is_said(mpi_called: Callable[[str], Mpi]) -> None:
    findings: Findings = findings_of(traced(mpi_called("mpich"), "balanced"))
    assert [one for one in findings.found if one.kind != "long_call"] == []
