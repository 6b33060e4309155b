"""A SQLite database: a recording as tables that refer to each other, for questions in SQL."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from palmette.record.formats import messages
from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.symbols import Place

SCHEMA = """
CREATE TABLE run (
    folder TEXT, began TEXT, ranks INTEGER, size INTEGER, from_s REAL, until_s REAL, has_calls INTEGER
);
CREATE TABLE processes (
    id INTEGER PRIMARY KEY, rank INTEGER, host TEXT, pid INTEGER, executable TEXT, state TEXT,
    began_ns INTEGER, ended_ns INTEGER, clock_error_ns INTEGER, lost_calls INTEGER
);
CREATE TABLE communicators (id INTEGER PRIMARY KEY, name TEXT, size INTEGER);
CREATE TABLE members (
    communicator INTEGER REFERENCES communicators, rank INTEGER, process INTEGER REFERENCES processes,
    PRIMARY KEY (communicator, rank, process)
) WITHOUT ROWID;
CREATE TABLE functions (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE frames (id INTEGER PRIMARY KEY, function TEXT, file TEXT, line INTEGER);
CREATE TABLE paths (id INTEGER PRIMARY KEY, called_at INTEGER REFERENCES frames);
CREATE TABLE path_frames (
    path INTEGER REFERENCES paths, depth INTEGER, frame INTEGER REFERENCES frames, PRIMARY KEY (path, depth)
) WITHOUT ROWID;
CREATE TABLE sums (
    process INTEGER REFERENCES processes, function INTEGER REFERENCES functions, path INTEGER REFERENCES paths,
    communicator INTEGER REFERENCES communicators, is_request INTEGER, calls INTEGER, bytes INTEGER, seconds REAL,
    longest_s REAL
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes, thread INTEGER,
    function INTEGER REFERENCES functions, path INTEGER REFERENCES paths,
    communicator INTEGER REFERENCES communicators, is_request INTEGER, begin_ns INTEGER, end_ns INTEGER,
    bytes INTEGER, peer INTEGER, tag INTEGER, instance INTEGER, algorithm TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, send INTEGER REFERENCES calls, receive INTEGER REFERENCES calls, bytes INTEGER
);
"""
"""Times are since the job's first call. depth 0 of a path is the outermost function."""
INDICES = """
CREATE INDEX sums_by_function ON sums (function, path);
CREATE INDEX calls_by_time ON calls (process, begin_ns);
CREATE INDEX calls_by_function ON calls (function, path);
CREATE INDEX calls_by_instance ON calls (communicator, instance) WHERE instance IS NOT NULL;
CREATE INDEX messages_by_send ON messages (send);
CREATE INDEX messages_by_receive ON messages (receive);
"""
"""Made when all rows are there, which is several times as fast."""


def write(path: Path, selection: Selection) -> Counts:
    """Write a selection. Cost: O(calls log calls), some 10 us each, and O(sums)."""
    try:
        with closing(sqlite3.connect(path)) as database:
            # Nobody reads it before it has its name: a journal would guard nothing.
            database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + SCHEMA)
            counts = _Writer(database, selection).write()
            database.executescript(INDICES)
            database.commit()
    except sqlite3.Error as error:  # the disk is full, mostly
        raise OSError(errno.EIO, str(error), str(path)) from None
    return counts


class _Writer:
    def __init__(self, database: sqlite3.Connection, selection: Selection) -> None:
        self._database, self._selection = database, selection
        self._functions: dict[str, int] = {}
        self._ids: dict[tuple[int, int], int] = {}
        """Process and Call.number -> id of a call."""

    def write(self) -> Counts:
        selection = self._selection
        self._insert("run", [self._run()])
        self._insert("processes", self._processes())
        self._insert("communicators", ((i, one.name, one.size) for i, one in enumerate(selection.communicators) if i))
        self._insert(
            "members",
            ((i, rank, process) for i, one in enumerate(selection.communicators)
             for rank, process in one.members.items()),
        )  # fmt: skip
        self._paths()
        counts = Counts()
        self._insert("sums", self._sums())
        if selection.records_calls:
            found = messages.match(selection)
            self._insert("calls", self._calls(counts, found))
            self._insert(
                "messages",
                ((one.number, self._ids[one.sender, one.send], self._ids[one.receiver, one.receive], one.bytes)
                 for one in found.all),
            )  # fmt: skip
            counts.messages = len(found.all)
        else:
            for index in selection.chosen:
                for one in selection.sums(index):
                    counts.add_sum(one)
        self._insert("functions", ((number, name) for name, number in self._functions.items()))
        return counts

    def _insert(self, table: str, rows: Any) -> None:
        columns = len(self._database.execute(f"PRAGMA table_info({table})").fetchall())
        self._database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", rows)  # noqa: S608

    def _run(self) -> tuple[Any, ...]:
        selection = self._selection
        began = datetime.fromtimestamp(selection.begin_real_ns * 1e-9, timezone.utc)
        until_s = selection.until_ns * 1e-9 if selection.until_ns is not None else None
        return (
            str(selection.job.folder.resolve()), began.isoformat(), len(selection.chosen), selection.job.size,
            selection.from_ns * 1e-9, until_s, int(selection.records_calls),
        )  # fmt: skip

    def _processes(self) -> Iterator[tuple[Any, ...]]:
        selection = self._selection
        for index, process in enumerate(selection.everyone):
            one = process.recorded
            begin_ns, end_ns = (
                selection.since_begin_ns(process, real_ns) for real_ns in (one.begin_real_ns, one.last_real_ns)
            )
            error_ns = process.clock_at(one.last_real_ns)[1]
            yield (
                index, one.rank, process.host, one.pid, one.executable, process.state, begin_ns, end_ns, error_ns,
                one.dropped,
            )  # fmt: skip

    def _paths(self) -> None:
        frames: dict[tuple[str, str, int], int] = {}
        rows, called_at = [], []

        def number_of(place: Place) -> int:
            return frames.setdefault((place.function, place.file, place.line), len(frames) + 1)

        for path, stack in enumerate(self._selection.stacks):
            for depth, place in enumerate(stack):
                rows.append((path, depth, number_of(place)))
            called_at.append((path, number_of(self._selection.place(path)) if stack else None))
        self._insert(
            "frames", ((number, name, file or None, line or None) for (name, file, line), number in frames.items())
        )
        self._insert("paths", called_at)
        self._insert("path_frames", rows)

    def _sums(self) -> Iterator[tuple[Any, ...]]:
        for index in self._selection.chosen:
            for one in self._selection.sums(index):
                yield (
                    index, self._function(one.function), one.path, one.communicator or None, int(one.is_request),
                    one.calls, one.bytes, one.seconds, one.longest_s,
                )  # fmt: skip

    def _calls(self, counts: Counts, found: messages.Messages) -> Iterator[tuple[Any, ...]]:
        number = 0
        for index in self._selection.chosen:
            ends = found.sent[index].keys() | found.received[index].keys()
            for call in self._selection.calls(index):
                number += 1
                if call.number in ends:
                    self._ids[index, call.number] = number
                counts.add(call)
                yield (
                    number, index, call.thread, self._function(call.function), call.path, call.communicator or None,
                    int(call.is_request), call.begin_ns, call.end_ns, call.bytes,
                    call.peer if call.peer >= 0 else None, None if call.instance or call.peer == -1 else call.tag,
                    call.instance or None, call.algorithm or None,
                )  # fmt: skip

    def _function(self, name: str) -> int:
        return self._functions.setdefault(name, len(self._functions) + 1)
