"""What the report says of calls on device memory, on the test driver."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import BUILD, Mpi, ProgramResult

pytestmark = pytest.mark.mpi

FAKES = BUILD / "tests" / "fakes"
BYTES = 4096
RANKS = 2


@pytest.fixture
def run(mpi_called: Callable[[str], Mpi], monkeypatch: pytest.MonkeyPatch) -> Callable[..., ProgramResult]:
    """Return a function that calls collectives on buffers in a kind of memory under MPICH."""
    mpi = mpi_called("mpich")
    program = BUILD / "bin" / f"collbench.{mpi.abi}"
    for path in (FAKES / "libcuda.so.1", program):
        if not path.is_file():
            pytest.skip(f"{path} isn't built")
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(filter(None, [str(FAKES), os.environ.get("LD_LIBRARY_PATH", "")])))

    def call(memory: str, **settings: str) -> ProgramResult:
        what = ("--cells", f"allreduce:{BYTES},bcast:{BYTES}", "--memory", memory, "--copies")
        once = ("--min-iterations", 1, "--max-iterations", 2, "--warmup", 0, "--seconds", 0)
        ran = mpi.run(RANKS, Path(program), *what, *once, settings=settings)
        assert ran.status == 0, ran.text
        return ran

    return call


def test_calls_and_bytes_are_counted_by_function_over_all_ranks(run: Callable[..., ProgramResult]) -> None:
    report = run("cuda").report
    assert report is not None
    device = report["device"]
    assert device["ranks_with_driver"] == RANKS
    assert device["detected_by_lock"] == 0
    assert device["blocks_not_pinned"] == 0
    rows = {row["function"]: row for row in device["calls"]}
    assert set(rows) == {"allreduce", "bcast"}
    calls = rows["allreduce"]["calls"]
    assert calls >= RANKS
    assert calls % RANKS == 0
    # Each rank reads and writes a block, but where the plan ran on device memory itself.
    staged = calls - rows["allreduce"]["in_place"]
    assert rows["allreduce"]["bytes_read"] == rows["allreduce"]["bytes_written"] == staged * BYTES
    # The root reads, the other writes.
    assert rows["bcast"]["bytes_read"] == (rows["bcast"]["calls"] - rows["bcast"]["in_place"]) // RANKS * BYTES
    assert all(row["failures"] == 0 for row in rows.values())


def test_the_page_has_a_table_of_80_columns(run: Callable[..., ProgramResult]) -> None:
    page = run("cuda", PALMETTE_REPORT="1", PALMETTE_FAKE_CUDA="no_pin").err
    lines = page[page.index("palmette: 2 ranks") :].splitlines()
    assert [line for line in lines if len(line) > 80] == [], page
    heading = next(line for line in lines if line.startswith("  on device memory"))
    assert heading.split()[4:] == ["calls", "read", "written", "in", "place", "by", "MPI", "failed"]
    assert any(line.startswith("  allreduce") and line.rstrip().endswith("0") for line in lines)
    assert "could not be pinned" in page


def test_memory_that_can_not_be_pinned_is_counted(run: Callable[..., ProgramResult]) -> None:
    report = run("cuda", PALMETTE_FAKE_CUDA="no_pin").report
    assert report is not None
    assert report["device"]["blocks_not_pinned"] > 0


def test_managed_memory_is_not_counted(run: Callable[..., ProgramResult]) -> None:
    report = run("managed").report
    assert report is not None
    assert report["device"]["calls"] == []


def test_without_a_driver_nothing_is_said(run: Callable[..., ProgramResult]) -> None:
    ran = run("host")
    assert ran.report is not None
    assert "device" not in ran.report


def test_handles_are_counted(run: Callable[..., ProgramResult]) -> None:
    ran = run("cuda", PALMETTE_DEVICE="ipc", PALMETTE_FORCE="allreduce=shared;bcast=shared")
    assert ran.report is not None
    handles = ran.report["device"]["ipc"]
    assert handles["exported"] >= handles["opened"] > 0
    assert handles["not_exported"] == handles["not_opened"] == 0
    staged = run("cuda", PALMETTE_DEVICE="staging").report
    assert staged is not None
    assert not any(staged["device"]["ipc"].values())
