"""The SQL schema of archive.sqlite. docs/guide/runs.md describes the tables: they are open to other programs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,    -- of the job, so that no recording is in here twice
  added TEXT NOT NULL,              -- UTC, ISO 8601
  began TEXT,                       -- UTC; NULL: simulated time
  program TEXT NOT NULL,            -- name of the executable, or of Python's script
  build_id TEXT NOT NULL,           -- of the executable; empty: it has none
  kind TEXT NOT NULL,               -- trace or profile
  ranks INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  placement TEXT NOT NULL,          -- hash of which ranks shared which switches and nodes; empty: not known
  hosts TEXT NOT NULL,              -- JSON: of each rank; []: not known
  topology TEXT NOT NULL,           -- hash of the topology.json of the run; empty: none was kept
  time_s REAL,                      -- of the job, from MPI_Init to MPI_Finalize; NULL: not known
  computing_s REAL,                 -- outside of MPI, all ranks together
  waiting_s REAL,                   -- in calls for late ranks, all ranks together; NULL: of a profile
  palmette TEXT NOT NULL,           -- version that has added it
  recorded TEXT NOT NULL,           -- folder of the recording when it was added
  tags TEXT NOT NULL                -- JSON: what --tag said
) STRICT;
CREATE INDEX runs_of_program ON runs(program, ranks);
CREATE TABLE texts (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE calls (                -- completed calls of all ranks together, without MPI_Init and MPI_Finalize
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  function INTEGER NOT NULL REFERENCES texts(id),
  place INTEGER NOT NULL REFERENCES texts(id),   -- innermost one outside of MPI
  path INTEGER NOT NULL REFERENCES texts(id),    -- outermost place first, with ; between
  size_class INTEGER NOT NULL,      -- bytes a call are from 2^size_class on; -1: none
  level INTEGER NOT NULL REFERENCES texts(id),   -- outermost level that the communicator spans; empty: not known
  ranks INTEGER NOT NULL,           -- that made such calls
  calls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  seconds REAL NOT NULL,
  longest_s REAL NOT NULL,
  PRIMARY KEY (run_id, function, path, place, size_class, level)
) STRICT, WITHOUT ROWID;
CREATE TABLE waits (                -- of traces
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  function INTEGER NOT NULL REFERENCES texts(id),
  place INTEGER NOT NULL REFERENCES texts(id),
  waiting_s REAL NOT NULL,          -- for late ranks
  PRIMARY KEY (run_id, function, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (              -- of runs with --sample: processor time of all ranks together
  run_id INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  function INTEGER NOT NULL REFERENCES texts(id),
  file INTEGER NOT NULL REFERENCES texts(id),
  own_s REAL NOT NULL,              -- in it
  whole_s REAL NOT NULL,            -- in it and in what it calls
  PRIMARY KEY (run_id, function, file)
) STRICT, WITHOUT ROWID;
CREATE VIEW call_rows AS
  SELECT run_id, f.text AS function, p.text AS place, w.text AS path, size_class, l.text AS level, ranks, calls, bytes,
         seconds, longest_s
  FROM calls JOIN texts f ON f.id = function JOIN texts p ON p.id = place JOIN texts w ON w.id = path
       JOIN texts l ON l.id = level;
CREATE VIEW wait_rows AS
  SELECT run_id, f.text AS function, p.text AS place, waiting_s
  FROM waits JOIN texts f ON f.id = function JOIN texts p ON p.id = place;
CREATE VIEW sample_rows AS
  SELECT run_id, f.text AS function, p.text AS file, own_s, whole_s
  FROM samples JOIN texts f ON f.id = function JOIN texts p ON p.id = file;
"""


class ArchiveError(ValueError):
    """An archive, or a run in it, that can't be used; the text says what to do."""


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; raise ArchiveError for a file of another kind or version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and version == 0:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        return
    if not {"runs", "calls", "texts"} <= tables:
        raise ArchiveError(f"{path} is no archive of runs; name another file with --archive")
    if version != SCHEMA_VERSION:
        raise ArchiveError(
            f"{path} has version {version} of the tables, this palmette reads {SCHEMA_VERSION}; add the recordings to "
            "a new file"
        )
