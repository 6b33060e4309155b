"""Compositions whose levels ask for NCCL: it carries their messages, and where it can't, the MPI does, on all ranks.

All of it runs on the fakes of tests/fakes.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpi.conftest import ROOT, Mpi, ProgramResult

from . import fake

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py isn't installed"),
]

PROGRAM = Path(__file__).with_name("programs") / "composed_nccl.py"
MPIS = ["mpich", "openmpi"]
LEVELS = "hierarchy=2:2 method=ring@nccl,direct stripes=2"


def run(
    mpi: Mpi,
    ranks: int,
    *arguments: object,
    nccl: dict[str, object] | None = None,
    path: str = "auto",
    settings: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    devices: int = 4,
    status: int = 0,
) -> ProgramResult:
    """Run the program on the fakes, and check what they saw of palmette at its end."""
    log = mpi.directory / f"log-{mpi.counter[0]}"
    base = fake.environment({}, log=log, nccl=nccl, devices=devices, seed=ranks, lazy=True)
    palmette = {"PALMETTE_DEVICE": path, "PALMETTE_FAKE_NCCL_TIMEOUT": "1", **(settings or {})}
    palmette |= {name: value for name, value in base.items() if name.startswith("PALMETTE_")}
    words = [
        fake.search_path(mpi.environment()),
        f"PYTHONPATH={ROOT / 'python'}",
        f"DEVICES={devices}",
        *(f"{name}={value}" for name, value in (environment or {}).items()),
    ]
    ran = mpi.run(
        ranks, Path("/usr/bin/env"), *words, sys.executable, PROGRAM, *arguments, settings=palmette, timeout_s=60
    )
    assert (ran.status == 0) == (status == 0), ran.text
    if status == 0:
        assert ran.out.count("right") == 1, ran.text
    for saw in fake.logs(log):
        assert saw.live("libpalmette") == [], ran.text
        assert saw.contexts("libpalmette") == [], ran.text
        assert saw.late_errors == [], ran.text
    seen = [json.loads(file.read_text(encoding="utf-8")) for file in log.glob("*.nccl.json")]
    assert all(process["communicators"] == 0 for process in seen), "one is left at the end"
    ran.__dict__["nccl"] = seen
    return ran


def calls(ran: ProgramResult, function: str) -> list[int]:
    """Return how often each rank called a function of NCCL's, as far as it called any."""
    return [process["calls"].get(function, 0) for process in ran.__dict__["nccl"]]


def notes(ran: ProgramResult) -> str:
    assert ran.report is not None
    return "\n".join(note["text"] if isinstance(note, dict) else str(note) for note in ran.report["notes"])


@pytest.mark.parametrize("name", MPIS)
def test_results_are_right_with_nccl_on_some_levels_or_all(name: str, mpi_called: Callable[[str], Mpi]) -> None:
    factorings = (
        "method=direct@nccl",
        "hierarchy=2:2 method=ring@nccl,tree.2 stripes=2 pipeline=3 landings=2",
        "hierarchy=2:2 method=direct/1,ring@nccl",
        "hierarchy=2:2 method=tree.2@nccl,direct@ipc pipeline=2",
    )
    ran = run(mpi_called(name), 4, "results", "dhx", *factorings)
    messages = int(ran.out.split(" by nccl")[0].split()[-1])
    assert messages > 300, ran.text
    assert len(calls(ran, "ncclSend")) == 4
    # Three runs of each plan; those of @ipc are counted with them.
    assert 0.6 * 3 * messages < sum(calls(ran, "ncclSend")) + sum(calls(ran, "ncclRecv")) <= 3 * messages
    assert "NCCL" not in notes(ran), ran.report


def test_results_are_right_in_managed_and_pooled_memory(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 4, "results", "mldh", LEVELS)
    assert min(calls(ran, "ncclSend")) > 0, ran.text
    assert "NCCL" not in notes(ran), ran.report


@pytest.mark.parametrize("name", MPIS)
def test_any_number_of_runs_may_be_outstanding(name: str, mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called(name), 4, "outstanding", "dhx", LEVELS)
    assert min(calls(ran, "ncclSend")) > 0
    # Plans of one communicator share one of NCCL's.
    assert calls(ran, "ncclCommInitRankConfig") == [2] * 4
    assert "NCCL" not in notes(ran), ran.report


def test_a_rank_may_come_later_than_the_time_limit(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 3, "late", "d", "method=ring@nccl", environment={"LATE_S": "5.5"})
    assert "NCCL" not in notes(ran), ran.report


@pytest.mark.parametrize(
    ("name", "ranks", "call", "factoring"),
    [
        ("mpich", 3, "ncclSend:9", "method=ring@nccl"),
        ("openmpi", 3, "ncclGroupEnd:4", "method=ring@nccl"),
        ("mpich", 4, "ncclSend:7", LEVELS),
    ],
)
def test_one_ranks_failure_is_an_error_of_that_run_on_all_ranks(
    name: str, ranks: int, call: str, factoring: str, mpi_called: Callable[[str], Mpi]
) -> None:
    # The others would wait for it for 150 s.
    settings, environment = {"PALMETTE_FAKE_NCCL_TIMEOUT": "30"}, {"FAULT": f"fail={call}"}
    ran = run(mpi_called(name), ranks, "failing", "dhd", factoring, settings=settings, environment=environment)
    function = call.split(":")[0]
    expected = f"NCCL isn't used any more by the plans of a communicator of {ranks} ranks: {function}: "
    assert expected in notes(ran), ran.report


def test_runs_started_in_different_orders_are_errors_on_all_ranks(mpi_called: Callable[[str], Mpi]) -> None:
    mpi = mpi_called("mpich")
    ran = run(mpi, 3, "swapped", "d", "method=ring@nccl", settings={"PALMETTE_FAKE_NCCL_TIMEOUT": "30"})
    assert "in different orders" in notes(ran), ran.report
    ran = run(mpi, 2, "crossed", "d", "method=ring@nccl")
    assert "an operation isn't complete after the time limit" in notes(ran), ran.report


@pytest.mark.parametrize(
    ("why", "options"),
    [
        ("no libnccl.so.2 is found", {"settings": {"PALMETTE_NCCL": "/nowhere/libnccl.so.2"}}),
        ("ncclCommInitRankConfig: unhandled system error", {"nccl": {"fail": "ncclCommInitRankConfig:*"}}),
        ("two ranks use one GPU", {"devices": 1}),
        ("the settings exclude it", {"path": "staging"}),
        ("no device's context is current", {"environment": {"NO_CONTEXT": "1"}}),
    ],
)
def test_without_nccl_messages_are_the_mpis(
    why: str, options: dict[str, object], mpi_called: Callable[[str], Mpi]
) -> None:
    ran = run(mpi_called("mpich"), 2, "one", "d", "method=ring@nccl", **options)  # type: ignore[arg-type]
    assert "0 by nccl" in ran.out, ran.text
    assert f"NCCL isn't used by a plan of 2 ranks that asks for it: {why}" in notes(ran), ran.report
    assert sum(calls(ran, "ncclSend")) == 0


def test_a_buffer_on_another_device_is_refused_in_one_line(mpi_called: Callable[[str], Mpi]) -> None:
    run(mpi_called("mpich"), 2, "elsewhere", "d")


def shared() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


@pytest.mark.parametrize("name", MPIS)
def test_a_killed_rank_leaves_nothing_behind(name: str, mpi_called: Callable[[str], Mpi]) -> None:
    before = shared()
    begin = time.monotonic()
    run(mpi_called(name), 3, "kill", "d", "method=direct@nccl", status=1)
    assert time.monotonic() - begin < 50
    assert not {name for name in shared() - before if "palmette" in name}
    running = subprocess.run(["pgrep", "-f", f"{PROGRAM} kill"], capture_output=True, text=True, check=False)
    assert running.stdout == ""


def test_a_rank_that_dies_while_nccls_communicator_is_made_ends_the_job(mpi_called: Callable[[str], Mpi]) -> None:
    before = shared()
    environment = {"FAULT": "die=ncclCommInitRankConfig:1"}
    run(mpi_called("mpich"), 3, "late", "d", "method=ring@nccl", environment=environment, status=1)
    assert not {name for name in shared() - before if "palmette" in name}
    running = subprocess.run(["pgrep", "-f", f"{PROGRAM} late"], capture_output=True, text=True, check=False)
    assert running.stdout == ""
