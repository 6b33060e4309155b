"""`palmette runs --jobs`: what the lines that jobs leave say together."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.runs.joblog import jobs_of
from palmette.runs.schema import ArchiveError


def line(**changed: Any) -> str:
    job = {
        "palmette": "0.1.0", "time": "2026-11-29T04:29:42Z", "job": "1", "uid": 1000, "program": "heat", "host": "n1",
        "mpi": "mpich", "ranks": 8, "nodes": 4, "seconds": 3600.0, "calls_served": 10, "calls_left": 1,
        "served_seconds": 900.0,
    }  # fmt: skip
    return json.dumps({**job, **changed})


LOG = [
    "<14>palmette[12]: " + line(),
    line(uid=1001, compared_calls=5, saved_seconds=360.0, time="2026-11-30T00:00:00Z"),
    line(program="lmp", nodes=100, calls_served=0, served_seconds=0.0, off="palmette is switched off"),
    line(program="lmp", nodes=1, calls_served=0, served_seconds=0.0),
    "Nov 29 04:29:42 n1 kernel: nothing of ours",
    line()[:-5],
    line(seconds="long"),
]


def test_jobs_are_added_up_by_program_and_by_why_they_were_not_served() -> None:
    jobs = jobs_of(LOG, "log")
    assert (jobs.all.jobs, jobs.all.served, len(jobs.all.users), jobs.skipped) == (4, 2, 2, 3)
    assert (jobs.first, jobs.last) == ("2026-11-29T04:29:42Z", "2026-11-30T00:00:00Z")
    assert list(jobs.by_program) == ["lmp", "heat"]  # 101 node hours, 8
    heat = jobs.by_program["heat"]
    assert (heat.hours, heat.served_hours, heat.saved_hours, heat.compared) == (8.0, 2.0, 0.4, 1)
    assert {reason: one.jobs for reason, one in jobs.off.items()} == {
        "all calls were left to the MPI": 1,
        "palmette is switched off": 1,
    }
    assert jobs_of(LOG, "log", "heat").all.jobs == 2


def test_what_has_no_job_is_told() -> None:
    with pytest.raises(ArchiveError, match="log has no job of gromacs; it has heat, lmp"):
        jobs_of(LOG, "log", "gromacs")
    with pytest.raises(ArchiveError, match="log has no line of a job"):
        jobs_of(["a line"], "log")


def test_the_command_reads_a_file_a_folder_and_standard_input(
    palmette: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1-n1-1.json").write_text(LOG[0] + "\n")
    (tmp_path / "2-n1-2.json").write_text(LOG[2] + "\n")
    told = json.loads(palmette("runs", "--jobs", str(tmp_path), "--json").out)
    assert (told["jobs"], told["served"], told["saved_hours"]) == (2, 1, None)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(LOG)))
    piped = palmette("runs", "--jobs", "-").out
    assert all(len(one) <= 80 for one in piped.splitlines())
    assert "4 jobs of 2 users, 2026-11-29 to 2026-11-30: 2 served, 2 not" in piped
    assert "1 of 1 user: palmette is switched off" in piped
    missing = palmette("runs", "--jobs", str(tmp_path / "none"))
    assert missing.status == 2
    assert "No such file" in missing.err
    assert "--jobs and --gate: one at a time" in palmette("runs", "--gate", "--jobs", "-").err
