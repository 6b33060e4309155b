"""The SQL schema of runs.sqlite, and the migration of older files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from palmette.measure.errors import BenchError

SCHEMA_VERSION = 4
_JOBS = """
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  mpi TEXT NOT NULL,                -- mpich, openmpi, impi, or the name of a rival
  mpi_version TEXT NOT NULL,
  placement TEXT NOT NULL,
  repeat INTEGER NOT NULL,          -- from 0
  kind TEXT NOT NULL CHECK (kind IN ('measure', 'floor', 'pass_through', 'rival')),
  hosts TEXT NOT NULL,              -- JSON: host of each rank
  palmette_ranks INTEGER NOT NULL,  -- ranks that had the preload
  seconds REAL NOT NULL,
  error TEXT,                       -- one line; NULL: none
  report TEXT,                      -- JSON: what the preload reported
  traffic TEXT,                     -- background traffic; NULL: none
  load TEXT                         -- JSON: utilisation of the links
) STRICT;
CREATE INDEX jobs_of_run ON jobs(run_id);
"""

_PASSES = """
CREATE TABLE pass_through (
  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  function TEXT NOT NULL,
  place TEXT NOT NULL,              -- communicator and size
  calls INTEGER NOT NULL,           -- of each loop
  alone_ns TEXT NOT NULL,           -- JSON: nanoseconds a call, by pair of loops
  palmette_ns TEXT NOT NULL,
  UNIQUE (job_id, function, place)
) STRICT;
"""

_SCHEMA = f"""
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL,            -- UTC, ISO 8601
  machine TEXT NOT NULL,            -- name of the machine
  cpu TEXT NOT NULL,
  cores INTEGER NOT NULL,
  kernel TEXT NOT NULL,
  palmette_version TEXT NOT NULL,
  git_commit TEXT,                  -- of the checkout that palmette was used from; + when files differed
  place TEXT NOT NULL,              -- description of where the ranks ran
  details TEXT NOT NULL,            -- JSON: full description of the machine
  settings TEXT NOT NULL,           -- JSON
  topology TEXT                     -- topology.json
) STRICT;
{_JOBS}{_PASSES}
CREATE TABLE cells (
  id INTEGER PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
  collective TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,      -- of a block, see docs/reference/measurements.md
  root INTEGER NOT NULL,
  block_bytes TEXT,                 -- JSON: by rank, where they differ
  wrong_alone INTEGER NOT NULL,     -- ranks with a wrong result, summed over the checks
  wrong_palmette INTEGER NOT NULL,
  window_s REAL NOT NULL,
  bound_s REAL,                     -- physical bound; NULL: unknown
  bound_reason TEXT,
  overlap TEXT,                     -- JSON: computed_s, and the overlapped shares alone and palmette; NULL: blocking
  UNIQUE (job_id, collective, size_bytes)
) STRICT;
CREATE TABLE samples (
  cell_id INTEGER NOT NULL REFERENCES cells(id) ON DELETE CASCADE,
  pair INTEGER NOT NULL,            -- in the order of time, from 0
  palmette_first INTEGER NOT NULL,
  alone_s REAL NOT NULL,            -- common start to the last rank's end
  palmette_s REAL NOT NULL,
  alone_late_s REAL NOT NULL,       -- how late the latest rank started
  palmette_late_s REAL NOT NULL,
  alone_bound_s REAL,               -- loaded bound of this call; NULL: unknown, or no traffic
  palmette_bound_s REAL,
  PRIMARY KEY (cell_id, pair)
) STRICT, WITHOUT ROWID;
"""

_JOBS_ANEW = f"""
ALTER TABLE jobs RENAME TO jobs_old;
DROP INDEX jobs_of_run;
{_JOBS}
INSERT INTO jobs (id, run_id, mpi, mpi_version, placement, repeat, kind, hosts, palmette_ranks, seconds, error, report)
  SELECT id, run_id, mpi, mpi_version, placement, repeat, kind, hosts, palmette_ranks, seconds, error, report
    FROM jobs_old;
DROP TABLE jobs_old;
"""  # noqa: S608 - texts of this file

_LOADED_BOUNDS = """
ALTER TABLE samples ADD COLUMN alone_bound_s REAL;
ALTER TABLE samples ADD COLUMN palmette_bound_s REAL;
"""

_UPDATES = {
    1: f"{_JOBS_ANEW} ALTER TABLE cells ADD COLUMN overlap TEXT; {_PASSES} {_LOADED_BOUNDS}",
    2: f"{_JOBS_ANEW} {_LOADED_BOUNDS}",
    3: _LOADED_BOUNDS,
}
"""Migrations to this version, by the version of the file."""


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file, or migrate an older version. Raises BenchError for other versions."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables == 0:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    elif version in _UPDATES:
        # Foreign keys are still off; references of other tables must keep naming `jobs`, not the renamed table.
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.executescript(f"BEGIN; {_UPDATES[version]} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        connection.execute("PRAGMA legacy_alter_table = OFF")
    elif version != SCHEMA_VERSION:
        raise BenchError(
            f"{path} is of version {version}, this palmette reads {SCHEMA_VERSION}; name another file with --store"
        )
