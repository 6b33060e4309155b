"""What is recorded of a job: every call, its bytes, who waits for whom, whatever becomes of the processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from palmette.record.reading import Job, RecordError, read_job
from palmette.record.waiting import State, state_of
from palmette.run.prepared import prepare

from .conftest import PRELOADS, Mpi

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
            calls, size = found[process.recorded.rank, row.function]
            found[process.recorded.rank, row.function] = calls + row.calls, size + row.bytes
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
        # Calls from one place in a loop have one path, however often they come.
        assert process.recorded.unwound < 200
        paths = {row.path for row in process.recorded.aggregates}
        assert 0 not in paths
        program = mpi.program("calls")
        assert any(frame.module == str(program) for path in paths for frame in process.recorded.paths[path])


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
            state = state_of(read_job(folder, with_tables=False), time.time_ns())
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
    after = state_of(read_job(folder), time.time_ns())
    assert [process.name for found in after.collectives for process in found.missing] == ["rank 2"]


def check_killed(mpi: Mpi, folder: Path, seconds: float) -> None:
    running = start(mpi, 2, mpi.program("calls"), "--rounds", 10**6, folder=folder)
    try:
        deadline = time.monotonic() + 60
        while not any(folder.glob("*.palmette")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(seconds)
    finally:
        end(running, folder)
    for process in read_job(folder).processes:
        counted = sum(row.calls for row in process.recorded.aggregates)
        # The call that it was about to add may be in one place and not yet in the other.
        assert abs(counted - process.recorded.calls) <= 1
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
    "nothing_to_move": (5, (), {}),
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
        assert sum(row.calls for row in recorded.aggregates) == recorded.calls > 0
        assert not recorded.open


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
