"""Output of the measuring programs collbench and tune: JSON lines, read during and after the job.

A program writes a file of JSON lines: one for the job, one a cell, one at the end.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

VERSION = 1
_PEEK_S = 0.3


@dataclass
class Output:
    """What a program has written so far. `ended`: the output is complete."""

    mpi_version: str = ""
    hosts: list[str] = field(default_factory=list)
    palmette_ranks: int = 0
    ended: bool = False

    def take(self, event: dict[str, Any]) -> None:
        """Add what a line says. Raises ValueError, KeyError or TypeError for one that isn't the program's."""
        kind = event["event"]
        if kind == "job":
            if event["version"] != VERSION:
                raise ValueError(f"version {event['version']}, expected {VERSION}")
            self.mpi_version = str(event["mpi"])
            self.hosts = [str(host) for host in event["hosts"]]
            self.palmette_ranks = int(event["palmette_on_ranks"])
        elif kind == "end":
            self.ended = True


AnyOutput = TypeVar("AnyOutput", bound=Output)


def read_into(output: AnyOutput, path: Path, program: str, error_type: type[Exception]) -> AnyOutput:
    """Read what a job has written, also one that didn't get to its end; nothing when there is no file.

    Raises `error_type` for a line that isn't the program's, except an unfinished last one.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return output
    for number, line in enumerate(lines[:-1], start=1):
        try:
            output.take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise error_type(f"{path}, line {number}: not what {program} writes ({error}); build it again") from None
    return output


def count_cells(path: Path) -> int:
    """Return how many cells a running job has written."""
    try:
        return path.read_bytes().count(b'{"event":"cell"')
    except FileNotFoundError:
        return 0


@contextmanager
def while_polling(poll: Callable[[], bool]) -> Iterator[None]:
    """Call `poll` periodically while a job runs, until it returns True."""
    over = threading.Event()

    def peek() -> None:
        while not over.wait(_PEEK_S) and not poll():
            pass

    thread = threading.Thread(target=peek, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def watched(path: Path, cells_done: Callable[[int], None]) -> Iterator[None]:
    """Call `cells_done` with the number of finished cells while the job runs."""

    def poll() -> bool:
        cells_done(count_cells(path))
        return False

    with while_polling(poll):
        yield


OURS = tuple(f"{name}:" for name in ("palmette", "collbench", "composebench", "patternbench", "tune"))
"""Prefixes of the lines of our own programs."""


def refuses_root(lines: Iterable[str]) -> str:
    """Return what to do about an Open MPI that starts nothing for root, of whose page no line says it; else nothing."""
    refused = any("detected an attempt to run as root" in line for line in lines)
    return "it refuses to run as root; give it --allow-run-as-root, or be another user" if refused else ""


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the most informative line of a job's output: the first of a program of ours, else the last."""
    printed = f"{done.stdout}\n{done.stderr}".splitlines()
    if refused := refuses_root(printed):
        return refused
    lines = [line.strip() for line in printed if any(map(str.isalpha, line))]  # not those of dashes alone
    ours = [line for line in lines if line.startswith(OURS)]
    return (ours[:1] or lines[-1:] or ["no output"])[0][:300]
