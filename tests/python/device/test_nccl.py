"""NCCL serves whole collectives of device memory; where it can't, or fails, the usual way does, on all ranks alike.

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

from mpi.conftest import Mpi, ProgramResult

from . import fake

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py isn't installed"),
]

PROGRAM = Path(__file__).with_name("programs") / "nccl.py"
SERVED = {"allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "reduce_scatter_block"}


def run(
    mpi: Mpi,
    ranks: int,
    *arguments: object,
    nccl: dict[str, object] | None = None,
    path: str = "nccl",
    environment: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
    timeout_s: float = 100,
    **driver: object,
) -> ProgramResult:
    """Run the program on the fakes; `driver`: settings of the fake libcuda."""
    log = mpi.directory / f"log-{mpi.counter[0]}"
    log.mkdir()
    base = fake.environment({}, log=log, nccl=nccl, **{"devices": 4, **driver})
    palmette = {"PALMETTE_DEVICE": path, "PALMETTE_FAKE_NCCL_TIMEOUT": "3", "PALMETTE_COMPARE": "0", **(settings or {})}
    palmette |= {name: value for name, value in base.items() if name.startswith("PALMETTE_")}
    variables = [
        fake.search_path(mpi.environment()),
        *(f"{name}={value}" for name, value in (environment or {}).items()),
    ]
    words = [*variables, sys.executable, PROGRAM, *arguments]
    ran = mpi.run(ranks, Path("/usr/bin/env"), *words, settings=palmette, timeout_s=timeout_s)
    for saw in fake.logs(log):
        assert saw.live("libpalmette") == [], ran.text
        assert saw.contexts("libpalmette") == [], ran.text
        assert saw.late_errors == [], ran.text
    ran.__dict__["nccl"] = [json.loads(file.read_text(encoding="utf-8")) for file in log.glob("*.nccl.json")]
    return ran


def by_nccl(ran: ProgramResult) -> dict[str, int]:
    """Return function -> calls that NCCL served."""
    return {name: counts["nccl"] for name, counts in ran.served().items() if "nccl" in counts}


def notes(ran: ProgramResult) -> str:
    assert ran.report is not None
    return "\n".join(note["text"] if isinstance(note, dict) else str(note) for note in ran.report["notes"])


def calls_of_nccl(ran: ProgramResult, function: str) -> int:
    return sum(process["calls"].get(function, 0) for process in ran.__dict__["nccl"])


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_each_function_gives_what_numpy_says(name: str, ranks: int, mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called(name), ranks, 4, 12, ranks, "d", seed=ranks, lazy=True)
    ran.assert_right()
    assert by_nccl(ran).keys() == SERVED, ran.report
    for call in ("ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclSend", "ncclReduceScatter"):
        assert calls_of_nccl(ran, call) > 0
    assert all(process["communicators"] == 0 for process in ran.__dict__["nccl"]), "one is left at the end"
    assert "NCCL" not in notes(ran)


def test_old_versions_make_their_communicators_in_a_thread(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 3, 4, 4, 1, nccl={"version": 21210})
    ran.assert_right()
    assert by_nccl(ran)


@pytest.mark.parametrize("kinds", ["hd", "r", "rd", "hhd"])
def test_ranks_with_host_buffers_take_all_the_usual_way(kinds: str, mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 3, 4, 10, 5, kinds, lazy=True)
    ran.assert_right()
    if "h" in kinds:
        assert not {name for name in by_nccl(ran) if name != "reduce"}, ran.report
    else:
        assert by_nccl(ran)


def test_two_ranks_on_one_device_are_known_beforehand(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 4, 2, 6, 1, "d")
    ran.assert_right()
    assert "two ranks use one GPU" in notes(ran), ran.report
    assert calls_of_nccl(ran, "ncclGetUniqueId") > 0
    assert calls_of_nccl(ran, "ncclCommInitRankConfig") == 0
    assert not by_nccl(ran)


def test_two_ranks_share_a_device_where_nccl_lets_them(mpi_called: Callable[[str], Mpi]) -> None:
    mpi = mpi_called("mpich")
    ran = run(mpi, 3, 1, 6, 1, nccl={"multi": True}, environment={"NCCL_MULTI_RANK_GPU_ENABLE": "1"})
    ran.assert_right()
    assert by_nccl(ran).keys() == SERVED
    ran = run(mpi, 2, 1, 6, 1, nccl={"multi": True})
    ran.assert_right()
    assert not by_nccl(ran), "the program hasn't asked for it"


FAULTS: dict[str, dict[str, object]] = {
    "an id": {"fail": "ncclGetUniqueId:*"},
    "a communicator": {"fail": "ncclCommInitRankConfig:*"},
    "a communicator that never comes": {"hang": "ncclCommInitRankConfig:1"},
    "the second allreduce": {"fail": "ncclAllReduce:2"},
    "an allreduce that hangs": {"hang": "ncclAllReduce:3"},
    "a broadcast that hangs": {"hang": "ncclBroadcast:1"},
    "a send": {"fail": "ncclSend:5"},
    "a send that hangs": {"hang": "ncclRecv:4"},
    "a group": {"fail": "ncclGroupEnd:4"},
    "an asynchronous error": {"fail": "ncclCommGetAsyncError:9"},
}


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.long] * (number % 2)) for number, fault in enumerate(FAULTS)]
)
def test_after_a_failure_all_repeat_the_call_the_usual_way(fault: str, mpi_called: Callable[[str], Mpi]) -> None:
    begin = time.monotonic()
    ran = run(mpi_called("mpich"), 3, 4, 6, 3, "d", nccl=FAULTS[fault], settings={"PALMETTE_FAKE_NCCL_TIMEOUT": "1"})
    ran.assert_right()
    assert "NCCL isn't used any more by a communicator of" in notes(ran), ran.report
    assert time.monotonic() - begin < 90


def test_one_ranks_failure_is_all_ranks(mpi_called: Callable[[str], Mpi]) -> None:
    # By its own environment rank 1 alone fails; the others would wait for it for 60 s.
    mpi = mpi_called("mpich")
    script = mpi.directory / "rank.sh"
    script.write_text(
        '#!/bin/sh\n[ "${PMI_RANK}" = 1 ] && export PALMETTE_FAKE_NCCL=fail=ncclAllReduce:2\nexec "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    log = mpi.directory / "log"
    base = fake.environment({}, log=log, devices=4)
    settings = {name: value for name, value in base.items() if name.startswith("PALMETTE_")}
    settings.pop("PALMETTE_FAKE_NCCL")
    settings |= {"PALMETTE_DEVICE": "nccl", "PALMETTE_FAKE_NCCL_TIMEOUT": "600"}
    words = [fake.search_path(mpi.environment()), script, sys.executable, PROGRAM, 4, 6, 3, "d"]
    ran = mpi.run(3, Path("/usr/bin/env"), *words, settings=settings, timeout_s=100)
    ran.assert_right()
    assert "ncclAllReduce" in notes(ran), ran.report


def test_it_is_not_tried_unless_asked_for(mpi_called: Callable[[str], Mpi]) -> None:
    mpi = mpi_called("mpich")
    for path in ("auto", "staging", "ipc"):
        ran = run(mpi, 2, 4, 4, 11, "d", path=path, settings={"PALMETTE_FORCE": "allreduce=shared:single=64K"})
        ran.assert_right()
        assert not by_nccl(ran)
        assert calls_of_nccl(ran, "ncclGetUniqueId") == 0
        assert ran.report is not None
        rows = {row["function"]: row for row in ran.report["device"]["calls"]}
        # Some blocks are long enough for it to pay.
        assert (rows["allreduce"]["in_place"] > 0) == (path != "staging")


def test_without_the_library_nothing_is_tried(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 2, 4, 4, 7, "d", settings={"PALMETTE_NCCL": "/nowhere/libnccl.so.2"})
    ran.assert_right()
    assert not by_nccl(ran)


def test_reproducible_sums_are_not_left_to_nccl(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 3, 4, 8, 2, "d", settings={"PALMETTE_REPRODUCIBLE": "1"})
    ran.assert_right()
    assert by_nccl(ran)


def test_two_threads_never_have_operations_under_way_at_once(mpi_called: Callable[[str], Mpi]) -> None:
    ran = run(mpi_called("mpich"), 2, 4, 5, 2, "threads")
    ran.assert_right()


def shared() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def test_a_killed_rank_leaves_nothing_behind(mpi_called: Callable[[str], Mpi]) -> None:
    before = shared()
    mpi = mpi_called("mpich")
    begin = time.monotonic()
    ran = run(mpi, 3, "kill", 4, timeout_s=60)
    assert ran.status != 0
    assert time.monotonic() - begin < 50
    assert not {name for name in shared() - before if "palmette" in name}
    running = subprocess.run(["pgrep", "-f", f"{PROGRAM} kill"], capture_output=True, text=True, check=False)
    assert running.stdout == ""
