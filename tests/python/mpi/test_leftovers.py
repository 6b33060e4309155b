"""What a job leaves behind when all its ranks are killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.run import prepare

from .conftest import PRELOADS, Mpi

pytestmark = pytest.mark.mpi

SEED = str(1_000_000 + os.getpid())
"""Among the arguments of our ranks alone."""


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def ranks() -> list[int]:
    """Return the processes of the test program, not those of its launcher."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if SEED in words and Path(words[0]).name.startswith("random_arguments"):
            found.append(int(folder.name))
    return found


def shares(pid: int) -> bool:
    try:
        return "palmette" in "".join(
            line
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
            if "memfd:" in line or "/dev/shm" in line
        )
    except OSError:
        return False


def kill(pid: int) -> None:
    # A launcher ends the other ranks itself as soon as it sees that one is gone.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def named_segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("palmette-*")}


def test_shared_memory_is_gone_after_kill_9_of_all_ranks(mpi: Mpi) -> None:
    before = named_segments()
    words = [*mpi.launch(4), str(mpi.program("random_arguments")), "--seed", SEED, "--cases", "1000000"]
    environment = mpi.environment()
    prepared = prepare(words, {}, environment, libraries=PRELOADS)
    environment.update(prepared.environment)
    with subprocess.Popen(
        prepared.command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as job:
        try:
            until(lambda: sum(map(shares, ranks())) == 4, "the ranks share no memory")
            for pid in ranks():
                kill(pid)
            until(lambda: not ranks(), "ranks survive")
        finally:
            for pid in [*ranks(), job.pid]:
                kill(pid)
    assert named_segments() <= before
