"""The dialogue with a job: what it answers, and what is told when it doesn't."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from palmette.measure import session as session_module
from palmette.measure.errors import CalibrateError
from palmette.measure.session import Session, mpi_name

JOB = (
    '{"event":"job","format":"calibrate","version":1,"ranks":2,"mpi":"MPICH Version:      5.0.2",'
    '"processors":["a","b"],"hosts":["a","b"],"sockets":[0,-1]}'
)
HEAD = f"import sys, time\nprint('a warning of the MPI')\nprint('''{JOB}''', flush=True)\n"


def job(tmp_path: Path, body: str, head: str = HEAD) -> Session:
    program = tmp_path / "job.py"
    program.write_text(head + body)
    return Session([sys.executable, str(program)])


def test_a_line_asks_and_a_line_answers(tmp_path: Path) -> None:
    answer = '{"event":"answer","what":"pingpong","figures":[[1e-6,2e-6],[3e-6,4e-6]]}'
    body = (
        "for line in sys.stdin:\n  print(line, file=sys.stderr)\n  print('noise')\n"
        f"  print('''{answer}''', flush=True)\n"
    )
    with job(tmp_path, body) as session:
        assert (session.job.mpi, session.job.ranks, session.job.hosts) == ("MPICH 5.0.2", 2, ["a", "b"])
        assert session.ask("pingpong", (1, 2), [(0, 1), (2, 3)]) == [[1e-6, 2e-6], [3e-6, 4e-6]]
        with pytest.raises(CalibrateError, match="that isn't one"):
            session.ask("pingpong", (1, 2), [(0, 1)])


def test_a_job_that_ends_early_is_told_with_what_it_said(tmp_path: Path) -> None:
    body = "print('calibrate: rank 1: no memory', file=sys.stderr)\nsys.exit(3)\n"
    with pytest.raises(
        CalibrateError, match=r"ended with status 3 before its start was answered: calibrate: rank 1: no mem"
    ):
        job(tmp_path, body, "import sys\n").__enter__()
    with pytest.raises(CalibrateError, match="status 3 before 'pingpong 1 2 0:1'"), job(tmp_path, body) as session:
        session.ask("pingpong", (1, 2), [(0, 1)])


def test_a_launcher_that_refuses_root_is_told_with_what_to_do(tmp_path: Path) -> None:
    page = "-----\\nmpiexec has detected an attempt to run as root.\\n\\nRunning as root is bad.\\n-----"
    body = f"print('{page}', file=sys.stderr)\nsys.exit(1)\n"
    with pytest.raises(CalibrateError, match="answered: it refuses to run as root; give it --allow-run-as-root"):
        job(tmp_path, body, "import sys\n").__enter__()


def test_a_job_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ANSWER_TIMEOUT_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(CalibrateError, match="no answer to 'pingpong"), job(tmp_path, "time.sleep(60)\n") as session:
        session.ask("pingpong", (1, 2), [(0, 1)], 0)
    assert time.monotonic() - begun < 20


def test_a_program_that_is_not_there_or_of_another_version_is_told(tmp_path: Path) -> None:
    with pytest.raises(CalibrateError, match="No such file"):
        Session([str(tmp_path / "none")]).__enter__()
    with pytest.raises(CalibrateError, match="another version; run `make build`"):
        job(tmp_path, "", HEAD.replace('"version":1', '"version":2')).__enter__()


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("MPICH Version:      5.0.2\nMPICH Release date: unreleased", "MPICH 5.0.2"),
        ("Open MPI v5.0.11, package: Open MPI root@x Distribution", "Open MPI 5.0.11"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS", "Intel MPI 2021.18"),
        ("CRAY MPICH version 8.1", "CRAY MPICH version 8.1"),
        ("", "unknown"),
    ],
)
def test_an_mpi_is_called_by_name_and_version(version: str, name: str) -> None:
    assert mpi_name(version) == name
