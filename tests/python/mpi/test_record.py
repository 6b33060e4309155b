"""What is recorded of a job: every call, its bytes, who waits for whom, whatever becomes of the processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from palmette.record.reading import Job, RecordError, read_job
from palmette.record.waiting import State, state_of
from palmette.run.prepared import prepare

from .conftest import FUNCTIONS, LEVEL_BY_LEVEL, PRELOADS, ROOT, Cluster, Mpi, forced

pytestmark = pytest.mark.mpi
MODES = ("PALMETTE_PROFILE", "PALMETTE_TRACE")


def folder_of(mpi: Mpi) -> Path:
    folder = mpi.directory / "recording"
    folder.mkdir()
    return folder


def sums(job: Job) -> dict[tuple[int, str], tuple[int, int]]:
    """Return (rank, function) -> (calls, bytes)."""
    found: dict[tuple[int, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for process in job.processes:
        for row in process.recorded.aggregates:
            key = process.recorded.rank, row.function + ("/request" if row.is_request else "")
            found[key] = found[key][0] + row.calls, found[key][1] + row.bytes
    return found


@pytest.mark.parametrize("mode", MODES)
def test_calls_and_bytes_are_those_that_the_program_counts(mpi: Mpi, mode: str) -> None:
    folder = folder_of(mpi)
    ran = mpi.run(4, "calls", settings={mode: str(folder)})
    assert ran.status == 0, ran.text
    expected = {}
    for line in ran.out.splitlines():
        words = line.split()
        if words[:1] == ["expected"]:
            expected[int(words[1]), words[2]] = int(words[3]), int(words[4])
    assert len(expected) > 60, ran.text
    job = read_job(folder)
    found = sums(job)
    found = {key: value for key, value in found.items() if key in expected or key[1] != "MPI_Init"}
    assert found | {key: (1, 0) for key in expected if key[1] == "MPI_Finalize"} == expected
    for process in job.processes:
        assert str(process.recorded.state).endswith("finalized")
        assert process.recorded.unaggregated == process.recorded.unpathed == 0
        assert not process.recorded.open
        assert not process.recorded.outstanding
        assert process.recorded.unfollowed == 0
        # Calls from one place in a loop have one path, however often they come.
        assert process.recorded.unwound < 200
        paths = {row.path for row in process.recorded.aggregates}
        assert 0 not in paths
        program = mpi.program("calls")
        assert any(frame.module == str(program) for path in paths for frame in process.recorded.paths[path])
    words = {"PALMETTE_TRACE": "report", "PALMETTE_PROFILE": "top --calls"}[mode]
    assert ran.err.count(f"  next: palmette {words} {folder}\n") == 1, "rank 0 tells it, once"


def test_a_trace_holds_calls_and_requests_one_by_one(mpi: Mpi) -> None:
    folder = folder_of(mpi)
    ran = mpi.run(4, "calls", "--rounds", 2, settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    job = read_job(folder)
    for process in job.processes:
        rank = process.recorded.rank
        calls = process.calls()
        assert process.recorded.dropped == 0
        assert len(calls) == process.recorded.calls + process.recorded.requests
        found: dict[tuple[str, bool], int] = defaultdict(int)
        for call in calls:
            found[call.function, call.is_request] += 1
        wanted: dict[tuple[str, bool], int] = defaultdict(int)
        for row in process.recorded.aggregates:
            wanted[row.function, row.is_request] += row.calls
        assert found == wanted
        # Receives from any source say whom the message was from, whether the program looked at its status or not.
        received = [call for call in calls if call.function in ("MPI_Irecv", "MPI_Recv_init") and call.is_request]
        assert {call.peer for call in received} == {(rank + 3) % 4}
        received = [call for call in calls if call.function == "MPI_Recv"]
        assert {(call.peer, call.tag) for call in received} == ({(rank - 1, 6)} if rank % 2 else set())
        both = {(call.is_request, call.peer, call.tag) for call in calls if call.function == "MPI_Sendrecv"}
        assert both == {(False, (rank + 1) % 4, 5), (True, (rank + 3) % 4, 5)}
        sent = [call for call in calls if call.function in ("MPI_Isend", "MPI_Send_init") and call.is_request]
        assert {call.peer for call in sent} == {(rank + 1) % 4}
        assert sorted({call.tag for call in sent}) == [4, 20, 21, 22, 23, 30]
        # A request ends with the call that completes it, and lasts longer than the one that made it.
        waits = [
            call.begin_real_ns + call.seconds * 1e9 for call in calls
            if call.function.startswith(("MPI_Wait", "MPI_Test")) and not call.is_request
        ]  # fmt: skip
        for call in calls:
            if call.is_request and call.function != "MPI_Sendrecv":  # that is its receive
                assert min(abs(call.begin_real_ns + call.seconds * 1e9 - wait) for wait in waits) < 1000
        world = [call for call in calls if call.communicator == 1 and call.instance]
        assert [call.instance for call in world if not call.is_request] == list(range(1, 1 + 2 * 8))
        assert {call.peer for call in world if call.function == "MPI_Bcast"} == {0}


def start(mpi: Mpi, ranks: int, program: Path, *arguments: object, folder: Path) -> subprocess.Popen[str]:
    """Start a program that records, and don't wait for it."""
    environment = mpi.environment()
    words = [*mpi.launch(ranks), str(program), *map(str, arguments)]
    prepared = prepare(words, {"PALMETTE_TRACE": str(folder)}, environment, libraries=PRELOADS)
    environment.update(prepared.environment)
    return subprocess.Popen(
        list(prepared.command), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip


def end(running: subprocess.Popen[str], folder: Path) -> None:
    """Kill a job: its launcher, and all processes that know its folder."""
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) != os.getpid() and str(folder).encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def wait_until_hung(folder: Path, calls: int) -> State:
    """Return a job's state once so many calls are open and stay so."""
    deadline = time.monotonic() + 60
    before: list[tuple[str, str]] = []
    while time.monotonic() < deadline:
        with suppress(RecordError):  # none has begun
            state = state_of(read_job(folder, with_tables=False))
            now = [(one.process.name, one.call.function) for one in state.open if one.since_s > 0.3]
            if len(now) == calls and now == before:
                return state
            before = now
        time.sleep(0.1)
    pytest.fail(f"the job doesn't hang where it should: {before}")


def test_a_hung_collective_names_the_rank_that_has_not_come(mpi: Mpi) -> None:
    folder = folder_of(mpi)
    running = start(mpi, 4, mpi.program("hangs"), folder=folder)
    try:
        state = wait_until_hung(folder, 3)
        (found,) = [found for found in state.collectives if found.missing]
        assert (found.function, found.communicator.size, found.instance) == ("MPI_Barrier", 3, 1)
        assert [process.name for process in found.missing] == ["rank 2"]
        assert sorted(one.process.name for one in found.inside) == ["rank 0", "rank 1"]
        (receive,) = [one for one in state.open if one.call.function == "MPI_Recv"]
        assert (receive.process.name, receive.waits_for, receive.call.tag) == ("rank 2", ["rank 3"], 5)
    finally:
        end(running, folder)
    # Nobody called MPI_Finalize; the calls that they died in are still there.
    after = state_of(read_job(folder))
    assert [process.name for found in after.collectives for process in found.missing] == ["rank 2"]


def test_what_a_wait_waits_for_is_named(mpi: Mpi) -> None:
    folder = folder_of(mpi)
    running = start(mpi, 4, mpi.program("hangs"), "--requests", folder=folder)
    try:
        state = wait_until_hung(folder, 3)
        waits = {one.process.name: (one.call.function, sorted(one.waits_for)) for one in state.open}
        assert waits == {
            "rank 0": ("MPI_Wait", ["rank 2"]),
            "rank 1": ("MPI_Waitall", ["rank 2", "rank 3"]),
            "rank 2": ("MPI_Wait", ["rank 3"]),
        }
        (found,) = [found for found in state.collectives if found.missing]
        assert (found.function, found.instance, len(found.inside)) == ("MPI_Ibarrier", 1, 2)
    finally:
        end(running, folder)


def check_killed(mpi: Mpi, folder: Path, seconds: float) -> None:
    running = start(mpi, 2, mpi.program("calls"), "--rounds", 10**6, folder=folder)
    try:
        deadline = time.monotonic() + 60
        while not any(folder.glob("*.palmette")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(seconds)
    finally:
        end(running, folder)
    try:
        job = read_job(folder)
    except RecordError as nothing:
        # Killed between making the file and beginning to write to it.
        assert "it holds no recording yet" in str(nothing)
        return
    for process in job.processes:
        counted = sum(row.calls for row in process.recorded.aggregates)
        # The call that it was about to add may be in one place and not yet in the other.
        assert abs(counted - process.recorded.calls - process.recorded.requests) <= 1
        assert abs(len(process.calls()) - min(counted, counted - process.recorded.dropped)) <= 1
        assert len(process.recorded.open) <= 1


def test_a_killed_rank_loses_no_more_than_the_call_that_it_was_in(mpi: Mpi) -> None:
    draw = random.Random(7)
    for number in range(3):
        folder = mpi.directory / f"killed-{number}"
        folder.mkdir()
        check_killed(mpi, folder, draw.random() * 0.5)


@pytest.mark.long
def test_a_thousand_kills_leave_a_thousand_recordings(mpi: Mpi) -> None:
    draw = random.Random(11)
    for number in range(250):  # on four MPIs
        folder = mpi.directory / f"killed-{number}"
        folder.mkdir()
        check_killed(mpi, folder, draw.random() * 0.3)


PROGRAMS: dict[str, tuple[int, tuple[object, ...], dict[str, str]]] = {
    "random_arguments": (4, ("--cases", 60), {}),
    "operations": (3, ("--rounds", 1), {}),
    "nonblocking": (5, ("--cases", 20, "--free-communicator", 0), {}),
    "persistent": (4, ("--rounds", 2), {}),
    "compose": (3, ("--rounds", 2), {}),
    "threads": (3, ("--threads", 4, "--rounds", 6), {}),
    "errors": (4, (), {}),
    "lifecycle": (4, (), {}),
    "sessions": (4, (), {}),
    "messages": (4, (), {}),
    "topologies": (16, ("--seeds", 1), {}),
    "datatypes": (3, (), {}),
    "nothing_to_move": (5, (), forced(**dict.fromkeys(FUNCTIONS, "shared"))),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_right_while_they_are_recorded(mpi: Mpi, program: str) -> None:
    if (mpi.name, program) == ("impi", "persistent"):
        pytest.skip("Intel MPI alone hangs in it")
    ranks, arguments, settings = PROGRAMS[program]
    folder = folder_of(mpi)
    ran = mpi.run(ranks, program, *arguments, settings={**settings, "PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    closing = ran.closing_lines()
    assert all(cases > 0 and wrong == 0 for cases, wrong in closing), ran.text
    job = read_job(folder)
    assert len(job.processes) == ranks
    for process in job.processes:
        recorded = process.recorded
        assert sum(row.calls for row in recorded.aggregates) == recorded.calls + recorded.requests
        assert recorded.calls > 0
        assert not recorded.open


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["arguments", "datatypes", "operations", "nonblocking", "large_counts", "left_to_mpi", "nothing_to_move"]
)
def test_all_tests_of_arguments_pass_while_calls_are_recorded(name: str) -> None:
    tests = Path(__file__).with_name(f"test_{name}.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "3", str(tests)],
        env={**os.environ, "PALMETTE_TEST_RECORD": "1"}, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize(("one_by_one", "at_once"), [(200, 0), (10, 40), (0, 100)])
def test_calls_of_threads_are_recorded_or_counted(mpi: Mpi, one_by_one: int, at_once: int) -> None:
    folder = folder_of(mpi)
    ran = mpi.run(
        1, "short_threads", "--one-by-one", one_by_one, "--at-once", at_once, settings={"PALMETTE_TRACE": str(folder)}
    )
    assert ran.status == 0, ran.text
    (process,) = read_job(folder).processes
    calls = sum(row.calls for row in process.recorded.aggregates if row.function == "MPI_Comm_size")
    # A recording holds 64 threads at a time, of which the main thread is one.
    assert process.recorded.threadless == max(0, at_once - 63)
    assert calls + process.recorded.threadless == one_by_one + at_once


def test_served_calls_carry_their_plan_limit_and_messages(mpi: Mpi, cluster: Cluster) -> None:
    folder = folder_of(mpi)
    settings = {**LEVEL_BY_LEVEL, **cluster.settings(4, "block"), "PALMETTE_TRACE": str(folder)}
    ran = mpi.run(4, "calls", "--rounds", 3, settings=settings)
    assert ran.status == 0, ran.text
    job = read_job(folder)
    calls: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    sent: dict[tuple[str, int], int] = defaultdict(int)
    for process in job.processes:
        recorded = process.recorded
        assert recorded.unplanned == 0
        by_plan: dict[int, int] = defaultdict(int)
        for call in process.calls():
            if call.plan:
                plan = recorded.plans[call.plan]
                name = call.function.lower().removeprefix("mpi_").removeprefix("i" if call.is_request else "")
                assert name == plan.function
                assert call.communicator == plan.communicator
                by_plan[call.plan] += 1
        for number, plan in enumerate(recorded.plans[1:], 1):
            assert by_plan[number] == plan.calls > 0
            communicator = recorded.communicators[plan.communicator]
            if communicator.rank == 0:
                calls[plan.function][plan.algorithm] += plan.calls
                assert (plan.bound_s > 0) == (plan.block_bytes >= 0)
            for send in plan.sends:
                assert 0 <= send.peer < communicator.size and send.peer != communicator.rank
                sent[plan.function, communicator.size] += send.bytes
    served = ran.served()
    # In three rounds on four ranks: down a tree of three edges, and from each directly to each other one.
    assert sent["bcast", 4] == 3 * 3 * 40
    assert sent["alltoallv", 4] == 3 * 4 * 3 * 16
    assert {function: dict(algorithms) for function, algorithms in calls.items()} == served


def counted(mpi: Mpi, ranks: int, *arguments: str) -> tuple[Job, list[dict[str, int]], str]:
    """Run `processes` and return its recording, the calls of each process by function, and what it printed."""
    folder = mpi.directory / "new" / "recording"  # which each node makes
    ran = mpi.run(ranks, "processes", *arguments, settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    job = read_job(folder)
    found = []
    for process in job.processes:
        calls: dict[str, int] = defaultdict(int)
        for row in process.recorded.aggregates:
            calls[row.function + ("/request" if row.is_request else "")] += row.calls
        found.append(dict(calls))
    return job, found, ran.out


def test_a_forked_child_records_nothing(mpi: Mpi) -> None:
    job, found, _ = counted(mpi, 2, "fork")
    assert [process.recorded.rank for process in job.processes] == [0, 1]
    assert all("MPI_Initialized" not in calls and calls["MPI_Barrier"] == 1 for calls in found), found


def test_what_a_process_becomes_leaves_its_recording_alone(mpi: Mpi) -> None:
    job, found, out = counted(mpi, 2, "exec")
    assert set(out.split()) == {"after"}, out  # MPICH may lose what one prints after MPI_Finalize
    assert [process.state for process in job.processes] == ["finalized", "finalized"]
    assert all(calls["MPI_Finalize"] == 1 for calls in found)


def test_pcontrol_switches_recording_off_and_on(mpi: Mpi) -> None:
    job, found, _ = counted(mpi, 1, "pcontrol")
    assert found[0] | {"MPI_Init": 1} == {
        "MPI_Init": 1, "MPI_Comm_rank": 1, "MPI_Comm_size": 10, "MPI_Irecv": 1, "MPI_Send": 2, "MPI_Wait": 2,
        "MPI_Finalize": 1,
    }  # fmt: skip
    # One was started unseen, of the other's completion nobody could have said when it began to be seen.
    assert job.processes[0].recorded.unfollowed == 1
    assert not job.processes[0].recorded.outstanding


SECTION = 65536
"""Where the first process's part of a recording begins (trace/format.hpp)."""


def test_damaged_recordings_are_shown_or_refused_in_one_line(
    mpi_called: Callable[[str], Mpi], palmette: Callable[..., Any]
) -> None:
    mpi = mpi_called("mpich")
    folder = folder_of(mpi)
    ran = mpi.run(
        2, "calls", "--rounds", 1, settings={"PALMETTE_TRACE": str(folder), "PALMETTE_TRACE_BYTES": "4194304"}
    )
    assert ran.status == 0, ran.text
    (file,) = folder.glob("*.palmette")
    good = file.read_bytes()
    used = [at for at, byte in enumerate(good) if byte]
    draw = random.Random(5)
    statuses: dict[int, int] = defaultdict(int)
    for number in range(60):
        with file.open("r+b") as changed:
            places = [*draw.choices(used, k=4), *(draw.randrange(SECTION, SECTION + 1100) for _ in range(4))]
            for at in places:
                changed.seek(at)
                changed.write(bytes([draw.randrange(256)]))
        words = [["--calls"], [], ["--json"], ["--calls", "--json"]][number % 4]
        result = palmette("top", folder, *words)
        statuses[result.status] += 1
        assert result.status in (0, 2), (places, result)
        assert "Traceback" not in result.out + result.err
        assert result.status == 0 or len(result.err.splitlines()) <= 2, result.err
        with file.open("r+b") as changed:
            for at in places:
                changed.seek(at)
                changed.write(good[at : at + 1])
    assert statuses[0] > 10 and statuses[2] > 2, statuses
