"""Collectives of a node that run on device memory itself: ranks open each other's, and what they can't open is copied.

With the test driver of test_device.py. Every case allocates its buffers anew, where those before were.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.run import prepare

from .conftest import FUNCTIONS, PRELOADS, SOAK, Mpi, forced
from .test_device import DRIVER, DeviceMpi
from .test_leftovers import named_segments

pytestmark = pytest.mark.mpi

ON_NODE = forced(**dict.fromkeys(FUNCTIONS, "shared"))
"""All collectives through the memory of the node."""
IPC = {**ON_NODE, "PALMETTE_DEVICE": "ipc"}

OPEN, CLOSE, LAUNCH = "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuLaunchKernel"


@pytest.fixture
def on_device(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> Callable[..., DeviceMpi]:
    """Return an MPI with the driver, by the name of a variant."""

    def make(variant: str, fake: str = "seed=1") -> DeviceMpi:
        mpi = mpi_called(variant)
        log = tmp_path / "driver"
        log.mkdir(exist_ok=True)
        return DeviceMpi(mpi.installation, mpi.abi, mpi.directory, mpi.counter, log, fake)

    return make


def calls(mpi: DeviceMpi, function: str) -> int:
    """Return how often palmette called a function of the driver's, in all processes."""
    return sum(
        count
        for log in mpi.logs()
        for library, count in log["calls"].get(function, {}).items()
        if "palmette" in library
    )


def run(mpi: DeviceMpi, ranks: int, *arguments: object, settings: dict[str, str] | None = None) -> None:
    """Run the argument tests on device memory; all must be right, and nothing left open."""
    ran = mpi.run(
        ranks, "random_arguments", "--driver", DRIVER, "--seed", 7, *arguments, settings=settings or IPC
    )  # fmt: skip
    ran.assert_right()
    mpi.assert_clean(ranks)
    assert calls(mpi, OPEN) >= calls(mpi, CLOSE)


@pytest.mark.parametrize("variant", ["mpich", "openmpi"])
def test_ranks_open_each_others_memory(on_device: Callable[..., DeviceMpi], variant: str) -> None:
    mpi = on_device(variant, "seed=2,lazy" if variant == "mpich" else "seed=3")
    run(mpi, 4, "--cases", 120 * SOAK)
    assert calls(mpi, OPEN) == calls(mpi, CLOSE) > 0
    assert calls(mpi, LAUNCH) > 0


@pytest.mark.parametrize("variant", ["mpich", "openmpi"])
def test_kinds_of_memory_differ_between_ranks(on_device: Callable[..., DeviceMpi], variant: str) -> None:
    mpi = on_device(variant)
    run(mpi, 4, "--memory", "any", "--cases", 120 * SOAK)
    assert calls(mpi, OPEN) == calls(mpi, CLOSE)


@pytest.mark.parametrize("fake", ["no_ipc", "no_ipc_open", "fail=cuModuleLoadData:*", "fail=cuIpcOpenMemHandle_v2:3"])
def test_what_the_driver_refuses_is_done_otherwise(on_device: Callable[..., DeviceMpi], fake: str) -> None:
    mpi = on_device("mpich", fake)
    run(mpi, 3, "--cases", 60 * SOAK)
    if fake.startswith("no_ipc"):
        assert calls(mpi, CLOSE) == 0


def test_without_it_nothing_is_opened(on_device: Callable[..., DeviceMpi]) -> None:
    for path in ("staging", "auto"):
        mpi = on_device("mpich")
        # These blocks are short.
        run(mpi, 3, "--cases", 30, settings={**ON_NODE, "PALMETTE_DEVICE": path})
        assert calls(mpi, OPEN) == 0
        for file in mpi.log.iterdir():
            file.unlink()


def test_nothing_is_left_of_a_killed_job(on_device: Callable[..., DeviceMpi]) -> None:
    """One rank is killed in the middle of it: the launcher ends the others, and no memory has a name."""
    mpi = on_device("mpich")
    before = named_segments()
    seed = str(2_000_000 + os.getpid())
    words = [*mpi.launch(4), str(mpi.program("random_arguments")), "--driver", str(DRIVER), "--seed", seed]
    words += ["--cases", "1000000"]
    environment = mpi.environment()
    prepared = prepare(words, IPC, environment, libraries=PRELOADS)
    environment.update(prepared.environment)

    def ranks() -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                named = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if seed in named and Path(named[0]).name.startswith("random_arguments"):
                found.append(int(folder.name))
        return found

    with subprocess.Popen(
        prepared.command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as job:
        try:
            deadline = time.monotonic() + 60
            while len(ranks()) < 4 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(ranks()) == 4
            time.sleep(2)
            os.kill(ranks()[1], signal.SIGKILL)
            while ranks() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not ranks(), "ranks wait for one that is gone"
            assert job.wait(30) != 0
        finally:
            for pid in ranks():
                os.kill(pid, signal.SIGKILL)
            job.kill()
    assert named_segments() <= before
