"""Files: written so that nobody ever sees half of one, and JSON of others read so that nothing in it harms.

A file is written beside the old one, and takes its place in one step.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


@contextmanager
def replaced(path: str | Path) -> Iterator[TextIO]:
    """A stream to write `path` with, UTF-8: the old file stays as it is until everything is written, or for good.

    A link is followed, and the mode of the old file kept. What is no file (a pipe, /dev/stdout) is written to as it is.
    Raises OSError where that can't be done; the old file is then intact.
    """
    # As it is named: /dev/stdout leads to a pipe whose own path can't be opened.
    given = Path(path)
    if given.exists() and not given.is_file() and not given.is_dir():
        with given.open("w", encoding="utf-8") as stream:
            yield stream
        return
    target = given.resolve()
    if target.is_dir():
        raise IsADirectoryError(21, os.strerror(21), str(path))
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), str(path))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a file in one step. Raises OSError; the old file is then intact."""
    with replaced(path) as stream:
        stream.write(text)


def parse_json(text: str) -> Any:
    """Return what JSON text says. Raises json.JSONDecodeError, also where it is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None


def is_file(path: str | Path) -> bool:
    """Whether a word that may be something else names a file: False also for what can be no path at all."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
