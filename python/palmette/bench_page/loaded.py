"""Times without and with background traffic side by side, as values for the page's template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from palmette.bench.evaluate import Row
from palmette.bench.loaded import loaded_tables, pairs_of
from palmette.bench.loads import mean_loads
from palmette.bench.results import Run
from palmette.bench_page.comparisons import markup


@dataclass(frozen=True)
class Bar:
    """A link's utilisation in percent of its capacity, total and by background traffic, in its busier direction."""

    name: str
    all: float
    traffic: float


@dataclass(frozen=True)
class TrafficSection:
    """Everything that the page shows of one run. `traffic` is its name."""

    traffic: str
    tables: list[tuple[str, Markup]]
    bars: list[Bar]


def loaded(run: Run, rows: Sequence[Row]) -> TrafficSection | None:
    """Return what the page shows of a run with background traffic; None without."""
    pairs = pairs_of(rows)
    if not pairs:
        return None
    tables = [(title, markup(table)) for title, table in loaded_tables(pairs)]
    edges = [load.edge for load in mean_loads(run)]
    bars = [Bar(edge.name, 100 * max(edge.up, edge.down), 100 * edge.share) for edge in edges]
    traffic = next((job.traffic for job in run.jobs if job.traffic), "")
    return TrafficSection(traffic or "", tables, bars)
