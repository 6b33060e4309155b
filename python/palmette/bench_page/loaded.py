"""Times without and with background traffic side by side, as values for the page's template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from palmette.bench.evaluate import Row
from palmette.bench.loaded import pairs_of
from palmette.bench.loads import mean_loads
from palmette.bench.results import Run
from palmette.bench.text import mpi_text, multiple_text, ratio_text, size_text, time_text


@dataclass(frozen=True)
class Side:
    """One of both: times, ratio, multiple of the bound, verdict."""

    alone: str
    palmette: str
    ratio: str
    bound: str
    verdict: str


@dataclass(frozen=True)
class LoadedLine:
    """A cell without and with traffic."""

    name: str
    sides: list[Side]


@dataclass(frozen=True)
class Bar:
    """A link's utilisation in percent of its capacity, total and by background traffic, in its busier direction."""

    name: str
    all: float
    traffic: float


@dataclass(frozen=True)
class Loaded:
    """Everything that the page shows of one run. `traffic` is its name."""

    traffic: str
    tables: list[tuple[str, list[LoadedLine]]]
    bars: list[Bar]


def loaded(run: Run, rows: Sequence[Row]) -> Loaded | None:
    """Return what the page shows of a run with background traffic; None without."""
    pairs = pairs_of(rows)
    if not pairs:
        return None
    tables = []
    for _, group in groupby(pairs, key=lambda pair: (pair.quiet.mpi, pair.quiet.placement)):
        mine = list(group)
        lines = [
            LoadedLine(
                f"{pair.quiet.collective} {size_text(pair.quiet.size_bytes)}", [_side(pair.quiet), _side(pair.loaded)]
            )
            for pair in mine
        ]
        tables.append((f"{mpi_text(mine[0].quiet)}, {mine[0].quiet.placement}", lines))
    edges = [load.edge for load in mean_loads(run)]
    bars = [Bar(edge.name, 100 * max(edge.up, edge.down), 100 * edge.share) for edge in edges]
    traffic = next((job.traffic for job in run.jobs if job.traffic), "")
    return Loaded(traffic or "", tables, bars)


def _side(row: Row) -> Side:
    verdict = "wrong" if row.wrong else row.ratio.verdict
    ratio = ratio_text(row.ratio).split(" ")[0]
    return Side(time_text(row.alone.median_s), time_text(row.palmette.median_s), ratio, multiple_text(row), verdict)
