"""Simulated ranks are recorded as real ones, in simulated time, and twice the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.record.reading import read_job
from palmette_lab.simulate import simgrid
from palmette_lab.simulate.errors import SimulateError

SMALL = "4leaf@3GB/s~2us:4node@1.5GB/s:2core"
LARGE = "16leaf@3GB/s~2us:16node@1.5GB/s:4core"


@pytest.fixture(autouse=True)
def _has_simgrid() -> None:
    try:
        simgrid.find_smpirun()
    except SimulateError as error:
        pytest.skip(str(error))


def recorded(palmette_lab: Callable[..., Any], folder: Path, machine: str, *more: str) -> None:
    result = palmette_lab("simulate", "--machine", machine, "--collectives", "allreduce", "--sizes", "1K",
        "--rivals", "none", "--env", "PALMETTE_FORCE=allreduce=recursive_doubling", "--trace", folder, *more,
    )  # fmt: skip
    assert result.status == 0, result.err


@pytest.mark.parametrize(
    ("machine", "ranks"), [(SMALL, 32), pytest.param(LARGE, 1024, marks=pytest.mark.long)], ids=["32", "1024"]
)
def test_two_simulations_record_the_same(
    palmette_lab: Callable[..., Any], tmp_path: Path, machine: str, ranks: int
) -> None:
    for name in ("one", "another"):
        recorded(palmette_lab, tmp_path / name, machine)
    job = read_job(tmp_path / "one")
    assert [process.recorded.rank for process in job.processes] == list(range(ranks))
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "another").iterdir())
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "another" / name).read_bytes()
    ends = []
    for process in job.processes:
        calls = [call for call in process.calls() if call.function == "MPI_Allreduce"]
        assert len(calls) == 2, "one to warm up, one that is timed"
        assert all(call.plan and call.bytes == 1024 for call in calls)
        plan = process.recorded.plans[calls[0].plan]
        assert (plan.function, plan.algorithm) == ("allreduce", "recursive_doubling")
        # At each of log2(p) steps the whole vector to another partner.
        assert sum(send.bytes for send in plan.sends) == plan.calls * 1024 * (ranks.bit_length() - 1)
        ends.append(calls[-1].begin_real_ns + calls[-1].seconds * 1e9)
    assert 0 < max(ends) < 60e9, "simulated time begins at 0"


def test_each_simulation_has_a_folder_of_its_own(palmette_lab: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "all"
    recorded(palmette_lab, folder, SMALL, "--placement", "block,cyclic", "--keep", str(tmp_path / "kept"))
    assert sorted(path.name for path in folder.iterdir()) == ["allreduce-block-1024", "allreduce-cyclic-1024"]
    again = palmette_lab("simulate", "--machine", SMALL, "--collectives", "allreduce", "--sizes", "1K",
                         "--rivals", "none", "--placement", "block,cyclic", "--trace", folder)  # fmt: skip
    assert again.status == 2
    assert "it holds a recording already; give another folder" in again.err
    both = palmette_lab("simulate", "--machine", SMALL, "--trace", folder, "--profile", folder)
    assert (both.status, "give one of them" in both.err) == (2, True)
