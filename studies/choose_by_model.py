"""Overhead of a choice by the model, against that of making the chosen plan.

Usage: choose_by_model.py [--json]

On several machines, for every collective and some sizes: the time in which the model chooses among its candidates,
and the time in which a rank makes its program of the chosen algorithm. A run does both once for each kind of call. All
ranks choose alike and make their own programs; a call waits for the slowest: of 16 ranks, from the first to the last,
the slowest counts. All times are medians of 21, taken in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from palmette import _core

MACHINES = {
    "16 ranks": "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core",
    "296 ranks": "2leaf@3GB/s:18+19node@1.5GB/s:8core",
    "1,024 ranks": "4leaf@16GB/s:16node@1GB/s:16core",
    "16,384 ranks": "32leaf@16GB/s:32node@1GB/s:16core",
}
COLLECTIVES = (
    "gather",
    "scatter",
    "allgather",
    "bcast",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "alltoall",
    "barrier",
)
SIZES = (64, 4096, 65536)
REPEATS = 21
RANKS = 16


def medians(*calls: Callable[[], Any]) -> list[float]:
    """Call all in turns and return the median seconds of each."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS):
        for call, taken in zip(calls, times, strict=True):
            begin = time.perf_counter()
            call()
            taken.append(time.perf_counter() - begin)
    return [statistics.median(taken) for taken in times]


def measure(ranks: str, collective: str, size: int) -> dict[str, Any] | None:
    """Time the choice and the longest program; None where the model has no candidate."""
    job = _core.Job(_core.Machine.synthetic(MACHINES[ranks]), "random:1")
    row = {"function": collective, "algorithm": "model", "why": "timed"}
    table = _core.Table.from_json({"format": "palmette-table", "version": 1, "rows": [row]})
    chosen = table.choose(collective, job, 0, size).algorithm
    if chosen is None:
        return None
    asked = sorted({round(n * (job.size - 1) / (RANKS - 1)) for n in range(RANKS)})
    choice_s, *programs_s = medians(
        lambda: table.choose(collective, job, 0, size),
        *(partial(_core.make_program, job, rank, collective, chosen, 0, size) for rank in asked),
    )
    return {
        "ranks": job.size,
        "collective": collective,
        "size_bytes": size,
        "algorithm": chosen,
        "choice_s": choice_s,
        "program_s": max(programs_s),
        "programs_s": dict(zip(asked, programs_s, strict=True)),
    }


def main() -> None:
    """Print a line a machine and the cells in which choosing takes longer than planning."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print every cell as JSON")
    wanted = parser.parse_args()
    cells = [
        cell
        for ranks in MACHINES
        for collective in COLLECTIVES
        for size in (SIZES if collective != "barrier" else (0,))
        if (cell := measure(ranks, collective, size)) is not None
    ]
    if wanted.json:
        print(json.dumps(cells, indent=2))
        return
    print(f"{'ranks':>7} {'cells':>6} {'choice':>10} {'program':>10}   of program: median, worst, cells above 1")
    for ranks in sorted({cell["ranks"] for cell in cells}):
        here = [cell for cell in cells if cell["ranks"] == ranks]
        shares = [cell["choice_s"] / cell["program_s"] for cell in here]
        worst = max(here, key=lambda cell: cell["choice_s"] / cell["program_s"])
        print(
            f"{ranks:>7} {len(here):>6} {_core.format_duration(statistics.median(c['choice_s'] for c in here)):>10}"
            f" {_core.format_duration(statistics.median(c['program_s'] for c in here)):>10}"
            f"   {statistics.median(shares):.2f}, {max(shares):.2f}, {sum(share > 1 for share in shares)}"
            f" ({worst['collective']} {_core.format_size(worst['size_bytes'])}, {worst['algorithm']})"
        )


if __name__ == "__main__":
    main()
