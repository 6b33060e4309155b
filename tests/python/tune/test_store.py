"""The samples of tunings."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from palmette.tune.errors import TuneError
from palmette.tune.store import TuneJob, open_tunings

from .samples import cell


def test_samples_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "tuning.sqlite"
    result = cell({"table": [1.0, 2.0], "ring": [0.5, 0.25]})
    result.candidates[1].predicted_s = 0.3
    with open_tunings(path, create=True) as store:
        store.begin("2026-11-21T10:00:00Z", {"name": "here"}, "lab", None, {"budget_s": 60})
        store.add(TuneJob("mpich", "MPICH 5", "block", "search", ["h0", "h1"], 2.0, None, [result]))
    with open_tunings(path, create=False) as store:
        found = store.candidates("allreduce", 1024)
        assert store.candidates("bcast") == []
    assert [one.measured for one in found] == result.candidates
    assert {(one.mpi, one.ranks, one.started) for one in found} == {("mpich", 2, "2026-11-21T10:00:00Z")}


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (id)")
    with pytest.raises(TuneError, match="holds no tunings"), open_tunings(path, create=True):
        pass


def test_a_store_that_isnt_there_says_who_writes_one(tmp_path: Path) -> None:
    with pytest.raises(TuneError, match="palmette tune"), open_tunings(tmp_path / "none", create=False):
        pass
