"""Tables of quiet and loaded results side by side: the cost of background traffic with and without palmette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from palmette.bench.evaluate import Row
from palmette.bench.loads import mean_loads
from palmette.bench.results import LOADED, Run
from palmette.bench.text import mpi_text, multiple_text, ratio_text, short, size_text, time_text


@dataclass(frozen=True)
class Pair:
    """The same cell without and with background traffic."""

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


def loaded_lines(pairs: Sequence[Pair]) -> list[str]:
    """One table for each MPI and placement: times, ratio and bound of both, and the verdicts; 80 columns."""
    lines: list[str] = []
    for _, group in groupby(pairs, key=lambda pair: (pair.quiet.mpi, pair.quiet.placement)):
        mine = list(group)
        lines += ["", f"{mpi_text(mine[0].quiet)}, {mine[0].quiet.placement}: quiet | loaded"]
        head = f"{'alone':>8}{'palmette':>9}{'ratio':>6}{'bound':>8}"
        lines.append(f"{'':<18}{head}{head}")
        lines += [_line(pair) for pair in mine]
    return lines[1:]


def _line(pair: Pair) -> str:
    text = f"{short(pair.quiet.collective):<12} {size_text(pair.quiet.size_bytes).removesuffix(' B'):>4} "
    for row in (pair.quiet, pair.loaded):
        mark = {"faster": "+", "slower": "!", "same": " ", "ambiguous": "?"}[
            "ambiguous" if row.wrong else row.ratio.verdict
        ]
        ratio = ratio_text(row.ratio).split(" ")[0] if not row.wrong else "WRONG"
        text += (
            f"{_time(row.alone.median_s):>8}{_time(row.palmette.median_s):>9}{ratio + mark:>6}{multiple_text(row):>8}"
        )
    return text


def _time(seconds: float) -> str:
    return time_text(seconds).replace(" ", "")


def load_lines(run: Run) -> list[str]:
    """Link utilisation under traffic, one line per edge above the hosts and one for all hosts."""
    loads = mean_loads(run)
    if not loads:
        return []
    traffic = next(job.traffic for job in run.jobs if job.load)
    lines = [
        f"links under {traffic}, in % of capacity, out/in, mean over {loads[0].jobs} jobs",
        f"{'':<16}{'all':>12}{'traffic':>12}",
    ]
    for load in loads:
        edge = load.edge
        if edge.level != "node":
            lines.append(
                f"{edge.name:<16}{_percent(edge.up, edge.down):>12}{_percent(edge.traffic_up, edge.traffic_down):>12}"
            )
    hosts = [load.edge for load in loads if load.edge.level == "node"]
    if hosts:
        all_of_it = _percent(max(edge.up for edge in hosts), max(edge.down for edge in hosts))
        traffic_of_it = _percent(max(edge.traffic_up for edge in hosts), max(edge.traffic_down for edge in hosts))
        lines.append(f"{'fullest host':<16}{all_of_it:>12}{traffic_of_it:>12}")
    return lines


def _percent(up: float, down: float) -> str:
    return f"{100 * up:.0f}/{100 * down:.0f}"
