"""Change over time without a trace: what was added to the sums of calls and regions, from moment to moment.

Each process takes a snapshot of its sums each second, as far as calls end in it, and where the program says that
something else begins (MPI_Pcontrol(2)). What was added between two of them is spread evenly over the time in between.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette.record.functions import ENDS
from palmette.record.reading import Job, Process

MOST_BINS = 240
"""Bins of a document, of equal length."""
MOST_FUNCTIONS = 3
"""Functions that are told of each bin."""


def document(job: Job) -> dict[str, Any] | None:
    """Return a job's time in equal parts, over all ranks, and the borders that the program has said; None where there
    are fewer than two snapshots in each process. Cost: O(parts of all snapshots).
    """
    ranks = [one for one in job.processes if one.recorded.rank >= 0 and one.recorded.snapshots]
    if not ranks or max(len(one.recorded.snapshots) for one in ranks) < 2:
        return None
    begin_ns = job.begin_ns
    end_s = max(_since_s(one, one.recorded.snapshots[-1].real_ns, begin_ns) for one in ranks)
    steps = sorted(end_s / len(one.recorded.snapshots) for one in ranks)
    bins = int(np.clip(round(end_s / max(1e-9, steps[len(steps) // 2])), 2, MOST_BINS))
    edges = np.linspace(0.0, end_s, bins + 1)
    here = np.zeros(bins)
    sums = {name: np.zeros(bins) for name in ("calls", "bytes", "mpi_s")}
    functions: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(bins))
    for process in ranks:
        before_s = _since_s(process, process.recorded.begin_real_ns, begin_ns)
        here += _shares(before_s, end := _since_s(process, process.recorded.snapshots[-1].real_ns, begin_ns), edges) * (
            end - before_s
        )
        for one in process.recorded.snapshots:
            at_s = _since_s(process, one.real_ns, begin_ns)
            shares = _shares(before_s, at_s, edges)
            for part in one.parts:
                if not part.function or part.function in ENDS:
                    continue
                sums["calls"] += part.calls * shares
                sums["bytes"] += part.bytes * shares
                sums["mpi_s"] += part.seconds * shares
                functions[part.function] += part.seconds * shares
            before_s = at_s
    first = ranks[0]
    borders = [_since_s(first, one.real_ns, begin_ns) for one in first.recorded.snapshots if one.is_border]
    return {
        "rows": [_row(at, edges, here, sums, functions) for at in range(bins)],
        "borders_s": borders, "phases": _phases(ranks, borders, begin_ns),
    }  # fmt: skip


def _since_s(process: Process, real_ns: int, begin_ns: int) -> float:
    """Return seconds since the job's first call, by the clock of rank 0's node."""
    return max(0.0, (real_ns + process.clock_at(real_ns)[0] - begin_ns) * 1e-9)


def _shares(from_s: float, to_s: float, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return which share of a span lies in each bin."""
    if to_s <= from_s:
        return np.zeros(len(edges) - 1)
    clipped = np.clip(edges, from_s, to_s)
    return np.asarray(np.diff(clipped) / (to_s - from_s))


def _row(
    at: int, edges: NDArray[np.float64], here: NDArray[np.float64], sums: dict[str, NDArray[np.float64]],
    functions: dict[str, NDArray[np.float64]],
) -> dict[str, Any]:  # fmt: skip
    most = sorted((name for name in functions if functions[name][at] > 0), key=lambda name: -functions[name][at])
    mpi_s = float(sums["mpi_s"][at])
    return {
        "from_s": float(edges[at]), "to_s": float(edges[at + 1]), "calls": round(float(sums["calls"][at])),
        "bytes": round(float(sums["bytes"][at])), "mpi_s": mpi_s,
        "mpi_share": min(1.0, mpi_s / float(here[at])) if here[at] > 0 else 0.0,
        "functions": [{"function": name, "seconds": float(functions[name][at])} for name in most[:MOST_FUNCTIONS]],
    }  # fmt: skip


def _phases(ranks: list[Process], borders: list[float], begin_ns: int) -> list[dict[str, Any]]:
    """Return sums between the program's own borders, exactly: by each rank's own; none where ranks have said others."""
    if not borders or any(sum(one.is_border for one in rank.recorded.snapshots) != len(borders) for rank in ranks):
        return []
    found: list[dict[str, Any]] = [
        {"calls": 0, "bytes": 0, "mpi_s": 0.0, "ran_s": 0.0, "regions": {}} for _ in range(len(borders) + 1)
    ]
    for process in ranks:
        regions, phase = process.recorded.regions, 0
        before_s = _since_s(process, process.recorded.begin_real_ns, begin_ns)
        for one in process.recorded.snapshots:
            to, at_s = found[phase], _since_s(process, one.real_ns, begin_ns)
            to["ran_s"] += at_s - before_s
            before_s = at_s
            for part in one.parts:
                if part.region:
                    name = regions[part.region].name or "function"
                    to["regions"][name] = to["regions"].get(name, 0) + part.calls
                elif part.function and part.function not in ENDS:
                    to["calls"] += part.calls
                    to["bytes"] += part.bytes
                    to["mpi_s"] += part.seconds
            phase += one.is_border
    return found
