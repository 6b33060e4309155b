"""The last-resort exception handler: an internal error is reported in two lines, its traceback in a file."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

STATUS = 70
"""The exit status of an internal error (EX_SOFTWARE of sysexits.h)."""
NEEDED = ("pymetis", "scipy")
"""Packages that a few commands need, and palmette doesn't bring by itself."""


def report(error: BaseException, words: Sequence[str], program: str = "palmette") -> int:
    """Report an internal error on standard error, write its traceback to a file, and return the exit status.

    Never raises: where no file can be written, the innermost frame of the traceback is printed instead.
    """
    command = " ".join([program, *words[:1]])
    missing = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in NEEDED:
        print(f"{command}: this needs {missing}, which isn't installed; pip install {missing}", file=sys.stderr)
        return 2
    if isinstance(error, ImportError) and ("_core" in (error.name or "") or "_core" in str(error)):
        print(f"{command}: {_missing_core()}", file=sys.stderr)
        return 2
    kind = type(error).__name__
    print(f"{command}: internal error of palmette ({kind}), not caused by its input", file=sys.stderr)
    if isinstance(error, MemoryError):
        print("there is too little memory for this; try a smaller machine or fewer ranks", file=sys.stderr)
        return STATUS
    try:
        outer = os.environ.get("PALMETTE_LAB_OUTER_TMPDIR")  # in a lab without root, TMPDIR ends with the command
        handle, path = tempfile.mkstemp(prefix="palmette-fault-", suffix=".txt", dir=outer)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"palmette {_version()}, Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"arguments: {list(words)!r}\n\n")
            # Deep recursion repeats its frames.
            file.write("".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-60)))
        print(f"please report it with {path} and the input that led here", file=sys.stderr)
    except OSError:
        where = traceback.extract_tb(error.__traceback__)[-1]
        print(f"please report it: {kind} at {Path(where.filename).name}:{where.lineno}", file=sys.stderr)
    return STATUS


def _missing_core() -> str:
    """Return why the compiled part can't be loaded, and what to do."""
    from palmette.mpi.installed import is_noexec

    folder = Path(__file__).resolve().parents[1]
    if is_noexec(folder) and any(folder.glob("_core*.so")):
        return (
            f"{folder} is on a file system that is mounted noexec, so that palmette's compiled part can't be loaded;"
            " install palmette elsewhere (palmette run works from there)"
        )
    return (
        "palmette's compiled part isn't there; in a checkout let `make build` end; elsewhere install palmette's wheel"
        " again"
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("palmette")
    except PackageNotFoundError:
        return "unknown"
