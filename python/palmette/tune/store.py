"""tuning.sqlite: every tuning with its raw samples. docs/reference/measurements.md describes the tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palmette.measure.sqlite_file import SqliteFile, open_file
from palmette.tune.errors import TuneError
from palmette.tune.results import CandidateTimes, Cell, CellResult

DEFAULT_PATH = Path("tuning.sqlite")
SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE tunings (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL,            -- UTC, ISO 8601
  machine TEXT NOT NULL,            -- JSON: all that is known of the machine, palmette's version and commit
  place TEXT NOT NULL,              -- what the ranks ran on, for people
  topology TEXT,                    -- topology.json
  settings TEXT NOT NULL            -- JSON
) STRICT;
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  tuning_id INTEGER NOT NULL REFERENCES tunings(id) ON DELETE CASCADE,
  mpi TEXT NOT NULL,                -- mpich, openmpi, impi
  mpi_version TEXT NOT NULL,
  placement TEXT NOT NULL,
  step TEXT NOT NULL,               -- search, confirm, refine
  hosts TEXT NOT NULL,              -- JSON: host of each rank
  seconds REAL NOT NULL,
  error TEXT                        -- one line; NULL: none
) STRICT;
CREATE INDEX jobs_of_tuning ON jobs(tuning_id);
CREATE TABLE candidates (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  function TEXT NOT NULL,           -- allreduce
  size_bytes INTEGER NOT NULL,      -- of a block, or of the vector
  root INTEGER NOT NULL,
  spec TEXT NOT NULL,               -- or table, mpi
  served INTEGER NOT NULL,          -- by palmette
  kept INTEGER NOT NULL,            -- 0: dropped early
  refused TEXT,                     -- why it wasn't measured
  wrong_ranks INTEGER NOT NULL,
  predicted_s REAL,
  UNIQUE (job_id, function, size_bytes, root, spec)
) STRICT;
CREATE TABLE samples (
  candidate_id INTEGER NOT NULL REFERENCES candidates(id) ON DELETE CASCADE,
  round INTEGER NOT NULL,           -- common to all candidates of a cell
  time_s REAL NOT NULL,             -- common start to the last rank's end
  late_s REAL NOT NULL,             -- how late the latest rank started
  PRIMARY KEY (candidate_id, round)
) STRICT, WITHOUT ROWID;
"""


@dataclass
class TuneJob:
    """One mpiexec: an MPI, a placement, and the cells that it measured."""

    mpi: str
    mpi_version: str
    placement: str
    step: str
    hosts: list[str]
    seconds: float
    error: str | None
    results: list[CellResult]


@dataclass(frozen=True)
class StoredCandidate:
    """A candidate as it is stored, with the job that measured it."""

    started: str
    mpi: str
    placement: str
    ranks: int
    cell: Cell
    measured: CandidateTimes


class TuningStore(SqliteFile):
    """An open tuning.sqlite."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._tuning: int | None = None

    def begin(
        self,
        started: str,
        machine: dict[str, Any],
        place: str,
        topology: dict[str, Any] | None,
        settings: dict[str, Any],
    ) -> int:
        """Add a tuning, to which jobs are added from here on; return its number."""
        with self._db:
            self._tuning = self._insert(
                "tunings (started, machine, place, topology, settings)",
                (
                    started,
                    json.dumps(machine),
                    place,
                    json.dumps(topology) if topology is not None else None,
                    json.dumps(settings),
                ),
            )
        return self._tuning

    def add(self, job: TuneJob) -> None:
        """Add a job with all its samples. All or nothing."""
        assert self._tuning is not None, "begin() comes first"
        with self._db:
            job_id = self._insert(
                "jobs (tuning_id, mpi, mpi_version, placement, step, hosts, seconds, error)",
                (
                    self._tuning, job.mpi, job.mpi_version, job.placement, job.step, json.dumps(job.hosts), job.seconds,
                    job.error,
                ),
            )  # fmt: skip
            for result in job.results:
                for one in result.candidates:
                    self._add_candidate(job_id, result.cell, one)

    def _add_candidate(self, job_id: int, cell: Cell, one: CandidateTimes) -> None:
        candidate = self._insert(
            "candidates (job_id, function, size_bytes, root, spec, served, kept, refused, wrong_ranks, predicted_s)",
            (
                job_id, cell.function, cell.size_bytes, cell.root, one.spec, one.served, one.kept, one.refused,
                one.wrong_ranks, one.predicted_s,
            ),
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO samples VALUES (?, ?, ?, ?)",
            (
                (candidate, number, time_s, late_s)
                for number, (time_s, late_s) in enumerate(zip(one.time_s, one.late_s, strict=True))
            ),
        )

    def candidates(self, function: str, size_bytes: int | None = None) -> list[StoredCandidate]:
        """Return the measurements of a function, the newest tuning first; of one size, or of all."""
        rows = self._db.execute(
            "SELECT c.*, j.mpi, j.placement, j.hosts, t.started FROM candidates c JOIN jobs j ON c.job_id = j.id"
            " JOIN tunings t ON j.tuning_id = t.id WHERE c.function = ? AND (? IS NULL OR c.size_bytes = ?)"
            " ORDER BY t.id DESC, j.id DESC, c.id",
            (function, size_bytes, size_bytes),
        ).fetchall()
        return [self._found(row) for row in rows]

    def jobs(self, step: str) -> list[TuneJob]:
        """Return all jobs of a step with their samples, in the order in which they were measured."""
        rows = self._db.execute("SELECT * FROM jobs WHERE step = ? ORDER BY id", (step,)).fetchall()
        return [
            TuneJob(
                row["mpi"], row["mpi_version"], row["placement"], row["step"], json.loads(row["hosts"]), row["seconds"],
                row["error"], self._results(row["id"]),
            )
            for row in rows
        ]  # fmt: skip

    def _results(self, job_id: int) -> list[CellResult]:
        found: dict[Cell, CellResult] = {}
        for row in self._db.execute("SELECT * FROM candidates WHERE job_id = ? ORDER BY id", (job_id,)).fetchall():
            cell = Cell(row["function"], row["size_bytes"], row["root"])
            found.setdefault(cell, CellResult(cell, [])).candidates.append(self._measured(row))
        return list(found.values())

    def _found(self, row: sqlite3.Row) -> StoredCandidate:
        cell = Cell(row["function"], row["size_bytes"], row["root"])
        ranks = len(json.loads(row["hosts"]))
        return StoredCandidate(row["started"], row["mpi"], row["placement"], ranks, cell, self._measured(row))

    def _measured(self, row: sqlite3.Row) -> CandidateTimes:
        samples = self._db.execute(
            "SELECT time_s, late_s FROM samples WHERE candidate_id = ? ORDER BY round", (row["id"],)
        ).fetchall()
        return CandidateTimes(
            row["spec"], bool(row["served"]), bool(row["kept"]), row["refused"], row["wrong_ranks"],
            [sample["time_s"] for sample in samples], [sample["late_s"] for sample in samples], row["predicted_s"],
        )  # fmt: skip


@contextmanager
def open_tunings(path: Path, *, create: bool) -> Iterator[TuningStore]:
    """Open `path`, made anew where `create` says so. Raises TuneError for a file that is no store of this version."""
    with open_file(path, _prepare, create=create, command="palmette tune", error_type=TuneError) as connection:
        yield TuningStore(connection, path)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    elif "tunings" not in tables or version != SCHEMA_VERSION:
        raise TuneError(f"{path} holds no tunings of version {SCHEMA_VERSION}; name another file with --store")
