"""The boundary at the top: whatever no command has foreseen is told in two lines, its details in a file."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

STATUS = 70
"""The exit status of a fault of palmette's own (EX_SOFTWARE of sysexits.h)."""


def tell(error: BaseException, words: Sequence[str]) -> int:
    """Tell of a fault on standard error, write its details to a file, and return the exit status.

    Never raises: where no file can be written, the last line of the details is told instead.
    """
    command = " ".join(["palmette", *words[:1]])
    kind = type(error).__name__
    print(f"{command}: a fault of palmette itself ({kind}), not of what it was given", file=sys.stderr)
    if isinstance(error, MemoryError):
        print("there is too little memory for this; try a smaller machine or fewer ranks", file=sys.stderr)
        return STATUS
    try:
        handle, path = tempfile.mkstemp(prefix="palmette-fault-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"palmette {_version()}, Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"arguments: {list(words)!r}\n\n")
            # Deep recursion repeats itself.
            file.write("".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-60)))
        print(f"please report it with {path} and the input that led here", file=sys.stderr)
    except OSError:
        where = traceback.extract_tb(error.__traceback__)[-1]
        print(f"please report it: {kind} at {Path(where.filename).name}:{where.lineno}", file=sys.stderr)
    return STATUS


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("palmette")
    except PackageNotFoundError:
        return "unknown"
