"""`palmette bench --memory` on the test driver: what happens, not how fast."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.measure.errors import BenchError
from palmette.measure.places import program
from palmette.mpi import install as mpi_install

from .fake import FAKES, environment

pytestmark = pytest.mark.mpi

ONCE = ("-n", "2", "--seconds", "0", "--min-iterations", "2", "--max-iterations", "3")


@pytest.fixture(params=["mpich", "openmpi"])
def bench(
    request: pytest.FixtureRequest, palmette: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Return a function that measures with an MPI on the test driver."""
    try:
        mpi_install.find(request.param)
        program({"mpich": "mpich", "openmpi": "ompi"}[request.param])
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    if not (FAKES / "libcuda.so.1").is_file():
        pytest.skip("the test driver isn't built")

    def call(*words: str, driver: bool = True) -> Any:
        env = environment(os.environ, lazy=True) if driver else {}
        for name in ("LD_LIBRARY_PATH", "PALMETTE_FAKE_CUDA"):
            if name in env:
                monkeypatch.setenv(name, env[name])
        return palmette("bench", *words, *ONCE, "--mpi", request.param, "--store", str(tmp_path / "runs.sqlite"))

    return call


def test_device_memory_is_measured_against_the_programs_own_copies(bench: Callable[..., Any]) -> None:
    ran = bench("allreduce,bcast,gatherv,alltoall,iallgather", "--sizes", "64,64K", "--memory", "cuda", "--json")
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)
    assert found["settings"]["memory"] == "cuda"
    assert found["settings"]["copies"] == found["settings"]["mpis"]
    assert len(found["cells"]) == 10
    assert {cell["memory"] for cell in found["cells"]} == {"cuda"}
    assert not any(cell["wrong"] for cell in found["cells"])
    assert all(job["error"] is None for job in found["jobs"])


def test_managed_memory_is_read_by_the_mpi_itself(bench: Callable[..., Any], tmp_path: Path) -> None:
    ran = bench("allreduce", "--sizes", "64", "--memory", "managed")
    assert ran.status == 0, ran.err
    assert "buffers in memory of the kind: managed" in ran.out
    assert "own copies" not in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines() if str(tmp_path) not in line)


def test_without_a_driver_there_is_one_line(bench: Callable[..., Any]) -> None:
    ran = bench("allreduce", "--sizes", "64", "--memory", "cuda", driver=False)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert "libcuda.so.1 can't be loaded" in ran.err
