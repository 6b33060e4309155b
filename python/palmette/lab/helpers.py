"""The compiled helpers that stand in palmette/bin: finding them, and those that run until they are ended."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import palmette
from palmette.lab.errors import LabError


def helper(name: str) -> Path:
    """Return the path of a compiled helper. PALMETTE_LAB_BIN names another folder to take them from. Raises LabError."""
    override = os.environ.get("PALMETTE_LAB_BIN")
    folders = [Path(override)] if override else [Path(place) / "bin" for place in palmette.__path__]
    for folder in folders:
        if os.access(folder / name, os.R_OK):
            return (folder / name).absolute()
    raise LabError(f"{name} is not in {', '.join(map(str, folders))}; build palmette on Linux (`make build`)")


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """Start one that prints `ready` when it is."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def complaint(process: subprocess.Popen[str]) -> str | None:
    """Wait until it is ready, and return nothing, or has ended, and return what it said. Its own patience bounds this."""
    assert process.stdout is not None and process.stderr is not None
    if process.stdout.readline().strip() == "ready":
        return None
    return (process.stderr.read().strip().splitlines() or ["it ended"])[0]


def end(process: subprocess.Popen[str]) -> None:
    """End one that was started; the lab's helpers pass the signal on, and what they started dies with them."""
    process.terminate()
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
