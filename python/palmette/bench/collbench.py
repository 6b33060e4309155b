"""Reading what the program collbench writes: JSON lines, one for the job, one a cell, one at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.bench.errors import BenchError
from palmette.bench.results import Cell, Overlap, PassThrough

VERSION = 1


@dataclass
class Output:
    """What a job has written so far. `ended`: to its end."""

    mpi_version: str = ""
    hosts: list[str] = field(default_factory=list)
    palmette_ranks: int = 0
    cells: list[Cell] = field(default_factory=list)
    passes: list[PassThrough] = field(default_factory=list)
    ended: bool = False


def read_output(path: Path) -> Output:
    """Read the output of a job, also of one that didn't get to its end; nothing when there is no file.

    Raises BenchError for a line that isn't collbench's, except an unfinished last one.
    """
    output = Output()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return output
    for number, line in enumerate(lines[:-1], start=1):
        try:
            _take(output, json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{path}, line {number}: not what collbench writes ({error}); build it again") from None
    return output


def _take(output: Output, event: dict[str, Any]) -> None:
    kind = event["event"]
    if kind == "job":
        if event["version"] != VERSION:
            raise ValueError(f"version {event['version']}, expected {VERSION}")
        output.mpi_version = str(event["mpi"])
        output.hosts = [str(host) for host in event["hosts"]]
        output.palmette_ranks = int(event["palmette_on_ranks"])
    elif kind == "cell":
        output.cells.append(_cell(event))
    elif kind == "pass_through":
        output.passes.append(PassThrough(**{name: value for name, value in event.items() if name != "event"}))
    elif kind == "end":
        output.ended = True


def _cell(event: dict[str, Any]) -> Cell:
    cell = Cell(
        collective=event["collective"],
        size_bytes=event["size_bytes"],
        root=event["root"],
        wrong_alone=event["wrong_ranks"]["alone"],
        wrong_palmette=event["wrong_ranks"]["palmette"],
        window_s=event["window_s"],
        palmette_first=[bool(first) for first in event["palmette_first"]],
        alone_s=event["alone_s"],
        palmette_s=event["palmette_s"],
        alone_late_s=event["alone_late_s"],
        palmette_late_s=event["palmette_late_s"],
        block_bytes=event.get("block_bytes"),
        overlap=Overlap(**event["overlap"]) if "overlap" in event else None,
    )
    lists = (cell.palmette_first, cell.alone_s, cell.palmette_s, cell.alone_late_s, cell.palmette_late_s)
    if any(len(values) != event["pairs"] for values in lists):
        raise ValueError(f"{cell.collective} of {cell.size_bytes} bytes: not as many samples as pairs")
    return cell


def count_cells(path: Path) -> int:
    """Return how many cells a running job has written."""
    try:
        return path.read_bytes().count(b'{"event":"cell"')
    except FileNotFoundError:
        return 0
