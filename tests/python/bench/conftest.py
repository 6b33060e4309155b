"""Fixtures of the benchmark's tests: runs made of invented samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.bench.limits import limits
from palmette.bench.results import Cell, Job, Run
from palmette.bench.settings import Settings

MACHINE = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def make_cell(
    collective: str,
    size: int,
    alone_s: float,
    palmette_s: float,
    *,
    noise: float = 0.02,
    pairs: int = 20,
    seed: int = 0,
) -> Cell:
    random = np.random.default_rng(seed)
    alone, palmette = (time * np.exp(noise * random.standard_normal(pairs)) for time in (alone_s, palmette_s))
    return Cell(
        collective=collective,
        size_bytes=size,
        root=0,
        wrong_alone=0,
        wrong_palmette=0,
        window_s=2e-3,
        palmette_first=[bool(first) for first in random.integers(0, 2, pairs)],
        alone_s=[float(time) for time in alone],
        palmette_s=[float(time) for time in palmette],
        alone_late_s=[1e-5] * pairs,
        palmette_late_s=[1e-5] * pairs,
    )


def make_report(cells: Sequence[Cell]) -> dict[str, Any]:
    calls = [
        {
            "function": cell.collective,
            "min_bytes": cell.size_bytes,
            "max_bytes": cell.size_bytes,
            "algorithm": "by_topology:node=linear,leaf=k_nomial.4" if cell.size_bytes < 16384 else "linear",
            "reason": "ranks are scattered",
            "calls": len(cell.alone_s),
        }
        for cell in cells
        if cell.size_bytes > 64
    ]
    fallbacks = [{"function": "gather", "reason": "left to the MPI", "detail": "small & <odd>", "calls": 20}]
    return {"format": "palmette-report", "version": 1, "calls": calls, "fallbacks": fallbacks, "notes": []}


def make_run(
    factor: Callable[[str, str, str, int], float] = lambda *_: 0.5,
    *,
    mpis: tuple[str, ...] = ("mpich",),
    placements: tuple[str, ...] = ("block", "random:1"),
    collectives: tuple[str, ...] = ("gather", "allgather"),
    sizes: tuple[int, ...] = (64, 16384, 262144),
    noise: float = 0.02,
    pairs: int = 20,
) -> Run:
    """Return a run on the lab's machine; `factor(mpi, placement, collective, size)` is palmette's time over the
    MPI's."""
    settings = Settings(collectives=collectives, sizes=sizes, placements=placements, mpis=mpis)
    topology = {
        "format": "palmette-topology",
        "version": 1,
        "name": "lab-test",
        "machine": _core.Machine.synthetic(MACHINE).to_json(),
    }
    run = Run(
        started="2026-11-21T08:00:00Z",
        machine={
            "name": "machine",
            "cpu": "A processor <with> signs & more",
            "cores": 2,
            "memory_bytes": 1 << 34,
            "kernel": "Linux 6.1",
            "system": "Debian 12",
            "palmette": "0.1.0",
            "commit": "0123456789ab",
        },
        place=f"lab {MACHINE}",
        settings={**settings.to_json(), "place": ["--lab", MACHINE]},
        topology=topology,
    )
    machine = _core.Machine.from_json(topology)
    for placement in placements:
        for mpi in mpis:
            hosts = list(_core.Job(machine, placement).hosts)
            job = Job(mpi, "1.2", placement, 0, "measure", hosts, seconds=1.0, palmette_ranks=len(hosts))
            for number, (collective, size) in enumerate((c, s) for c in collectives for s in sizes):
                alone = 1e-3 + size * (3.3e-6 if collective == "gather" else 9e-6)
                made = alone * factor(mpi, placement, collective, size)
                job.cells.append(make_cell(collective, size, alone, made, noise=noise, pairs=pairs, seed=number))
            for cell, limit in zip(job.cells, limits(topology, hosts, job.cells), strict=True):
                cell.bound = limit
            job.report = make_report(job.cells)
            run.jobs.append(job)
    return run


@pytest.fixture
def made_cell() -> Callable[..., Cell]:
    """Return a cell whose times scatter log-normally around two medians."""
    return make_cell


@pytest.fixture
def made_run() -> Callable[..., Run]:
    """Return `make_run`."""
    return make_run


@pytest.fixture
def samples_file(tmp_path: Path) -> Path:
    """Return a file as collbench writes it: one cell of three pairs, and the end."""
    job = {"event": "job", "format": "collbench", "version": 1, "ranks": 2, "palmette_on_ranks": 0}
    cell = {
        "event": "cell", "collective": "gather", "size_bytes": 64, "root": 0, "pairs": 3, "window_s": 0.002,
        "wrong_ranks": {"alone": 0, "palmette": 0}, "palmette_first": [0, 1, 0],
        "alone_s": [1e-3, 2e-3, 3e-3], "palmette_s": [1e-3, 1e-3, 1e-3],
        "alone_late_s": [0, 0, 0], "palmette_late_s": [0, 0, 0],
    }  # fmt: skip
    lines = [{**job, "mpi": "MPICH", "hosts": ["a", "b"]}, cell, {"event": "end", "wrong": False}]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return path
