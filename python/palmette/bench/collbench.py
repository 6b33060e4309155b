"""Parsing the output of the measuring program collbench (JSON lines)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.bench.results import Cell, Overlap, PassThrough
from palmette.measure import job_output
from palmette.measure.errors import BenchError


@dataclass
class Output(job_output.Output):
    """What a job has written so far."""

    cells: list[Cell] = field(default_factory=list)
    passes: list[PassThrough] = field(default_factory=list)

    def take(self, event: dict[str, Any]) -> None:
        """Add the event of one line."""
        super().take(event)
        if event["event"] == "cell":
            self.cells.append(_cell(event))
        elif event["event"] == "pass_through":
            self.passes.append(PassThrough(**{name: value for name, value in event.items() if name != "event"}))


def read_output(path: Path) -> Output:
    """Read the output that a job has written so far. Raises BenchError for a line that isn't collbench's."""
    return job_output.read_into(Output(), path, "collbench", BenchError)


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
        alone_start_s=event.get("alone_start_s", []),
        palmette_start_s=event.get("palmette_start_s", []),
    )
    lists = (cell.palmette_first, cell.alone_s, cell.palmette_s, cell.alone_late_s, cell.palmette_late_s)
    if any(len(values) != event["pairs"] for values in lists):
        raise ValueError(f"{cell.collective} of {cell.size_bytes} bytes: not as many samples as pairs")
    return cell
