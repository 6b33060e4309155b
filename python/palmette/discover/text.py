"""Robust opening of text input: byte order marks, UTF-16, foreign line ends, invalid bytes."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import IO

from palmette.files import open_input
from palmette.topology.found import DiscoverError


def open_text(path: str) -> IO[str]:
    """Opens a file for reading lines; DiscoverError when that can't be done.

    Invalid UTF-8 is replaced: one stray byte in a description must not make the fabric unreadable.
    """
    try:
        raw = open_input(path)
        # A pipe can't have been saved by a Windows shell.
        head = raw.peek(2)[:2] if isinstance(raw, io.BufferedReader) and raw.seekable() else b""
    except FileNotFoundError:
        raise DiscoverError(f"no such file: {path}; check the path, or give - to read standard input") from None
    except IsADirectoryError:
        raise DiscoverError(f"{path} is a directory; give the file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DiscoverError(f"can't read {path}: {reason}; give another file") from None
    encoding = "utf-16" if head in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return io.TextIOWrapper(raw, encoding=encoding, errors="replace")


def read_text(path: str) -> str:
    """The whole text of a file, or of standard input for `-`."""
    if path == "-":
        return standard_input().read()
    with open_text(path) as stream:
        return stream.read()


def standard_input() -> IO[str]:
    """Standard input as text, whatever the locale says."""
    buffer = getattr(sys.stdin, "buffer", None)
    return sys.stdin if buffer is None else io.TextIOWrapper(buffer, encoding="utf-8-sig", errors="replace")


def exists(path: str | Path) -> bool:
    """Whether a path is an accessible file."""
    try:
        return Path(path).is_file()
    except OSError:
        return False
