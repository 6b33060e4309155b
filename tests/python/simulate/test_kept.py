"""Simulations that are kept, pages of a comparison, and what is left behind; most of it without SimGrid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.results import Limit
from palmette_lab.simulate import cluster, job, kept, parameters, run, simgrid
from palmette_lab.simulate.compare import Cell, ComparisonResult, Failure
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.results_page import results_page
from palmette_lab.simulate.table import table_lines

Call = Callable[..., Any]
VALUES = parameters.read()


def asked(**changed: Any) -> kept.SimulationKey:
    """Something to simulate."""
    values: dict[str, Any] = {
        "simgrid": "3.32",
        "platform": "<platform/>",
        "hosts": "h0\nh1\n",
        "settings": ["--cfg=a:1"],
        "arguments": ["--sizes", "8"],
        "program": "",
        "topology": "",
        "environment": {},
    }
    return kept.SimulationKey(**(values | changed))


def test_what_was_simulated_is_found_again_and_nothing_else_is(tmp_path: Path) -> None:
    store = kept.SimulationCache(tmp_path / "kept")
    ended = simgrid.SimulationResult("out", "err", "")
    store.keep(asked(), ended, {"calls": []}, 10)
    assert kept.SimulationCache(tmp_path / "kept").find(asked(), 99) == (ended, {"calls": []})
    for name, value in (
        ("simgrid", "4.1"),
        ("platform", "<other/>"),
        ("hosts", "h1\nh0\n"),
        ("settings", ["--cfg=a:2"]),
        ("arguments", ["--sizes", "9"]),
        ("program", "digest"),
        ("topology", "{}"),
        ("environment", {"PALMETTE_FORCE": "gather=linear"}),
    ):
        assert store.find(asked(**{name: value}), 10) is None, name


def test_another_program_of_the_rivals_or_another_start_is_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, palmette = asked(), asked(program="digest")
    keys = [(rival.key, palmette.key)]
    for part in ("ALONE", "START"):
        built = tmp_path / part
        built.write_bytes(b"built anew")
        monkeypatch.setattr(simgrid, part, built)
        keys.append((rival.key, palmette.key))
    # Each of the two is in a rival's key; palmette has a program of its own, whose digest stands in what is asked.
    assert len({key for key, _ in keys}) == 3
    assert keys[0][1] == keys[1][1] != keys[2][1]
    copy = tmp_path / "copy"
    copy.write_bytes(b"built anew")
    monkeypatch.setattr(simgrid, "START", copy)
    assert (rival.key, palmette.key) == keys[2], "what is in it counts, not where it is or when it was built"


def test_one_that_ran_out_of_time_is_simulated_again_with_more(tmp_path: Path) -> None:
    store = kept.SimulationCache(tmp_path)
    store.keep(asked(), simgrid.SimulationResult("", "", "over its 10 s of CPU"), None, 10)
    assert store.find(asked(), 10) is not None
    assert store.find(asked(), 20) is None


def test_a_file_that_was_cut_short_is_simulated_again(tmp_path: Path) -> None:
    store = kept.SimulationCache(tmp_path)
    store.keep(asked(), simgrid.SimulationResult("out", "", ""), None, 10)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    assert store.find(asked(), 10) is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SimulateError, match="choose another folder"):
        kept.SimulationCache(tmp_path / "file" / "kept")


def test_the_results_page_marks_what_misses() -> None:
    cells = [
        Cell("gather", 64, "block", 1e-6, "linear", {"mpich": 2e-6, "ompi": 4e-6}, Limit(1e-7, "a link")),
        Cell("gather", 1024, "block", 2e-6, "linear", {"mpich": 2e-6}, Limit(1e-7, "a link"), checked=False),
        Cell("gather", 4096, "block", 3e-6, "linear", {"mpich": 2e-6}, Limit(2e-6, "a link")),
    ]
    compared = ComparisonResult(cells, [Failure("gather", "block", "impi", "deadlock")])
    page = results_page("Bed", "All.", "palmette-lab simulate", "3.32", compared)
    assert "| 64 B | 1 us / 0.50 mpich / 10.00x | linear |" in page
    assert "| 1K | *~2 us / 1.00 mpich / 20.00x* | linear |" in page
    assert "| 4K | **3 us / 1.50 mpich / 1.50x** | linear |" in page
    assert "| gather | 0.91 (1) | 0.91 (1) |" in page
    assert "Of 3 cells 2 are not slower" in page
    assert "- impi, gather, block: deadlock" in page


def test_cells_without_a_rival_are_counted_by_themselves() -> None:
    cells = [
        Cell("gather", 64, "block", 1e-6, "linear", {"mpich": 2e-6}, Limit(1e-7, "a link")),
        Cell("gather", 1024, "block", 1e-6, "linear", {}, Limit(1e-6, "a link")),
        Cell("gather", 4096, "block", 3e-6, "linear", {}, Limit(1e-6, "a link")),
    ]
    page = results_page(
        "Bed", "All.", "palmette-lab simulate", "3.32", ComparisonResult(cells, [], notes=["something"])
    )
    assert "Of 1 cells 1 are not slower" in page
    assert "2 more have no right rival that ended in its time; 1 of them" in page
    assert "Note: something." in page


def test_a_wrong_result_counts_as_a_cell_that_misses() -> None:
    cells = [
        Cell("gather", 64, "block", 1e-6, "linear", {"mpich": 2e-6}, Limit(1e-7, "a link")),
        Cell("gather", 1024, "block", None, "linear", {"mpich": 2e-6}, Limit(1e-7, "a link")),
        Cell("gather", 4096, "block", None, "", {"mpich": 2e-6}, Limit(1e-7, "a link"), ended=False),
    ]
    compared = ComparisonResult(cells, [Failure("gather", "block", "palmette", "over its 9 s of CPU, from 4K on")])
    page = results_page("Bed", "All.", "palmette-lab simulate", "3.32", compared)
    assert "Of 3 cells 1 are not slower" in page
    assert "5 %, and 1 are at least" in page
    assert "| 1K | **wrong** | linear |" in page
    assert "| 4K | **no time** |  |" in page, "it took too long: nobody knows whether it is right"
    shown = table_lines(compared)
    assert "WRONG" in shown[3]
    assert "NO TIME" in shown[4]


def test_a_kept_simulation_is_not_run_again(smpirun: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seats = job.make_job(cluster.prepared(cluster.from_spec("2node@1GB/s:2core"), VALUES), "block", None)
    store = kept.SimulationCache(tmp_path)
    first = run.simulate(smpirun, seats, VALUES, run.PALMETTE, "gather", (64,), store=store)
    monkeypatch.setattr(simgrid, "start", None)  # would fail if it were called
    assert run.simulate(smpirun, seats, VALUES, run.PALMETTE, "gather", (64,), store=store) == first


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_interrupted_leaves_no_process_and_no_file_behind(
    how: signal.Signals, smpirun: str, tmp_path: Path
) -> None:
    words = ["simulate", "--machine", "4leaf@3GB/s:8node@1.5GB/s:16core", "--collectives", "alltoall", "--sizes", "4K"]
    # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
    program = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from palmette_lab.cli.main import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not running(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert running(tmp_path)
        process.send_signal(how)
        process.communicate(timeout=60)
    assert process.returncode != 0
    deadline = time.monotonic() + 20
    while running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not running(tmp_path)
    assert list(tmp_path.iterdir()) == []


def running(folder: Path) -> list[str]:
    """Processes that work in the folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and str((process / "cwd").readlink()).startswith(str(folder)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
