"""Snapshots of sums: how they grew over time, and between what the program calls phases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.analysis import Trace
from palmette.record.reading import read_job

from .conftest import Mpi
from .test_regions import built, numbers

pytestmark = pytest.mark.mpi


def test_a_profile_shows_change_over_time_and_phases(mpi: Mpi, tmp_path: Path, palmette: Callable[..., Any]) -> None:
    folder = tmp_path / "recording"
    ran = mpi.run(2, built(mpi, "regions.c", tmp_path), "phases", 1600, settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    sums, barriers = numbers(r"sums (\d+) barriers (\d+)", ran.out)
    job = read_job(folder)
    for process in job.processes:
        moments = process.recorded.snapshots
        assert len(moments) >= 4, "each second of 3.2, at the border, and at the end"
        assert [one.real_ns for one in moments] == sorted(one.real_ns for one in moments)
        assert sum(one.is_border for one in moments) == 1
        # Nothing is lost between two of them.
        for whole in process.recorded.aggregates:
            if whole.is_request or whole.function == "MPI_Finalize":
                continue
            parts = [part for one in moments for part in one.parts if part.function == whole.function]
            same = [one for one in process.recorded.aggregates if one.function == whole.function and not one.is_request]
            assert sum(part.calls for part in parts) == sum(one.calls for one in same), whole.function
            assert sum(part.bytes for part in parts) == sum(one.bytes for one in same), whole.function
    found = Trace(folder).document["snapshots"]
    first, second = found["phases"]
    assert second["calls"] == pytest.approx(2 * 2 * barriers, abs=8), "with what is before and behind the loops"
    assert first["regions"] == {"sum": 2 * sums}
    assert second["regions"] == {}
    half = len(found["rows"]) // 2
    assert found["rows"][0]["functions"][0]["function"] == "MPI_Allreduce"
    assert found["rows"][-1]["functions"][0]["function"] in ("MPI_Barrier", "MPI_Bcast")
    assert sum(row["calls"] for row in found["rows"][:half]) > sums
    told = palmette("report", folder, "--all")
    assert "over time, from" in told.out
    assert "phase 2" in told.out
    assert all(len(line) <= 80 for line in told.out.splitlines())
    page = tmp_path / "page.html"
    assert palmette("report", folder, "-o", page).status == 0
    assert "Over time" in page.read_text(encoding="utf-8")
