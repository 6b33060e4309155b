"""archive.sqlite: adding runs, and reading them again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from palmette import __version__
from palmette.measure.sqlite_file import SqliteFile, open_file
from palmette.runs.entry import Entry
from palmette.runs.schema import ArchiveError, prepare

DEFAULT_PATH = Path("archive.sqlite")
COMPUTING = "(computing)"
"""The row that stands for all time outside of MPI."""


@dataclass(frozen=True)
class Run:
    """A row of the table `runs`."""

    id: int
    began: str
    """When it was added, where that isn't known."""
    program: str
    build_id: str
    kind: str
    ranks: int
    nodes: int
    placement: str
    time_s: float | None
    computing_s: float | None
    waiting_s: float | None
    recorded: str
    tags: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return {**vars(self), "tags": dict(self.tags)}


RowKey = tuple[str, str]
"""Function and place."""


@dataclass(frozen=True)
class Sum:
    """Calls of one function from one place: all ranks together."""

    calls: int
    bytes: int
    seconds: float
    waiting_s: float | None
    """None: not known."""


class Archive(SqliteFile):
    """An open archive."""

    def add(self, entry: Entry) -> int | None:
        """Add a run in one transaction; return its number. None: it is there already."""
        with self._db:
            if self._db.execute("SELECT id FROM runs WHERE identity = ?", (entry.identity,)).fetchone():
                return None
            row = (
                entry.identity, datetime.now(timezone.utc).isoformat(timespec="seconds"), entry.began, entry.program,
                entry.build_id, entry.kind, entry.ranks, entry.nodes, entry.placement, json.dumps(entry.hosts),
                entry.topology, entry.time_s, entry.computing_s, entry.waiting_s, __version__, entry.recorded,
                json.dumps(dict(entry.tags)),
            )  # fmt: skip
            number = self._insert(
                "runs (identity, added, began, program, build_id, kind, ranks, nodes, placement, hosts, topology,"
                " time_s, computing_s, waiting_s, palmette, recorded, tags)",
                row,
            )
            for (function, place, path, size_class, level), one in entry.calls.items():
                texts = (self._text(function), self._text(place), self._text(path), size_class, self._text(level))
                self._insert("calls", (
                    number, *texts, len(one.ranks), one.calls, one.bytes, one.seconds, one.longest_s,
                ))  # fmt: skip
            for (function, place), waiting_s in entry.waits.items():
                self._insert("waits", (number, self._text(function), self._text(place), waiting_s))
            for (function, file), (own_s, whole_s) in entry.samples.items():
                self._insert("samples", (number, self._text(function), self._text(file), own_s, whole_s))
        return number

    def _text(self, text: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO texts (text) VALUES (?)", (text,))
        (number,) = self._db.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()
        return int(number)

    def runs(self, program: str | None = None) -> list[Run]:
        """Return the runs by the time at which they began, the oldest first. Raises ArchiveError: there are none."""
        rows = self._db.execute("SELECT * FROM runs ORDER BY coalesce(began, added), id").fetchall()
        if not rows:
            raise ArchiveError(f"{self.path} holds no run; `palmette runs --add RECORDING` adds one")
        found = [_run(row) for row in rows if program in (None, row["program"])]
        if not found:
            names = ", ".join(sorted({row["program"] for row in rows}))
            raise ArchiveError(f"{self.path} holds no run of {program}; it has {names}")
        return found

    def find(self, name: str, program: str | None = None) -> Run:
        """Return a run by its number, as last, or as last~N for the Nth before it. Raises ArchiveError."""
        runs = self.runs(program)
        word, _, back = name.partition("~")
        if word == "last" and (not back or back.isdigit()) and int(back or "0") < len(runs):
            return runs[-1 - int(back or "0")]
        for one in runs:
            if name == str(one.id):
                return one
        raise ArchiveError(
            f"{self.path} holds no run {name}; give a number from {min(one.id for one in runs)} to "
            f"{max(one.id for one in runs)}, last or last~1"
        )

    def sums(self, run: Run) -> dict[RowKey, Sum]:
        """Return a run's calls by function and place, and what it computes as COMPUTING."""
        waits = {
            (row["function"], row["place"]): row["waiting_s"]
            for row in self._db.execute("SELECT * FROM wait_rows WHERE run_id = ?", (run.id,))
        }
        found = {
            (row["function"], row["place"]): Sum(
                row["calls"], row["bytes"], row["seconds"], waits.get((row["function"], row["place"]))
            )
            for row in self._db.execute(
                "SELECT function, place, sum(calls) AS calls, sum(bytes) AS bytes, sum(seconds) AS seconds"
                " FROM call_rows WHERE run_id = ? GROUP BY 1, 2",
                (run.id,),
            )
        }
        if run.computing_s is not None:
            found[COMPUTING, ""] = Sum(0, 0, run.computing_s, 0.0)
        return found

    def samples(self, run: Run) -> dict[RowKey, float]:
        """Return by function and file the processor seconds of its own of a sampled run."""
        rows = self._db.execute("SELECT function, file, own_s FROM sample_rows WHERE run_id = ?", (run.id,))
        return {(row["function"], row["file"]): row["own_s"] for row in rows}

    def sizes(self, run: Run) -> list[tuple[str, int, int, float]]:
        """Return function, size class, calls and seconds of all ranks."""
        return [
            tuple(row) for row in self._db.execute(
                "SELECT function, size_class, sum(calls), sum(seconds) FROM call_rows WHERE run_id = ? GROUP BY 1, 2",
                (run.id,),
            )
        ]  # fmt: skip


def _run(row: sqlite3.Row) -> Run:
    return Run(
        row["id"], row["began"] or row["added"], row["program"], row["build_id"], row["kind"], row["ranks"],
        row["nodes"], row["placement"], row["time_s"], row["computing_s"], row["waiting_s"], row["recorded"],
        json.loads(row["tags"]),
    )  # fmt: skip


@contextmanager
def open_archive(path: Path, *, create: bool) -> Iterator[Archive]:
    """Open an archive. Raises ArchiveError."""
    with open_file(
        path, prepare, create=create, command="palmette runs --add RECORDING", option="--archive",
        error_type=ArchiveError,
    ) as connection:  # fmt: skip
        yield Archive(connection, path)
