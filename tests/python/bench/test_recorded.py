"""The run that the package brings, and how `palmette demo` shows it where no lab is possible."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench import recorded
from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.mpi import install as mpi_install
from palmette_lab.lab import LabError

Palmette = Callable[..., Any]


def test_the_run_of_the_package_is_one_of_a_lab_and_names_no_machine() -> None:
    run = recorded.read()
    assert run.place == "lab 3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
    assert (run.machine["name"], run.machine["commit"], run.settings["recorded"]) == ("", None, True)
    assert len(evaluate(run)) == 15
    assert not any(job.error for job in run.jobs)
    assert recorded.PATH.stat().st_size < 200_000
    text = gzip.decompress(recorded.PATH.read_bytes()).decode()
    assert not [folder for folder in ("/tmp/", "/home", "/root", "/run/", "/usr") if folder in text]


def test_a_run_is_read_as_it_was_written(made_run: Callable[..., Run], tmp_path: Path) -> None:
    run = made_run()
    recorded.write(tmp_path / "first.jsonl.gz", run)
    read = recorded.read(tmp_path / "first.jsonl.gz")
    assert [row.ratio.value for row in evaluate(read)] == pytest.approx(
        [row.ratio.value for row in evaluate(run)], rel=1e-3
    )
    recorded.write(tmp_path / "second.jsonl.gz", read)
    assert (tmp_path / "first.jsonl.gz").read_bytes() == (tmp_path / "second.jsonl.gz").read_bytes()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_demo_shows_it_as_recorded_where_no_lab_is_possible(
    palmette_lab: Palmette,
    made_run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    try:
        mpi_install.find("mpich")
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))

    def refuse() -> None:
        raise LabError("no root, and no user namespace (they are forbidden): call it with sudo")

    monkeypatch.setattr("palmette_lab.cli.demo.be_root", refuse)
    monkeypatch.setattr("palmette_lab.cli.demo.run_with_progress", lambda *_, **__: made_run())
    monkeypatch.chdir(tmp_path)
    result = palmette_lab("demo", "--mpi", "mpich", *options)
    assert result.status == 0, result.err
    said = result.err if options else result.out
    assert "no emulated cluster: no root, and no user namespace (they are forbidden): call it with sudo" in " ".join(
        said.split()
    )
    assert "Recorded, not measured here: lab 3leaf@50Mbit/s" in said
    assert "page: demo/recorded.html" in said
    assert max(map(len, said.splitlines())) <= 100
    page = Path("demo/recorded.html").read_text(encoding="utf-8")
    assert "Nothing here was measured on your machine" in page
    assert "Nothing here was measured on your machine" not in Path("demo/report.html").read_text(encoding="utf-8")
    assert "Recorded" not in palmette_lab("demo", "--local", "--mpi", "mpich").out
