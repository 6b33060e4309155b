"""Rank agreement of predicted and measured times, for algorithms that differ by over 15 %.

    .venv/bin/python studies/rank_against_measured.py --budget-min 10 --store rank.sqlite          # 12 minutes at most
    .venv/bin/python studies/rank_against_measured.py --evaluate --store rank.sqlite [--topology calibrated.json]

The first line measures on a lab of 8 hosts with 2 ranks each: for each MPI, placement, collective and size some
algorithms that differ (the best of each family by the model, up to four times as slow as the best), in turns in one
job, by the program of `palmette tune`, which forces each on a communicator of its own. It wants an otherwise idle
machine. Cells in the store aren't measured again, so that an interrupted run can be resumed.

The verdict counts the pairs of algorithms of a cell whose medians differ by over 15 %, and how many of them were
predicted in this order; pairs whose difference isn't significant (sign test, 5 %) are counted separately. The errors of
the predicted times against the measured medians are reported, too. Predictions are those that were made before
measuring, or with --topology new ones. The exit status is 1 below --target, 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from palmette import _core
from palmette.measure.machine import describe_machine
from palmette.mpi import install as mpi_install
from palmette.tune.errors import TuneError
from palmette.tune.forecast import Predict, forecasts, predictor
from palmette.tune.job import Question, RoundOptions, Watcher, measure
from palmette.tune.places import PlaceSite
from palmette.tune.plan import cells_of, job_on
from palmette.tune.ranking import Pair, pairs_of, predicted_of, spread, within
from palmette.tune.results import CandidateTimes, Cell
from palmette.tune.store import TuneJob, TuningStore, open_tunings
from palmette.units import time_text
from palmette_lab.lab import Lab, LabError
from palmette_lab.place import LabPlace, free_lab_name
from palmette_lab.sets import LAB

STEP = "rank"
FUNCTIONS = "gather,scatter,allgather,bcast,reduce,allreduce,reduce_scatter_block,alltoall"
ROUNDS = RoundOptions(min_rounds=5, max_rounds=8, keep_all=True)
MAX_ERROR = 0.25
"""Upper bound on the error of a prediction that counts as near."""
CALLS = 5 + ROUNDS.max_rounds
"""Calls of each algorithm: checks and warm-up, then in turns."""
JOB_S = 10.0
"""Time of a job in addition to its cells: to start, and for the outstanding calls at its end."""


class Lines(Watcher):
    """A line for each job, on standard error."""

    def job_starts(self, label: str, cells: int, seconds: float) -> None:
        """Say what begins."""
        print(f"{label}: {cells} cells, {seconds:.0f} s", file=sys.stderr, flush=True)

    def job_ends(self, label: str, job: TuneJob) -> None:
        """Say what was done."""
        done = f"{len(job.results)} cells in {job.seconds:.0f} s"
        print(f"{label}: {done}{', ' + job.error if job.error else ''}", file=sys.stderr, flush=True)


def questions_at(site: PlaceSite, cells: Sequence[Cell], seconds: float, most: int) -> list[Question]:
    """Return each cell with algorithms that differ and fit into its share of the time."""
    _, job = job_on(site.topology_path, site.hosts or [])
    share = seconds / max(1, len(cells))
    asked = []
    for cell in cells:
        chosen = within(spread(forecasts(job, cell), most), CALLS, share)
        asked.append(Question(cell, {one.spec: one.seconds for one in chosen}))
    return asked


def measure_all(options: argparse.Namespace, store: TuningStore) -> None:
    """Measure what the store lacks, a job for each MPI and placement, within the budget."""
    cells = cells_of(options.collectives.split(","), [_core.parse_size(one) for one in options.sizes.split(",")], 0)
    cells.sort(key=lambda cell: cell.size_bytes)  # time left by small ones goes to large ones
    there = {(job.mpi, job.placement, result.cell) for job in store.jobs(STEP) for result in job.results}
    places = [(mpi, placement) for mpi in options.mpi.split(",") for placement in options.placement.split(",")]
    left = {place: [cell for cell in cells if (*place, cell) not in there] for place in places}
    left = {place: rest for place, rest in left.items() if rest}
    if not left:
        return
    total = sum(map(len, left.values()))
    seconds = options.budget_min * 60 - JOB_S * len(left)
    with Lab.up(options.lab, name=free_lab_name("rank")) as lab:
        first = True
        for (mpi, placement), rest in left.items():
            site = PlaceSite(LabPlace(lab), mpi_install.find(mpi), placement)
            if first:
                topology = json.loads(site.topology_path.read_text(encoding="utf-8")) if site.topology_path else None
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                store.begin(
                    now, describe_machine(), site.description, topology, {"rank": vars(options) | {"store": ""}}
                )
                first = False
            share = seconds * len(rest) / total
            store.add(measure(site, questions_at(site, rest, share, options.candidates), share, ROUNDS, STEP, Lines()))


def compared_in(store: TuningStore, topology: str | None) -> tuple[list[Pair], list[float]]:
    """Return all pairs that the store holds, and each algorithm's predicted time over its measured median, less 1.

    Predictions are those on `topology` where one is given.
    """
    machine = _core.Machine.from_file(topology) if topology else None
    pairs: list[Pair] = []
    errors: list[float] = []
    for job in store.jobs(STEP):
        predict = predictor(_core.Job.on_hosts(machine, job.hosts)) if machine else None
        for result in job.results:
            predicted = _predicted(predict, result.cell)
            pairs += pairs_of(job.mpi, job.placement, result, predicted)
            errors += [seconds / median(one.time_s) - 1 for one, seconds in predicted_of(result, predicted)]
    return pairs, errors


def near(errors: Sequence[float]) -> int:
    """How many are within 25 %."""
    return sum(abs(error) <= MAX_ERROR for error in errors)


def _predicted(predict: Predict | None, cell: Cell) -> Callable[[CandidateTimes], float | None]:
    return lambda one: predict(one.spec, cell) if predict else one.predicted_s


def lines_of(pairs: Sequence[Pair], errors: Sequence[float]) -> list[str]:
    """Return what was predicted in the wrong order, the farthest apart first, and the verdicts."""
    sure = [pair for pair in pairs if pair.sure]
    wrong = sorted((pair for pair in sure if not pair.right), key=lambda pair: -pair.slower_s / pair.faster_s)
    lines = ["in the wrong order: measured (predicted)"] if wrong else []
    for pair in wrong:
        lines.append(f"{pair.cell.label}, {pair.mpi} {pair.placement}, {pair.slower_s / pair.faster_s:.2f} apart")
        for spec, seconds, predicted_s in (
            (pair.faster, pair.faster_s, pair.faster_predicted_s),
            (pair.slower, pair.slower_s, pair.slower_predicted_s),
        ):
            lines.append(f"  {time_text(seconds):>8} ({time_text(predicted_s)})  {spec}")
    right = sum(pair.right for pair in sure)
    lines.append(f"ranked as measured where over 15 % apart: {right} of {len(sure)} pairs")
    if len(sure) < len(pairs):
        unsure = [pair for pair in pairs if not pair.sure]
        lines.append(
            f"too few rounds to be sure of the measured order: {len(unsure)} pairs more, "
            f"{sum(pair.right for pair in unsure)} of them as predicted"
        )
    if errors:
        lines.append(
            f"predicted times are off by {median(map(abs, errors)):.1%} in the median of {len(errors)}, "
            f"{near(errors)} within {MAX_ERROR:.0%}"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("rank.sqlite"))
    parser.add_argument("--evaluate", action="store_true", help="measure nothing, judge what the store holds")
    parser.add_argument("--collectives", default=FUNCTIONS)
    parser.add_argument("--sizes", default="16K,64K")
    parser.add_argument("--mpi", default="mpich,openmpi,impi")
    parser.add_argument("--placement", default="random:1")
    parser.add_argument("--lab", default=LAB)
    parser.add_argument("--candidates", type=int, default=6, help="algorithms of a cell, at most (6)")
    parser.add_argument("--budget-min", type=float, default=10.0, help="minutes for all cells (10)")
    parser.add_argument(
        "--topology", help="a topology.json to predict with, instead of the predictions that are stored"
    )
    parser.add_argument("--target", type=float, default=0.9, help="share of pairs that is good enough (0.9)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        with open_tunings(options.store, create=not options.evaluate) as store:
            if not options.evaluate:
                measure_all(options, store)
            pairs, errors = compared_in(store, options.topology)
    except (TuneError, LabError, mpi_install.MpiNotFoundError, _core.Error) as error:
        print(f"rank_against_measured: {error}", file=sys.stderr)
        return 2
    sure = [pair for pair in pairs if pair.sure]
    if not sure:
        print(f"rank_against_measured: {options.store} holds no two algorithms of one cell that are surely over 15 % "
              "apart; run it without --evaluate", file=sys.stderr)  # fmt: skip
        return 2
    right = sum(pair.right for pair in sure)
    if options.json:
        document = {"pairs": len(sure), "right": right, "share": right / len(sure), "target": options.target,
                    "unsure": len(pairs) - len(sure), "list": [pair.to_json() for pair in pairs],
                    "predicted": len(errors), "within_25_percent": near(errors),
                    "median_error": median(map(abs, errors)) if errors else None}  # fmt: skip
        print(json.dumps(document, indent=2))
    else:
        print("\n".join(lines_of(pairs, errors)))
    return 0 if right >= options.target * len(sure) else 1


if __name__ == "__main__":
    sys.exit(main())
