"""Measurements of tuning: cells with several candidates each. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.measure import job_output
from palmette.tune.errors import TuneError

TABLE = "table"
"""The candidate that represents the present table's choice."""
MPI = "mpi"
"""The candidate that represents the MPI alone."""


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
class CandidateTimes:
    """One candidate of a cell. The lists have an entry a round, from the first on; rounds are common to all candidates.

    `served`: by palmette. `kept`: not dropped early. `refused`: why it wasn't measured. `wrong_ranks`: with a
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
    candidates: list[CandidateTimes]

    def of(self, spec: str) -> CandidateTimes | None:
        """Return the candidate of that name, where it was measured."""
        found = next((one for one in self.candidates if one.spec == spec), None)
        return found if found is not None and found.time_s else None


@dataclass
class Output(job_output.Output):
    """What a job of the tune program has written so far."""

    results: list[CellResult] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        """Add what a line says."""
        super().take(event)
        if event["event"] == "cell":
            cell = Cell(event["collective"], event["size_bytes"], event["root"])
            self.results.append(CellResult(cell, [CandidateTimes(**one) for one in event["candidates"]]))


def read_output(path: Path) -> Output:
    """Read the output of a job as far as it is. Raises TuneError for a line that isn't tune's."""
    return job_output.read_into(Output(), path, "tune", TuneError)
