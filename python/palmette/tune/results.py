"""What tuning measures: cells with several candidates each. Times are seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.tune.errors import TuneError

VERSION = 1
TABLE = "table"
"""The candidate that stands for what the present table chooses."""
MPI = "mpi"
"""The candidate that stands for the MPI alone."""


@dataclass(frozen=True, order=True)
class Cell:
    """One question: an MPI function (`allreduce`), bytes of a block or vector (0 for a barrier), a root."""

    function: str
    size_bytes: int
    root: int = 0

    @property
    def label(self) -> str:
        """A few words: `allreduce 65536`."""
        return f"{self.function} {self.size_bytes}" if self.function != "barrier" else "barrier"


@dataclass
class Measured:
    """One candidate of a cell. The lists have an entry a round, from the first on; rounds are common to all candidates.

    `served`: by palmette. `kept`: not given up on the way. `refused`: why it wasn't measured. `wrong_ranks`: with a
    wrong result. `late_s`: how late the latest rank started.
    """

    spec: str
    served: bool = False
    kept: bool = False
    refused: str | None = None
    wrong_ranks: int = 0
    time_s: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    predicted_s: float | None = None


@dataclass
class CellResult:
    """What a job measured of one cell."""

    cell: Cell
    elapsed_s: float
    candidates: list[Measured]

    def of(self, spec: str) -> Measured | None:
        """Return the candidate of that name, where it was measured."""
        found = next((one for one in self.candidates if one.spec == spec), None)
        return found if found is not None and found.time_s else None


@dataclass
class Output:
    """What a job of the tune program has written so far. `ended`: to its end."""

    mpi_version: str = ""
    hosts: list[str] = field(default_factory=list)
    palmette_ranks: int = 0
    results: list[CellResult] = field(default_factory=list)
    ended: bool = False


def read_output(path: Path) -> Output:
    """Read the output of a job, also of one that didn't get to its end; nothing when there is no file.

    Raises TuneError for a line that isn't tune's, except an unfinished last one.
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
            raise TuneError(f"{path}, line {number}: not what tune writes ({error}); build it again") from None
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
        cell = Cell(event["collective"], event["size_bytes"], event["root"])
        output.results.append(CellResult(cell, event["elapsed_s"], [Measured(**one) for one in event["candidates"]]))
    elif kind == "end":
        output.ended = True


def count_cells(path: Path) -> int:
    """Return how many cells a running job has written."""
    try:
        return path.read_bytes().count(b'{"event":"cell"')
    except FileNotFoundError:
        return 0
