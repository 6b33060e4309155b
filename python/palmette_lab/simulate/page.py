"""A comparison on the benchmark's page: the best rival of each cell takes the place of the MPI alone."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palmette.bench import results
from palmette.bench.evaluate import Row
from palmette.bench.text import size_text
from palmette.bench_page.page import write_page
from palmette.measure.machine import describe_machine
from palmette.measure.statistics import Ratio, Summary, judge
from palmette_lab.simulate.compare import Cell, ComparisonResult
from palmette_lab.simulate.job import Job


def write_comparison(path: Path, jobs: Sequence[Job], compared: ComparisonResult, simgrid: str, command: str) -> None:
    """Write the page to `path`. Raises BenchError when that can't be done."""
    # Cells without a right rival, or without palmette's time, are listed with the failures.
    # Cells without data take no time, and can't be drawn on a logarithmic axis.
    rows = [
        _row(cell, simgrid)
        for cell in compared.cells
        if cell.rivals_s and cell.ended and (cell.ratio or cell.palmette_s is None)
    ]
    cluster = jobs[0].cluster
    run = results.Run(
        started=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=describe_machine(),
        place=f"{cluster.name}, simulated",
        settings={
            "collectives": list(dict.fromkeys(cell.collective for cell in compared.cells)),
            "simulated": True,
            "preload": True,
            "clock": "shared",
            "command": command,
        },
        topology=cluster.topology.to_json(),
        jobs=[_job(job, compared, simgrid) for job in jobs],
    )
    write_page(path, run, rows)


def _row(cell: Cell, simgrid: str) -> Row:
    best = cell.best_rival or ""
    ratio = cell.ratio or 1.0
    return Row(
        mpi="SimGrid",
        mpi_version=simgrid,
        placement=cell.placement,
        collective=cell.collective,
        size_bytes=cell.size_bytes,
        alone=_once(cell.rivals_s[best]),
        palmette=_once(cell.palmette_s or cell.rivals_s[best]),
        ratio=Ratio(ratio, ratio, ratio, judge(ratio, ratio)),
        bound=cell.bound if cell.bound.seconds > 0 else None,
        floor_alone_s=None,
        floor_palmette_s=None,
        pairs=1,
        left_out=0,
        wrong=cell.palmette_s is None,
        algorithm=cell.algorithm or None,
        simulated=True,
        rival=best,
    )


def _once(time_s: float) -> Summary:
    return Summary(time_s, time_s, time_s, 1)


def _job(job: Job, compared: ComparisonResult, simgrid: str) -> results.Job:
    """The part of a job that the page shows: placement, palmette's choices and errors."""
    mine = [cell for cell in compared.cells if cell.placement == job.placement]
    troubles = [trouble for trouble in compared.troubles if trouble.placement == job.placement]
    without = [
        f"{cell.collective} {size_text(cell.size_bytes)}: compared with nothing, as no rival is right"
        for cell in mine
        if not cell.rivals_s
    ]
    calls: list[dict[str, Any]] = [
        {
            "function": cell.collective,
            "min_bytes": cell.size_bytes,
            "max_bytes": cell.size_bytes,
            "algorithm": cell.algorithm,
            "reason": "",
            "calls": 1,
        }
        for cell in mine
    ]
    return results.Job(
        mpi="SimGrid",
        mpi_version=simgrid,
        placement=job.placement,
        repeat=0,
        kind="measure",
        hosts=list(job.seats),
        error="; ".join([*(f"{one.contender} {one.collective}: {one.text}" for one in troubles), *without]) or None,
        report={"calls": calls, "fallbacks": [], "notes": []},
    )
