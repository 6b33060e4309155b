"""palmette.analysis: what commands say of a recording, as objects and arrays; the example notebook runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.analysis import RecordError, Trace
from palmette.mpi.abi import PROGRAMS
from palmette.record.reading import read_job

from .conftest import ROOT, Mpi

pytestmark = pytest.mark.mpi

RANKS, STEPS = 4, 40
NOTEBOOK = ROOT / "examples" / "notebook" / "report.ipynb"


@pytest.fixture
def folder(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> Path:
    """A trace of the stencil program."""
    mpi = mpi_called("mpich")
    ran = mpi.run(RANKS, PROGRAMS / f"heat.{mpi.abi}", STEPS, settings={"PALMETTE_TRACE": str(tmp_path / "calls")})
    assert ran.status == 0, ran.text
    return tmp_path / "calls"


def test_the_commands_say_the_same(palmette: Callable[..., Any], folder: Path) -> None:
    trace = Trace(folder)
    printed = json.loads(palmette("report", str(folder), "--json").out)
    assert json.loads(json.dumps(trace.to_json())) == printed
    assert [one.sentence for one in trace.findings] == [one["sentence"] for one in printed["findings"]]
    ideal = json.loads(palmette("what-if", str(folder), "--ideal", "--json").out)
    assert ideal["expected_s"] == pytest.approx(trace.ideal().expected_s)


def test_arrays_have_what_is_recorded(folder: Path) -> None:
    trace = Trace(folder)
    for process in read_job(folder).processes:
        calls = trace.calls(process.recorded.rank)
        assert list(calls["function"]) == [one.function for one in process.calls()]
        assert calls["seconds"].sum() == pytest.approx(sum(one.seconds for one in process.calls()))
        assert list(calls["bytes"]) == [one.bytes for one in process.calls()]
        assert (np.diff(calls["begin_s"][~calls["is_request"]]) >= 0).all() and calls["begin_s"][0] >= 0
    ends = 2 * RANKS  # MPI_Init and MPI_Finalize, which are no part of the run
    assert trace.paths["calls"].sum() == trace.document["calls"] - ends
    messages, sizes = trace.matrix
    assert messages.shape == sizes.shape == (RANKS, RANKS)
    assert messages[0, 1] >= STEPS and messages[0, 0] == 0
    assert trace.links is not None and 0 < trace.efficiencies.parallel <= 1


def test_each_answer_is_computed_once_and_told(folder: Path) -> None:
    told: list[str] = []
    trace = Trace(folder, progress=told.append)
    assert told == []
    trace.findings, trace.causes, trace.page(), trace.to_json()
    assert len(told) == len(set(told)) >= 3


def test_what_is_not_there_is_said_in_a_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=re.escape("it has no rank 9; it has 4, from 0 on")):
        Trace(folder).calls(9)
    with pytest.raises(RecordError, match="no such folder"):
        Trace(tmp_path / "nothing")


def test_a_profile_has_sums(mpi_called: Callable[[str], Mpi], tmp_path: Path) -> None:
    mpi = mpi_called("mpich")
    sums = {"PALMETTE_PROFILE": str(tmp_path / "sums")}
    assert mpi.run(2, PROGRAMS / f"heat.{mpi.abi}", 4, settings=sums).status == 0
    trace = Trace(tmp_path / "sums")
    assert "MPI_Allreduce" in trace.paths["function"] and not trace.has_calls
    assert trace.to_json()["causes"] is None and "<html" in trace.page()
    with pytest.raises(RecordError, match="a profile has no single calls"):
        _ = trace.findings


def test_the_notebook_runs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRACE", str(folder))
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    printed = capsys.readouterr().out
    assert f"{RANKS} ranks" in printed and "parallel efficiency" in printed and "communication that takes no" in printed
