"""runs.sqlite: what is written comes back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.bench.results import Overlap, PassThrough, Run
from palmette.bench.store import open_store
from palmette.measure.errors import BenchError

MakeRun = Callable[..., Run]


def save(path: Path, run: Run) -> None:
    with open_store(path, create=True) as store:
        for job in run.jobs:
            store.add(run, job)


def test_a_run_comes_back_as_it_was(made_run: MakeRun, tmp_path: Path) -> None:
    run = made_run(mpis=("mpich", "impi"))
    run.jobs[0].error = "it failed"
    run.jobs[1].report = None
    run.jobs[0].cells[0].block_bytes = [32, 64, 96]
    run.jobs[0].cells[1].overlap = Overlap(1e-3, 0.0, 0.75)
    run.jobs[1].passes = [PassThrough("barrier", where, 9, [4.5, 5.0], [6.0, 7.5]) for where in ("b", "a")]
    save(tmp_path / "runs.sqlite", run)
    with open_store(tmp_path / "runs.sqlite", create=False) as store:
        assert store.load("last") == run
        assert store.load("1") == run


def test_runs_are_found_by_number_and_counted_back_from_the_last(made_run: MakeRun, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    for size in (1, 2, 3):
        save(path, made_run(sizes=(size,), placements=("block",)))
    with open_store(path, create=False) as store:
        assert [store.load(name).id for name in ("last", "last~1", "last~2", "2")] == [3, 2, 1, 2]
        for name in ("last~3", "4", "first", "last~x"):
            with pytest.raises(BenchError, match="holds no run"):
                store.load(name)


def test_an_empty_store_says_how_to_fill_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite", create=True) as store, pytest.raises(BenchError, match="palmette bench"):
        store.load("last")


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no such file"), open_store(tmp_path / "runs.sqlite", create=False):
        pass
    assert not (tmp_path / "runs.sqlite").exists()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_text("nothing of the kind\n" * 100)
    with pytest.raises(BenchError, match="not a database"), open_store(path, create=True):
        pass


def test_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript("CREATE TABLE runs (id); PRAGMA user_version = 99;")
    database.close()
    with pytest.raises(BenchError, match="version 99"), open_store(path, create=True):
        pass


def test_samples_can_be_read_with_sql_alone(made_run: MakeRun, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    save(path, made_run(lambda *_: 0.5))
    database = sqlite3.connect(path)
    rows = database.execute(
        "SELECT placement, collective, size_bytes, avg(palmette_s) / avg(alone_s), bound_s FROM samples"
        " JOIN cells ON cells.id = cell_id JOIN jobs ON jobs.id = job_id GROUP BY cells.id"
    ).fetchall()
    database.close()
    assert len(rows) == 12
    assert all(0.45 < ratio < 0.55 and bound > 0 for *_, ratio, bound in rows)


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_older_version_is_brought_up_to_date(made_run: MakeRun, tmp_path: Path, version: int) -> None:
    path, run = tmp_path / "runs.sqlite", made_run()
    save(path, run)
    kinds = "'measure', 'floor'" + (", 'pass_through'" if version > 1 else "")
    less = "DROP TABLE pass_through; ALTER TABLE cells DROP COLUMN overlap;" if version == 1 else ""
    with sqlite3.connect(path) as old:  # back to what that version was
        old.execute("PRAGMA foreign_keys = OFF")
        old.execute("PRAGMA legacy_alter_table = ON")
        old.executescript(
            f"{less} DROP INDEX jobs_of_run; ALTER TABLE jobs DROP COLUMN traffic; ALTER TABLE jobs DROP COLUMN load;"
            "CREATE TABLE older AS SELECT * FROM jobs; DROP TABLE jobs;"
            "CREATE TABLE jobs (id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,"
            " mpi TEXT NOT NULL, mpi_version TEXT NOT NULL, placement TEXT NOT NULL, repeat INTEGER NOT NULL,"
            f" kind TEXT NOT NULL CHECK (kind IN ({kinds})), hosts TEXT NOT NULL, palmette_ranks INTEGER NOT NULL,"
            " seconds REAL NOT NULL, error TEXT, report TEXT) STRICT;"
            "CREATE INDEX jobs_of_run ON jobs(run_id);"
            "INSERT INTO jobs SELECT * FROM older; DROP TABLE older;"
            "ALTER TABLE samples DROP COLUMN alone_bound_s; ALTER TABLE samples DROP COLUMN palmette_bound_s;"
            f"PRAGMA user_version = {version};"
        )
    old.close()
    with open_store(path, create=False) as store:
        assert store.load("1") == run
        passed = made_run(placements=("block",), sizes=(8,))
        passed.jobs[0].kind = "pass_through"
        store.add(passed, passed.jobs[0])
        assert store.load("2").jobs == passed.jobs
    with sqlite3.connect(path) as now:
        assert now.execute("PRAGMA foreign_key_check").fetchall() == []
        assert now.execute("PRAGMA foreign_key_list(cells)").fetchone()[2] == "jobs"
        assert now.execute("PRAGMA user_version").fetchone() == (4,)
    now.close()


def test_a_store_without_bounds_beside_traffic_gets_columns_for_them(made_run: MakeRun, tmp_path: Path) -> None:
    path, run = tmp_path / "runs.sqlite", made_run()
    save(path, run)
    with sqlite3.connect(path) as old:
        old.executescript(
            "ALTER TABLE samples DROP COLUMN alone_bound_s; ALTER TABLE samples DROP COLUMN palmette_bound_s;"
            "PRAGMA user_version = 3;"
        )
    old.close()
    with open_store(path, create=False) as store:
        assert store.load("1") == run
        bounded = made_run(placements=("block",), sizes=(8,))
        cell = bounded.jobs[0].cells[0]
        cell.alone_bound_s, cell.palmette_bound_s = [None] * len(cell.alone_s), [1e-4] * len(cell.palmette_s)
        store.add(bounded, bounded.jobs[0])
        loaded = store.load("2").jobs[0].cells[0]
        assert (loaded.alone_bound_s, loaded.palmette_bound_s) == ([], cell.palmette_bound_s)
