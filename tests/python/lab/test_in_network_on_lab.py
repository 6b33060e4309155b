"""Allreduces through a lab's aggregation daemon: what they send, and what becomes of them when it is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from palmette.aggregator.status import read as status_of
from palmette.mpi.abi import LIBRARIES
from palmette.mpi.install import MpiNotFoundError, find
from palmette_lab.lab import Lab, LabError, aggregators

pytestmark = [pytest.mark.mpi, pytest.mark.root]

PROGRAM = Path(__file__).resolve().parents[3] / "build" / "release" / "tests" / "mpi" / "aggregated.mpich"
COUNT, CALLS = 1 << 15, 9
A_GENERATION = COUNT * (8 * 6 + 4 * 3)
"""Bytes of the vectors of one generation: each third call is of integers of 4 bytes, the others of doubles."""
PAYLOAD = 1448 / 1514
"""Payload of full frames, as a share; the acknowledgements of what is received come on top, 2 % of it."""


@pytest.fixture(autouse=True)
def _built(lab_state: Path) -> None:
    try:
        aggregators.daemon_program()
        find("mpich")
    except (LabError, MpiNotFoundError) as error:
        pytest.skip(str(error))
    if not PROGRAM.is_file():
        pytest.fail(f"{PROGRAM} isn't built: run `make build`")


def words(generations: int, calls: int = CALLS) -> list[str]:
    """A program whose first generation compares with the MPI's own results, and the others with the first."""
    return [str(PROGRAM), "--generations", str(generations), "--calls", str(calls), "--count", str(COUNT)]


def settings(lab: Lab, **more: str) -> dict[str, str]:
    """The environment of the ranks."""
    return {
        "LD_PRELOAD": str(LIBRARIES / "libpalmette_mpich.so"),
        "PALMETTE_TOPOLOGY": str(lab.topology_path),
        "PALMETTE_SERVE_AFTER": "0",
        **more,
    }


def sent(lab: Lab, generations: int, algorithm: str) -> dict[str, int]:
    """Bytes on the wire out of each host, in a job."""
    before = lab.link_bytes()
    done = lab.run(words(generations), mpi="mpich", placement="random:1", capture=True, timeout_s=90,
                   env=settings(lab, PALMETTE_FORCE=f"allreduce={algorithm}"))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    after = lab.link_bytes()
    return {name: after[name][0] - before[name][0] for name in lab.hosts}


@pytest.mark.parametrize(("nodes", "by_hosts"), [(4, 1.5), pytest.param(8, 1.75, marks=pytest.mark.long)])
def test_an_adapter_sends_the_vector_once(nodes: int, by_hosts: float) -> None:
    with Lab.up(f"aggregator:{nodes}node@100Mbit/s:2core") as lab:
        for algorithm, times in (("in_network", 1.0), ("ring", by_hosts)):
            one, three = sent(lab, 1, algorithm), sent(lab, 3, algorithm)
            for host in lab.hosts:
                assert (three[host] - one[host]) / 2 * PAYLOAD / A_GENERATION == pytest.approx(times, rel=0.06)


def until_it_combines(lab: Lab) -> None:
    """Wait until the daemon is in the middle of the job."""
    path = str(lab.token_path.parent / "aggregator0.sock") if lab.token_path else ""
    for _ in range(600):
        if int(status_of(path)["counters"]["chunks"]) > 100:
            return
        time.sleep(0.05)
    pytest.fail("the daemon combines nothing")


def lose(fault: str, lab: Lab) -> None:
    """Kill or stop the daemon, or pull its cable."""
    pid = lab.daemon_pid("aggregator0")
    assert pid is not None
    if fault == "cable":
        pull = ["ip", "link", "set", lab.ports["aggregator0"], "down"]
        subprocess.run(lab.exec_command("login", pull), check=True)
    else:
        os.kill(pid, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[fault])


@pytest.mark.parametrize(
    ("fault", "reasons"),
    [
        ("kill", ("closed",)),
        pytest.param("stop", ("silent",), marks=pytest.mark.long),
        pytest.param("cable", ("silent", "closed"), marks=pytest.mark.long),
    ],
)
def test_a_lost_daemon_costs_neither_the_job_nor_a_bit(fault: str, reasons: tuple[str, ...], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with Lab.up("aggregator:4node@100Mbit/s:2core") as lab:
        environment = settings(lab, PALMETTE_FORCE="allreduce=in_network", PALMETTE_REPORT=str(report))
        command = lab.command("mpich", lab.place("random:1"), words(2, calls=40), environment)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
            until_it_combines(lab)
            lose(fault, lab)
            out, _ = job.communicate(timeout=90)
    assert job.returncode == 0, out
    assert ", 0 wrong" in out, out
    rows: list[dict[str, Any]] = json.loads(report.read_text())["instead_of_aggregators"]
    assert any(row["why"].startswith(reasons) for row in rows), rows
    assert sum(row["calls"] for row in rows) > 10
