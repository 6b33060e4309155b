"""File access: atomic replacement when writing, and defensive reading of untrusted input.

A file is written to a temporary one in the same folder, which is renamed over the old one. Input may be a pipe
(`palmette show <(ssh ...)`), but not one without a writer, no device, and nothing larger than MOST_BYTES.
"""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

MOST_BYTES = 1 << 28
"""Larger input is refused: listings of the largest fabrics are a tenth of it."""
PIPE_WAIT_S = 1.0
"""Timeout for a named pipe without a writer."""


@contextmanager
def replaced(path: str | Path) -> Iterator[TextIO]:
    """A UTF-8 stream that replaces `path` atomically: the old file is intact until everything is written.

    A link is followed, and the mode of the old file kept. What is no file (a pipe, /dev/stdout) is written to directly.
    Raises OSError where that can't be done; the old file is then intact.
    """
    # Not resolved: /dev/stdout leads to a pipe whose own path can't be opened.
    given = Path(path)
    if given.exists() and not given.is_file() and not given.is_dir():
        with given.open("w", encoding="utf-8") as stream:
            yield stream
        return
    try:
        target = given.resolve()
    except RuntimeError:  # of a loop of links, up to Python 3.12
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None
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
    """Write a file atomically. Raises OSError; the old file is then intact."""
    with replaced(path) as stream:
        stream.write(text)


def open_input(path: str | Path) -> IO[bytes]:
    """Open a file or a pipe for reading.

    Raises OSError whose `strerror` says what is wrong: also for folders and devices, for a pipe that nothing writes to
    within PIPE_WAIT_S, and for more than MOST_BYTES.
    """
    given = str(path)
    # A blocking open of a pipe without a writer would hang.
    handle = os.open(given, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), given)
        if stat.S_ISFIFO(status.st_mode):
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            if not waiting.poll(PIPE_WAIT_S * 1000):
                raise OSError(errno.EAGAIN, "a pipe that nothing writes to", given)
        elif not stat.S_ISREG(status.st_mode) and os.path.realpath(given) != os.devnull:
            raise OSError(errno.ENODEV, "neither a file nor a pipe", given)
        elif status.st_size > MOST_BYTES:
            raise _too_large(given)
        os.set_blocking(handle, True)
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_bytes(path: str | Path) -> bytes:
    """Return the contents of a file or a pipe. Raises OSError as `open_input` does."""
    with open_input(path) as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _too_large(str(path))
    return data


def read_text(path: str | Path) -> str:
    """Return UTF-8 text without a byte order mark, line ends normalised to line feeds.

    Raises OSError as `open_input` does, and UnicodeDecodeError.
    """
    text = read_bytes(path).decode("utf-8-sig")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _too_large(path: str) -> OSError:
    return OSError(errno.EFBIG, f"larger than {MOST_BYTES >> 20} MB", path)


def parse_json(text: str) -> Any:
    """Parse JSON text. Raises json.JSONDecodeError, also where it is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None


def is_file(path: str | Path) -> bool:
    """Whether a word names a file; False also for what can't be a path."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
