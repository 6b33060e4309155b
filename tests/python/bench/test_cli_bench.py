"""Errors of `palmette bench`, `palmette report` and `palmette demo`: one line, status 2."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.results import Run
from palmette.bench.store import open_store

Palmette = Callable[..., Any]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gether", "-n", "2"), "collective 'gether' is unknown"),
        (("gather", "-n", "2", "--sizes", "12Q"), "12Q"),
        (("gather", "-n", "2", "--mpi", "lam"), "MPI 'lam' is unknown"),
        (("gather", "-n", "2", "--lab", "2node:1core"), "--lab and --local name different places"),
        (("gather", "-n", "2", "--placement", "cyclic"), "no meaning for local ranks"),
        (("gather", "-n", "2", "--env", "A"), "--env A: expected NAME=VALUE"),
        (("gather", "--lab", "nobody", "--mpi", "mpich"), "the lab 'nobody' is not up"),
        (("gather", "--lab", "nobody", "--spine-delay", "soon"), "'soon' is not a duration"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(palmette_lab: Palmette, arguments: tuple[str, ...], message: str) -> None:
    result = palmette_lab("bench", *arguments)
    assert result.status == 2
    assert result.err.startswith("palmette-lab bench collectives: ")
    assert result.err.count("\n") == 1
    assert message in result.err
    assert result.out == ""


def test_a_comparison_of_stored_runs_fits_80_columns(palmette_lab: Palmette, made_run: Callable[..., Run]) -> None:
    with open_store(Path("runs.sqlite"), create=True) as store:
        for factor in (0.5, 0.8):
            run = made_run(lambda *_, factor=factor: factor)
            for job in run.jobs:
                store.add(run, job)
    result = palmette_lab("bench", "report", "1", "2")
    assert result.status == 0
    assert result.out.count("slower") == 12
    assert max(map(len, result.out.splitlines())) <= 80
    assert palmette_lab("bench", "report", "1", "7").err.startswith(
        "palmette-lab bench report: runs.sqlite holds no run '7'"
    )


def test_a_report_of_no_run_says_what_to_do(palmette_lab: Palmette) -> None:
    result = palmette_lab("bench", "report")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "palmette bench" in result.err


def test_a_page_that_can_not_be_written_is_told(palmette_lab: Palmette, made_run: Callable[..., Run]) -> None:
    with open_store(Path("runs.sqlite"), create=True) as store:
        run = made_run()
        store.add(run, run.jobs[0])
    Path("file").write_text("")
    result = palmette_lab("bench", "report", "-o", "file/page.html")
    assert result.status == 2
    assert "choose another file" in result.err


def test_palmette_demo_starts_that_of_palmette_lab() -> None:
    Path("file").write_text("")
    words = [sys.executable, "-m", "palmette.cli.main", "demo", "--local", "--folder", "file/demo"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("palmette-lab demo: ")) == (2, True), done.stderr
    assert "choose another with --folder" in done.stderr


def test_a_demo_folder_that_can_not_be_made_is_told(palmette_lab: Palmette) -> None:
    Path("file").write_text("")
    result = palmette_lab("demo", "--local", "--folder", "file/demo")
    assert result.status == 2
    assert "choose another with --folder" in result.err


@pytest.mark.parametrize(
    ("options", "status"), [((), 0), (("--fail-if-slower",), 0), (("--fail-if-any-slower",), 1), (("--json",), 0)]
)
def test_a_slower_cell_fails_the_command_where_that_is_asked_for(
    palmette_lab: Palmette,
    made_run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    status: int,
) -> None:
    # Cells of 64 bytes take about 1 ms here: slower, but not trusted.
    run = made_run(lambda *_: 1.5, sizes=(64,))
    monkeypatch.setattr("palmette.cli.bench_collectives.measure", lambda *_, **__: run)
    result = palmette_lab("bench", "gather", "-n", "2", "--mpi", "mpich", *options)
    assert result.status == status, result.err
    assert ("cells are slower" in result.err) is (status == 1)


def test_trusted_cells_that_are_slower_fail_the_command(
    palmette_lab: Palmette, made_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_run(lambda *_: 1.5, sizes=(262144,))
    monkeypatch.setattr("palmette.cli.bench_collectives.measure", lambda *_, **__: run)
    assert palmette_lab("bench", "gather", "-n", "2", "--mpi", "mpich", "--fail-if-slower").status == 1
    assert palmette_lab("bench", "gather", "-n", "2", "--mpi", "mpich").status == 0


def test_the_table_fits_80_columns_and_marks_what_is_not_trusted(
    palmette_lab: Palmette, made_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_run(mpis=("mpich", "openmpi"))
    run.jobs[0].error = "it failed"
    monkeypatch.setattr("palmette.cli.bench_collectives.measure", lambda *_, **__: run)
    result = palmette_lab("bench", "gather", "-n", "2", "--mpi", "mpich")
    assert (result.status, "failed: mpich block" in result.out) == (1, True)
    assert max(map(len, result.out.splitlines())) <= 80
    small = next(line for line in result.out.splitlines() if line.startswith("gather") and " 64 B " in line)
    assert "x)" in small


@pytest.mark.parametrize(
    ("ended", "told"), [(2, "2 jobs stored; the same command with --resume"), (0, "no job had ended")]
)
def test_ctrl_c_says_how_to_go_on(
    ended: int, told: str, palmette_lab: Palmette, made_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_settings: object, _place: object, _watcher: object, keep: Callable[..., None], **_: object) -> Run:
        run = made_run()
        for _ in range(ended):
            keep(run, run.jobs[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("palmette.cli.bench_collectives.measure", interrupted)
    result = palmette_lab("bench", "gather", "-n", "2", "--mpi", "mpich")
    assert result.status == 130
    assert told in " ".join(result.err.split())
