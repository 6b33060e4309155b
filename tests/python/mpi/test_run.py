"""`palmette run` with the launchers themselves: one preload in all ranks, and nothing else changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette import _core

from .conftest import FIRST_PRELOAD, Cluster, Mpi

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(bool(FIRST_PRELOAD), reason="`palmette run` takes the libraries that are installed"),
]

PALMETTE = [sys.executable, "-m", "palmette.cli.main", "run"]


def run(mpi: Mpi, *words: object, settings: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**mpi.environment(), **(settings or {})}
    return subprocess.run(
        [*PALMETTE, *map(str, words)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_report_says_what_was_served(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    done = run(
        mpi, "--report", report, "--force", "gather=by_topology:node=linear,leaf=k_nomial.3,top=linear",
        *mpi.launch(6), mpi.program("communicators"), "--cycles", 3, "--alive", 1,
        settings=cluster.settings(6),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["format"] == "palmette-report"
    assert {row["algorithm"] for row in found["calls"] if row["function"] == "gather"} == {
        "by_topology:node=linear,leaf=k_nomial.3,top=linear"
    }


def test_the_report_holds_mean_times_against_the_physical_bound(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    settings = cluster.settings(6)
    done = run(
        mpi, "--report", report, "--force", "bcast=linear", "--force", "alltoallv=pairwise",
        *mpi.launch(6), mpi.program("comparison"), "--calls", 5, "--reals", 0, settings=settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["function"]: row for row in json.loads(report.read_text(encoding="utf-8"))["calls"]}
    job = _core.Job(_core.Machine.from_file(cluster.path), "hosts=" + settings["PALMETTE_FAKE_HOSTS"])
    bound_s = _core.bound(job, "bcast", 4000, 1).seconds
    assert bound_s > 0
    assert rows["bcast"]["bounds"] == pytest.approx(rows["bcast"]["mean_seconds"] / bound_s)
    assert rows["alltoallv"]["bounds"] > 0


@pytest.mark.parametrize("order", ["block", "scattered"])
def test_the_report_bounds_calls_whose_blocks_differ(mpi: Mpi, cluster: Cluster, tmp_path: Path, order: str) -> None:
    ranks, report, settings = 6, tmp_path / "run.json", cluster.settings(6, order)
    functions = ("gatherv", "scatterv", "allgatherv", "reduce_scatter", "alltoallv", "alltoallw")
    algorithms = ("linear", "linear", "ring", "pairwise", "pairwise", "pairwise")
    forced = [word for pair in zip(functions, algorithms, strict=True) for word in ("--force", "=".join(pair))]
    done = run(mpi, "--report", report, *forced, *mpi.launch(ranks), mpi.program("differing_blocks"), settings=settings)
    assert done.returncode == 0, done.stderr
    rows = {row["function"]: row for row in json.loads(report.read_text(encoding="utf-8"))["calls"]}
    machine, hosts = _core.Machine.from_file(cluster.path), settings["PALMETTE_FAKE_HOSTS"].split(",")
    job = _core.Job(machine, "hosts=" + ",".join(hosts))
    blocks = [4000 * (1 + rank % 3) for rank in range(ranks)]

    def pairs(members: range) -> list[tuple[int, int, int]]:
        """Return who sends how much to whom, by rank in the world."""
        return [(a, b, 8000 * ((3 * i + j) % 4)) for i, a in enumerate(members) for j, b in enumerate(members)]

    def seconds(messages: list[tuple[int, int, int]]) -> float:
        """Return what the slowest link needs; 50 Mbit/s leave a leaf, 100 Mbit/s a host."""
        leaf = {host: machine.hosts.index(host) // 3 for host in hosts}
        edges: dict[tuple[str, object], float] = {}
        for a, b, sent in messages:
            for level, rate, ends in (
                ("leaf", 6.25e6, (leaf[hosts[a]], leaf[hosts[b]])), ("node", 12.5e6, (hosts[a], hosts[b])),
            ):  # fmt: skip
                if ends[0] != ends[1]:
                    for way, end in zip(("out", "in"), ends, strict=True):
                        edges[level + way, end] = edges.get((level + way, end), 0) + sent / rate
        return max(edges.values())

    everybody = pairs(range(ranks))
    limits = {
        "gatherv": _core.bound(job, "gather", blocks, 1).seconds,
        "scatterv": _core.bound(job, "scatter", blocks, 2).seconds,
        "allgatherv": _core.bound(job, "allgather", blocks).seconds,
        "reduce_scatter": _core.bound(job, "reduce_scatter", blocks).seconds,
        "alltoallw": seconds(everybody),
        # Two of all, one of each half: four calls.
        "alltoallv": seconds([*everybody, *everybody, *pairs(range(0, ranks, 2)), *pairs(range(1, ranks, 2))]) / 4,
    }
    assert {f: rows[f]["mean_seconds"] / rows[f]["bounds"] for f in functions} == pytest.approx(limits)


def test_the_page_comes_once_and_fits_80_columns(mpi: Mpi) -> None:
    done = run(mpi, "--report", *mpi.launch(3), mpi.program("errors"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("palmette: 3 ranks") == 1
    page = done.stderr[done.stderr.index("palmette: 3 ranks") :]
    assert all(len(line) <= 80 for line in page.splitlines())


def test_off_serves_nothing(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    done = run(
        mpi, "--off", "--report", report, "--force", "gather=linear", *mpi.launch(4), mpi.program("errors"),
        settings=cluster.settings(4),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if report.exists():
        assert json.loads(report.read_text(encoding="utf-8"))["calls"] == []


def test_programs_side_by_side_are_one_job(mpi: Mpi, cluster: Cluster, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    program = mpi.program("errors")
    done = run(
        mpi, "--report", report, "--force", "gather=linear", *mpi.launch(2), program, ":", "-n", 3, program,
        settings=cluster.settings(5),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["ranks"] == 5
    assert any(row["function"] == "gather" for row in found["calls"])


def test_a_program_alone_needs_no_launcher(mpi: Mpi) -> None:
    done = run(mpi, "--report", mpi.program("errors"))
    assert done.returncode == 0, done.stderr
    assert "0 wrong" in done.stdout
    assert "palmette: 1 rank" in done.stderr


@pytest.mark.parametrize("variant", ["mpich", "openmpi", "impi"])
def test_a_script_gets_the_preload_of_the_launchers_mpi(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    mpi = mpi_called(variant)
    done = run(mpi, *mpi.launch(2), "sh", "-c", "echo preload=$LD_PRELOAD; exit 0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"libpalmette_{mpi.abi}.so") == 2


def test_the_launcher_itself_is_not_preloaded(mpi_called: Callable[[str], Mpi]) -> None:
    mpi = mpi_called("mpich")
    done = run(mpi, "--print", *mpi.launch(2), mpi.program("errors"))
    assert not done.stdout.startswith("env ")


def test_the_exit_status_is_the_launchers(mpi: Mpi) -> None:
    words = [*mpi.launch(2), "sh", "-c", "exit 7"]
    alone = subprocess.run(words, env=mpi.environment(), capture_output=True, timeout=60, check=False).returncode
    assert alone == 7
    assert run(mpi, *words).returncode == alone


def test_a_signal_reaches_the_launcher_and_the_ranks_end(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> None:
    mpi = mpi_called("mpich")
    started = tmp_path / "started"
    process = subprocess.Popen(
        [*PALMETTE, *mpi.launch(2), "sh", "-c", f"echo $$ >> {started}; exec sleep 60"], env=mpi.environment()
    )
    try:
        deadline = time.monotonic() + 20
        while not started.exists() or len(started.read_text(encoding="utf-8").split()) < 2:
            assert time.monotonic() < deadline, "the ranks didn't start"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) != 0
    finally:
        process.kill()
    ranks = [int(pid) for pid in started.read_text(encoding="utf-8").split()]
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in ranks):
        assert time.monotonic() < deadline, f"ranks go on: {ranks}"
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that nobody waited for yet has ended, too.
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[-1].split()[0] != "Z"
