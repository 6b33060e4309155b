"""Base of runs.sqlite and tuning.sqlite: opening a file, adding rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class SqliteFile:
    """An open file of tables."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self.path = path

    def _insert(self, target: str, row: tuple[Any, ...]) -> int:
        """Add a row; return its number. `target`: a table and its columns, a text of the program's own."""
        cursor = self._db.execute(f"INSERT INTO {target} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        assert cursor.lastrowid is not None
        return cursor.lastrowid


@contextmanager
def open_file(
    path: Path,
    prepare: Callable[[sqlite3.Connection, Path], None],
    *,
    create: bool,
    command: str,
    error_type: type[Exception],
    option: str = "--store",
) -> Iterator[sqlite3.Connection]:
    """Open `path`, made anew where `create` says so; `prepare` makes its tables, or checks the existing ones.

    Raises `error_type` for errors of sqlite, and for a missing file, with the `command` that writes one and the
    `option` that names another.
    """
    if not create and not path.is_file():
        raise error_type(f"{path}: no such file; `{command}` writes one, or name another with {option}")
    try:
        connection = sqlite3.connect(path)
    except sqlite3.Error as error:
        raise error_type(f"{path} can't be opened: {error}; name another file with {option}") from None
    try:
        connection.row_factory = sqlite3.Row
        prepare(connection, path)
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection
    except sqlite3.Error as error:
        raise error_type(f"{path}: {error}; name another file with {option}") from None
    finally:
        connection.close()
