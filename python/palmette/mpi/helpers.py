"""Compiled helper programs in palmette/bin: locating them, and starting and ending long-running ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import palmette
from palmette.mpi.errors import RunError
from palmette.mpi.installed import usable


def helper(name: str) -> Path:
    """Return the path of a compiled helper; PALMETTE_LAB_BIN names another folder. Raises RunError."""
    override = os.environ.get("PALMETTE_LAB_BIN")
    folders = [Path(override)] if override else [Path(place) / "bin" for place in palmette.__path__]
    for folder in folders:
        if os.access(folder / name, os.R_OK):
            return usable((folder / name).absolute())
    raise RunError(f"{name} is not in {', '.join(map(str, folders))}; build palmette on Linux (`make build`)")


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start a helper that prints `ready` once initialised."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_until_ready(process: subprocess.Popen[str]) -> str | None:
    """Wait until the helper is ready (returns None) or has exited (returns its error); bounded by its own timeout."""
    assert process.stdout is not None and process.stderr is not None
    if process.stdout.readline().strip() == "ready":
        return None
    return (process.stderr.read().strip().splitlines() or ["it ended"])[0]


def end(process: subprocess.Popen[str]) -> None:
    """End a helper; a lab's helpers forward the signal, and their children die with them."""
    process.terminate()
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
