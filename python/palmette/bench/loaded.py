"""Tables of quiet and loaded results side by side: the cost of background traffic with and without palmette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from palmette.bench.evaluate import Row
from palmette.bench.loads import mean_loads
from palmette.bench.results import LOADED, Run
from palmette.bench.text import mark_of, mpi_text, multiple_text, ratio_text, short, size_text
from palmette.present.table import Column, Table, aligned
from palmette.units import time_text


@dataclass(frozen=True)
class Pair:
    """A cell without and with background traffic."""

    quiet: Row
    loaded: Row


def pairs_of(rows: Sequence[Row]) -> list[Pair]:
    """Return the cells that were measured both ways, in the order of the quiet ones."""
    loaded = {(row.mpi, row.placement, row.collective, row.size_bytes): row for row in rows if row.loaded}
    found = []
    for row in rows:
        other = loaded.get((row.mpi, row.placement + LOADED, row.collective, row.size_bytes))
        if other is not None:
            found.append(Pair(row, other))
    return found


def loaded_tables(pairs: Sequence[Pair]) -> list[tuple[str, Table[Pair]]]:
    """Return one table with its title for each MPI and placement: times, ratio and bound of both, and the verdicts."""
    groups = [list(found) for _, found in groupby(pairs, key=lambda pair: (pair.quiet.mpi, pair.quiet.placement))]
    columns: list[Column[Pair]] = [
        Column("cell", "quiet.collective", show=short, left=True),
        Column("size", "quiet.size_bytes", show=lambda size: size_text(size).removesuffix(" B")),
        *_side("quiet", lambda pair: pair.quiet),
        *_side("loaded", lambda pair: pair.loaded),
    ]
    return [(f"{mpi_text(mine[0].quiet)}, {mine[0].quiet.placement}", Table(columns, mine)) for mine in groups]


def _side(name: str, of: Callable[[Pair], Row]) -> list[Column[Pair]]:
    return [
        Column("alone", "", lambda pair: of(pair).alone.median_s, _time, group=name),
        Column("palmette", "", lambda pair: of(pair).palmette.median_s, _time, group=name),
        Column("ratio", "", lambda pair: _ratio(of(pair)), group=name, mark=lambda pair: mark_of(of(pair)),
               note="+ faster, ! slower, ? ambiguous"),
        Column("bound", "", lambda pair: multiple_text(of(pair)), group=name),
    ]  # fmt: skip


def _ratio(row: Row) -> str:
    if row.wrong:
        return "WRONG?"
    return ratio_text(row.ratio).split(" ")[0] + {"good": "+", "bad": "!", "doubt": "?", "": " "}[mark_of(row)]


def loaded_lines(pairs: Sequence[Pair]) -> list[str]:
    """Return the tables."""
    tables = loaded_tables(pairs)
    return [line for title, table in tables for line in ("", f"{title}: quiet | loaded", *table.lines())][1:]


def _time(seconds: float) -> str:
    return time_text(seconds).replace(" ", "")


def load_lines(run: Run) -> list[str]:
    """Link utilisation under traffic, one line per edge above the hosts and one for all hosts."""
    loads = mean_loads(run)
    if not loads:
        return []
    traffic = next(job.traffic for job in run.jobs if job.load)
    rows = [("", "all", "traffic")]
    edges = [load.edge for load in loads]
    rows += [
        (edge.name, _percent(edge.up, edge.down), _percent(edge.traffic_up, edge.traffic_down))
        for edge in edges if edge.level != "node"
    ]  # fmt: skip
    hosts = [edge for edge in edges if edge.level == "node"]
    if hosts:
        most = [max(getattr(edge, name) for edge in hosts) for name in ("up", "down", "traffic_up", "traffic_down")]
        rows.append(("fullest host", _percent(*most[:2]), _percent(*most[2:])))
    head = f"links under {traffic}, in % of capacity, out/in, mean over {loads[0].jobs} jobs"
    return [head, *aligned(rows)]


def _percent(up: float, down: float) -> str:
    return f"{100 * up:.0f}/{100 * down:.0f}"
