"""`palmette calibrate` on this machine; mistakes are told in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.discover.run import discover
from palmette.mpi import install as mpi_install
from palmette.topology.file import load

Palmette = Callable[..., Any]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def an_mpi() -> mpi_install.Installation:
    found = mpi_install.find_all()
    if not found:
        pytest.skip("no MPI is installed")
    return found[0]


def one_line(result: Any, message: str) -> None:
    last = result.err.splitlines()[-1]
    assert result.status == 2
    assert last.startswith("palmette-lab calibrate: ")
    assert message in last
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say where to run: the line that starts your jobs"),
        (("-n", "2", "--lab", "2node"), "name different places"),
        (("-n", "2", "mpiexec", "-n", "2"), "--local and -- mpiexec -n 2 name different places"),
        (("-n", "2", "--", "mpiexec", "-n", "2"), "name different places"),
        (("--ppn", "2", "--", "mpiexec", "-n", "2"), "both say where to run"),
        (("mpiexec", "--", "mpiexec", "-n", "2"), "mpiexec: what stands before -- has no meaning"),
        (("--lab", "nobody"), "the lab 'nobody' is not up"),
        (("-n", "2", "--abi", "mpich"), "--abi belongs to a launcher line"),
        (("--target", "0", "-n", "2"), "expected a percentage"),
        (("--budget", "soon", "-n", "2"), "'soon' is not a duration"),
        (("--topology", "none.json", "-n", "2"), "none.json: no such file"),
        (("nompiexec", "-n", "2"), "nompiexec: no such program; give the line that starts your jobs"),
        (("ls", "-n", "2"), "ls: no launcher that palmette knows"),
        (("-n", "2", "-o", "no/such/folder.json"), "can't write no/such/folder.json; choose another file"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(palmette_lab: Palmette, arguments: tuple[str, ...], message: str) -> None:
    one_line(palmette_lab("calibrate", *arguments), message)


def test_a_launcher_line_with_a_program_or_without_a_topology_is_refused(palmette_lab: Palmette) -> None:
    mpiexec = str(an_mpi().mpiexec)
    discover([("synthetic", "2node:2core")]).save("t.json")
    one_line(
        palmette_lab("calibrate", "--topology", "t.json", mpiexec, "-n", "2", "ls"),
        "names the program ls; leave it out",
    )
    one_line(palmette_lab("calibrate", mpiexec, "-n", "2"), "no topology of these hosts; name it with --topology")


def test_an_existing_topology_is_not_overwritten_by_another_machine(palmette_lab: Palmette) -> None:
    an_mpi()
    Path("topology.json").write_text("mine")
    one_line(palmette_lab("calibrate", "-n", "2"), "topology.json is there already; calibrate it with --topology")
    assert Path("topology.json").read_text() == "mine"


@pytest.mark.mpi
def test_a_job_of_one_rank_and_hosts_that_the_topology_lacks_are_told(palmette_lab: Palmette) -> None:
    an_mpi()
    one_line(palmette_lab("calibrate", "-n", "1"), "a job of 1 rank has no peer to send to")
    discover([("synthetic", "2node:2core")]).save("t.json")
    one_line(palmette_lab("calibrate", "--topology", "t.json", "-n", "2"), "of rank 0 is not in t.json")
    assert load("t.json").machine.calibration is None


@pytest.mark.mpi
@pytest.mark.slow
def test_local_ranks_are_calibrated_with_the_inside_of_this_machine(palmette_lab: Palmette) -> None:
    an_mpi()
    result = palmette_lab("calibrate", "-n", "2", "--budget", "1s")
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80
    assert "node: the job is in one group of it" in result.out
    machine = load("topology.json").machine
    # Two ranks of one host: on cores of their own, or in the same one where there is no other.
    latencies = [level.latency_s for level in machine.levels if level.source == "calibrated"]
    latencies += [machine.same_host.latency_s] if machine.same_host else []
    assert len(latencies) == 1
    assert (latencies[0] or 0) > 0
    assert machine.memory is not None and (machine.memory.copy_bytes_per_s or 0) > 0


@pytest.mark.mpi
@pytest.mark.slow
def test_a_launcher_line_of_the_users_own_calibrates_and_prints_json(palmette_lab: Palmette) -> None:
    mpi = an_mpi()
    discover([("hwloc", None)]).save("t.json")
    options = ["--allow-run-as-root", "--oversubscribe"] if mpi.name == "openmpi" else []
    result = palmette_lab(
        "calibrate", "--topology", "t.json", "--json", "--budget", "1s", str(mpi.mpiexec), *options, "-n", "2"
    )
    assert result.status == 0, result.err
    document = json.loads(result.out)
    assert document["output"] == "t.json"
    assert document["calibration"]["ranks"] == 2
    assert load("t.json").machine.calibration is not None


@pytest.mark.mpi
@pytest.mark.slow
def test_an_interrupted_calibration_leaves_the_old_file_and_no_process(tmp_path: Path) -> None:
    an_mpi()
    discover([("hwloc", None)]).save("t.json")
    before = Path("t.json").read_bytes()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = subprocess.Popen(
            [sys.executable, "-m", "palmette.cli.main", "calibrate", "--topology", "t.json", "-n", "2"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        assert process.stderr is not None
        while "within" not in (line := process.stderr.readline()):  # the plan: it measures from here on
            assert line, "it ended before it measured"
        time.sleep(0.5)
        process.send_signal(number)
        process.wait(timeout=30)
        process.stderr.close()
        assert process.returncode == (-9 if number == signal.SIGKILL else 130)
        assert Path("t.json").read_bytes() == before
        assert [path.name for path in tmp_path.glob(".t.json*")] == []
        deadline = time.monotonic() + 20
        while running := ranks_of(tmp_path):
            assert time.monotonic() < deadline, f"processes {running} are left"
            time.sleep(0.2)


def ranks_of(tmp_path: Path) -> list[int]:
    """Processes of calibrate that were started by this test: their environment tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"TMPDIR={tmp_path}".encode() in (entry / "environ").read_bytes()
            if is_ours and b"/bin/calibrate." in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
