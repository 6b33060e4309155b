"""`palmette tune`: bad input, the plan that is told beforehand, and small real runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.mpi import install as mpi_install
from palmette.tune.store import open_tunings

Palmette = Callable[..., Any]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mpiexec() -> str:
    """A launcher of an MPI that is installed."""
    try:
        return str(mpi_install.find("mpich").mpiexec)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gether -n 2", "'gether' is no collective"),
        ("bcast,gether -n 2", "'gether' is no blocking collective"),
        ("bcast,ibcast -n 2", "'ibcast' is no blocking collective"),
        ("bcast -n 2 --sizes 12Q", "12Q"),
        ("bcast -n 2 --budget 5s", "measure nothing"),
        ("bcast -n 2 --budget soon", "soon"),
        ("bcast -n 2 --mpi lam", "lam"),
        ("bcast -n 2 --lab 2node:1core", "name different places"),
        ("bcast -n 2 --placement cyclic", "no meaning for local ranks"),
        ("bcast -n 2 --topology none.json", "--topology belongs to a launcher line"),
        ("bcast -n 2 --root 7", "root 7"),
        ("bcast -n 2 --table none.json", "none.json"),
        ("bcast -- no-such-launcher -n 2", "no-such-launcher: no such program; give the line that starts your jobs"),
        ("bcast --", "nothing follows --"),
        ("bcast --lab nobody", "the lab 'nobody' is not up"),
        ("bcast --mpi mpich -- mpiexec -n 2", "both say where to run"),
        ("bcast -n 2 --store /", "--store"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(palmette_lab: Palmette, line: str, message: str) -> None:
    result = palmette_lab("tune", *shlex.split(line))
    assert result.status == 2, result.out + result.err
    assert result.err.startswith("palmette-lab tune: ") or line.endswith("/")
    assert message in result.err


@pytest.mark.mpi
def test_the_plan_says_jobs_candidates_and_seconds_and_measures_nothing(palmette_lab: Palmette, mpiexec: str) -> None:
    result = palmette_lab("tune", "bcast,allreduce", "-n", "2", "--sizes", "1K", "--budget", "1min", "--plan")
    assert result.status == 0, result.err
    assert "60 s at most" in result.out
    assert "2 cells" in result.out
    assert "expected" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert not Path("tuning.sqlite").exists()
    planned = palmette_lab("tune", "bcast", "-n", "2", "--sizes", "1K", "--plan", "--json")
    (cell,) = json.loads(planned.out)["plan"][0]["cells"]
    assert cell["present"]
    assert cell["possible"] >= len(cell["candidates"]) > 0


@pytest.mark.mpi
def test_local_ranks_are_tuned_and_samples_are_kept(palmette_lab: Palmette, mpiexec: str) -> None:
    result = palmette_lab(
        "tune", "allreduce,barrier", "-n", "3", "--sizes", "64", "--mpi", "mpich", "--budget", "30s", "--json"
    )
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["errors"] == []
    assert {(cell["function"], cell["size_bytes"]) for cell in found["cells"]} == {("allreduce", 64), ("barrier", 0)}
    for cell in found["cells"]:
        assert cell["rounds"] >= 5
        assert (cell["outcome"] == "better") == (cell["spec"] != "table")
    with open_tunings(Path("tuning.sqlite"), create=False) as store:
        kept = store.candidates("allreduce", 64)
    assert {"table", "mpi"} <= {one.measured.spec for one in kept}
    assert not any(one.measured.wrong_ranks for one in kept)
    assert any(one.measured.served for one in kept), "algorithms were forced and served"
    if found["rows"]:
        table = _core.Table.from_file("tuning.json")
        assert table.rows[0].why.startswith("tuned ")


@pytest.mark.mpi
def test_the_ranks_of_a_launcher_line_are_tuned(palmette_lab: Palmette, mpiexec: str) -> None:
    result = palmette_lab("tune", "bcast", "--sizes", "64", "--budget", "30s", "--json", "--", mpiexec, "-n", "2")
    assert result.status == 0, result.err
    (cell,) = json.loads(result.out)["cells"]
    assert (cell["mpi"], cell["placement"], cell["function"]) == ("mpich", "as launched", "bcast")
    assert cell["rounds"] > 0
