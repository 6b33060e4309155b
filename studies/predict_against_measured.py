"""Accuracy of predicted times against the measured ones of stored runs of `palmette bench`.

    palmette bench gather --sizes 16K,64K,256K --env PALMETTE_FORCE=gather=linear   # and once for each other algorithm
    python studies/predict_against_measured.py runs.sqlite --min-size 16K

Every cell that palmette served is predicted on the job's own hosts with the topology that the run stored (or that of
--topology, a calibrated one). Reported are the median of the relative errors, and how often, of two algorithms of the
same cell whose measured times differ by over 15 %, the faster one is predicted to be faster. The exit status is 1 where
the median is over --target, 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.bench.evaluate import evaluate
from palmette.bench.results import Run
from palmette.bench.store import open_store
from palmette.measure.errors import BenchError

DISTINCT_RATIO = 1.15
"""Measured times that differ by less aren't ranked."""


@dataclass(frozen=True)
class Cell:
    """One measured cell and its prediction; seconds."""

    run: int
    mpi: str
    placement: str
    collective: str
    size_bytes: int
    algorithm: str
    measured_s: float
    predicted_s: float
    estimated_s: float | None
    bound_s: float

    @property
    def error(self) -> float:
        """Relative to the measured time, with its sign."""
        return self.predicted_s / self.measured_s - 1

    @property
    def place(self) -> tuple[str, str, str, int]:
        """What cells of different algorithms have in common."""
        return self.mpi, self.placement, self.collective, self.size_bytes


def cells_of(run: Run, topology: str | None, min_size: int) -> Iterable[Cell]:
    """Predict the cells of a run that palmette served with messages, at `min_size` bytes and more."""
    if topology is None and run.topology is None:
        return
    machine = _core.Machine.from_file(topology) if topology else _core.Machine.from_json(run.topology or {})
    jobs = {(job.mpi, job.placement): job for job in run.jobs if job.kind == "measure" and job.hosts}
    for row in evaluate(run):
        job = jobs.get((row.mpi, row.placement))
        if job is None or row.algorithm is None or row.wrong or row.size_bytes < min_size:
            continue
        if row.collective not in _core.collectives() or row.algorithm == "mpi":
            continue  # v forms have lengths of their own, nonblocking calls overlap a computation
        cell = next(one for one in job.cells if (one.collective, one.size_bytes) == (row.collective, row.size_bytes))
        made = _core.Job.on_hosts(machine, job.hosts)
        costs = _core.Costs.of(made)
        details: dict[str, Any] = {
            "root": cell.root,
            "block_bytes": row.size_bytes,
            "shared_memory": True,
            "element_bytes": 8 if _core.is_reduction(row.collective) else 1,
        }
        if _core.refusal(made, row.collective, row.algorithm, **details) is not None:
            continue
        yield Cell(
            run=run.id or 0,
            mpi=row.mpi,
            placement=row.placement,
            collective=row.collective,
            size_bytes=row.size_bytes,
            algorithm=row.algorithm,
            measured_s=row.palmette.median_s,
            predicted_s=_core.predict_algorithm(made, row.collective, row.algorithm, costs, **details).seconds,
            estimated_s=_core.estimate(made, row.collective, row.algorithm, costs, **details),
            bound_s=_core.bound(made, row.collective, row.size_bytes, cell.root).seconds,
        )


@dataclass(frozen=True)
class Ranking:
    """Pairs of algorithms of the same cell that are over 15 % apart, and how many the prediction ranks as measured."""

    pairs: int
    right: int


def ranking(cells: Sequence[Cell]) -> Ranking:
    """Compare the algorithms of each place with each other."""
    pairs = right = 0
    places: dict[tuple[str, str, str, int], list[Cell]] = {}
    for cell in cells:
        places.setdefault(cell.place, []).append(cell)
    for found in places.values():
        for a, b in combinations(found, 2):
            if a.algorithm == b.algorithm:
                continue
            low, high = sorted((a.measured_s, b.measured_s))
            if high > DISTINCT_RATIO * low:
                pairs += 1
                right += (a.measured_s < b.measured_s) == (a.predicted_s < b.predicted_s)
    return Ranking(pairs, right)


def median_error(cells: Sequence[Cell]) -> float:
    """Median over the cells of the error without its sign."""
    return statistics.median(abs(cell.error) for cell in cells)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("store", type=Path, help="a runs.sqlite")
    parser.add_argument(
        "--run", action="append", help="number of a run (repeatable); default: all that the store holds"
    )
    parser.add_argument("--topology", help="a topology.json to predict with, instead of the stored one")
    parser.add_argument("--min-size", default="16K", help="smallest block (16K)")
    parser.add_argument("--target", type=float, default=0.25, help="median relative error that is good enough (0.25)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    try:
        with open_store(given.store, create=False) as store:
            last = store.load("last").id or 0
            names = given.run or [str(number) for number in range(1, last + 1)]
            runs = [store.load(name) for name in names]
        cells = [cell for run in runs for cell in cells_of(run, given.topology, _core.parse_size(given.min_size))]
    except (BenchError, _core.Error) as error:
        print(f"predict_against_measured: {error}", file=sys.stderr)
        return 2
    if not cells:
        print(f"predict_against_measured: {given.store} holds no cell that palmette served at "
              f"{given.min_size} or more with a topology; run palmette bench on the lab", file=sys.stderr)  # fmt: skip
        return 2
    error, ranks = median_error(cells), ranking(cells)
    if given.json:
        print(
            json.dumps({"median_error": error, "ranking": asdict(ranks), "cells": [asdict(c) for c in cells]}, indent=2)
        )
    else:
        print("\n".join(lines_of(cells, error, ranks)))
    return 0 if error <= given.target else 1


def lines_of(cells: Sequence[Cell], error: float, ranks: Ranking) -> list[str]:
    """Return a table, worst cells first, and the verdict."""
    lines = ["collective       size mpi      placement  measured  predicted   error  algorithm"]
    for cell in sorted(cells, key=lambda one: -abs(one.error)):
        lines.append(
            f"{cell.collective:<14}{_core.format_size(cell.size_bytes):>7} {cell.mpi:<8} {cell.placement:<9}"
            f"{_core.format_duration(cell.measured_s):>10}{_core.format_duration(cell.predicted_s):>11}"
            f"{100 * cell.error:>+7.0f}%  {cell.algorithm}"
        )
    within = sum(abs(cell.error) <= 0.25 for cell in cells)
    lines += ["", f"median error {100 * error:.0f} % over {len(cells)} cells; {within} of them within 25 %"]
    if ranks.pairs:
        lines.append(f"ranked as measured where over 15 % apart: {ranks.right} of {ranks.pairs} pairs of algorithms")
    else:
        lines.append("no two algorithms of one cell differ by over 15 %: nothing to rank")
    return lines


if __name__ == "__main__":
    sys.exit(main())
