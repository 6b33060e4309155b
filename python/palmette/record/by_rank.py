"""A table by rank: computing, off the processor, waiting, in calls, bytes, on the critical path."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from palmette.record.causes import Causes
from palmette.record.findings import Findings
from palmette.record.functions import ENDS
from palmette.record.reading import Job

MIN_PERIODS = 20
"""Periods of sampling that a rank must compute for to be told how much of it was off the processor."""


@dataclass
class RankRow:
    """Seconds of one rank; None: not known."""

    rank: int
    computing_s: float = 0.0
    """Seconds outside of MPI, on a processor or not."""
    off_s: float | None = None
    """Part of computing_s off the processor, by samples of the thread that makes the calls."""
    put_aside_s: float | None = None
    """Seconds between calls in which it waited for a processor, as far as the kernel tells."""
    io_s: float | None = None
    """Seconds between calls in I/O or page faults."""
    asleep_s: float | None = None
    """Seconds between calls blocked by anything else."""
    waiting_s: float | None = None
    """Seconds in calls in which the rank waits for others."""
    in_calls_s: float = 0.0
    """Seconds in calls, without waiting for others where that is known."""
    bytes: int = 0
    """Bytes of all calls, by their arguments."""
    on_path_s: float | None = None
    """Seconds on the critical path."""


def by_rank(job: Job, findings: Findings | None, causes: Causes | None) -> list[RankRow]:
    """Return a row a rank. `findings` None: of a profile. Cost: O(sums of all processes)."""
    rows: dict[int, RankRow] = defaultdict(lambda: RankRow(-1))
    for process in job.processes:
        recorded = process.recorded
        if recorded.rank < 0:
            continue
        row = rows[recorded.rank]
        row.rank = recorded.rank
        ends_s = in_calls_s = 0.0
        for one in recorded.aggregates:
            if one.is_request:
                continue
            if one.function in ENDS:
                ends_s += one.seconds
                continue
            in_calls_s += one.seconds
            row.bytes += one.bytes
        if findings is None:
            ran_s = max(0, recorded.last_real_ns - recorded.begin_real_ns) * 1e-9
            row.in_calls_s += in_calls_s
            row.computing_s += max(0.0, ran_s - ends_s - in_calls_s)
    if findings is not None:
        _of_trace(rows, job, findings, causes)
    return [rows[rank] for rank in sorted(rows)]


def _of_trace(rows: dict[int, RankRow], job: Job, findings: Findings, causes: Causes | None) -> None:
    waits = findings.view.waits
    for rank, useful_s in zip(waits.ranks, waits.useful_s, strict=True):
        rows[rank].rank = rank
        rows[rank].computing_s += useful_s
        rows[rank].waiting_s = 0.0
    for one in waits.rows:
        if waits.kinds[one.function] == "init":
            continue
        row = rows[waits.ranks[one.process]]
        row.waiting_s = (row.waiting_s or 0.0) + one.split.waiting_s
        row.in_calls_s += one.split.seconds - one.split.waiting_s
    for rank, seconds in (causes.on_path_s if causes else {}).items():
        rows[rank].on_path_s = seconds
    period_s = max((process.recorded.sampling.period_s for process in job.processes), default=0.0)
    for rank, cpu_s in (causes.cpu_s if causes else {}).items():
        # Of less, the samples that happened to be taken say little.
        if rows[rank].computing_s >= MIN_PERIODS * period_s:
            rows[rank].off_s = max(0.0, rows[rank].computing_s - cpu_s)
    for rank, off in (causes.off if causes else {}).items():
        rows[rank].put_aside_s, rows[rank].io_s, rows[rank].asleep_s = off.put_aside_s, off.io_s, off.asleep_s


def to_json(rows: list[RankRow]) -> list[dict[str, float | int | None]]:
    """Return the table as a document."""
    return [
        {
            "rank": one.rank, "computing_s": one.computing_s, "off_processor_s": one.off_s,
            "put_aside_s": one.put_aside_s, "io_s": one.io_s, "asleep_s": one.asleep_s, "waiting_s": one.waiting_s,
            "in_calls_s": one.in_calls_s, "bytes": one.bytes, "on_critical_path_s": one.on_path_s,
        }
        for one in rows
    ]  # fmt: skip
