"""Planning a benchmark run: the cells left after --resume, the expected duration, and what fits the time budget."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette import _core
from palmette.bench.budget import Keeper, cheapest_seconds, duration_text, expected_seconds, fit
from palmette.bench.jobs import BenchJob, CellName, plan_jobs, without_done
from palmette.bench.limits import bounded_as
from palmette.bench.loads import mean_loads, with_loads
from palmette.bench.results import Run
from palmette.bench.settings import Settings
from palmette.bench.store import Store
from palmette.bench.text import size_text
from palmette.cli.common import CliError, errors, write_file
from palmette.measure.machine import describe_machine
from palmette.measure.places import Place

_ESTIMATE_FROM_S = 60.0
"""Shorter runs start without an estimate."""

_MAY_DIFFER = (
    "budget_s",
    "seconds",
    "min_pairs",
    "max_pairs",
    "timeout_s",
    "mpis",
    "placements",
    "sizes",
    "collectives",
    "rivals",
    "variants",
)
"""Settings that may change when a run is resumed: they select cells or durations, and don't change what a cell is."""


@dataclass(frozen=True)
class RunPlan:
    """The jobs to do, the run that they extend (None: a new one), and what enforces the budget (None: no budget).

    Without jobs the run has all cells already.
    """

    jobs: list[BenchJob]
    before: Run | None
    keeper: Keeper | None


def plan_run(settings: Settings, place: Place, store: Store, *, resume: bool) -> RunPlan:
    """Return what to do; says how long it takes on standard error.

    Raises CliError when `resume` finds no run, and what plan_jobs raises.
    """
    jobs = plan_jobs(settings, place.mpi)
    before = _run_to_resume(settings, place, store) if resume else None
    if before is not None:
        total = _count(jobs, settings)
        jobs = without_done(jobs, settings, before)
        left = _count(jobs, settings)
        _say(f"resuming run {before.id}: {total - left} of {total} cells are done")
        if not jobs:
            _say(f"run {before.id} has all cells already; nothing is left to measure")
            return RunPlan([], before, None)
    bounds = _Bounds(settings, place)
    if settings.budget_s is None:
        seconds = expected_seconds(jobs, settings, bounds)
        if seconds >= _ESTIMATE_FROM_S:
            _say(f"{len(jobs)} jobs, {duration_text(seconds)}")
        return RunPlan(jobs, before, None)
    fitted = fit(jobs, settings, bounds, settings.budget_s)
    if not any(job.cells for job in fitted.jobs) and settings.collectives:
        raise CliError(
            f"--budget {settings.budget_s:g}s is too short for any cell of {len(jobs)} jobs, of which the cheapest"
            f" needs {duration_text(cheapest_seconds(jobs, settings, bounds))}; give more, or fewer placements and MPIs"
        )
    limit = next((job.limit_s for job in fitted.jobs if job.limit_s is not None), None)
    each = f", up to {limit:g} s a cell" if limit is not None else ""
    _say(f"{len(fitted.jobs)} jobs, {duration_text(fitted.expected_s)}{each}")
    if fitted.left_out:
        _say(
            f"over the budget, skipped: {_cell_words([cell for _, cell in fitted.left_out])};"
            " --resume with more measures them"
        )
    return RunPlan(fitted.jobs, before, Keeper(settings, bounds, settings.budget_s, time.monotonic))


def report_left_out(plan: RunPlan) -> None:
    """Report the cells that were skipped during the run to stay within the budget."""
    if plan.keeper is not None and plan.keeper.left_out:
        words = _cell_words([cell for _, cell in plan.keeper.left_out])
        _say(f"skipped in some jobs to stay within the budget: {words}; --resume with more measures them")


def _count(jobs: Sequence[BenchJob], settings: Settings) -> int:
    """How many cells the jobs measure."""
    measuring = (job for job in jobs if job.kind != "pass_through")
    return sum(len(settings.cells if job.cells is None else job.cells) for job in measuring)


def _cell_words(cells: Sequence[CellName]) -> str:
    """`alltoall 256K, 1M; allgather 1M`."""
    sizes: dict[str, list[int]] = {}
    for name, size in Counter(cells):
        sizes.setdefault(name, []).append(size)
    return "; ".join(f"{name} {', '.join(size_text(size) for size in sorted(found))}" for name, found in sizes.items())


def _say(text: str) -> None:
    errors.print(f"palmette bench: {text}", markup=False)


class _Bounds:
    """Physical bounds of cells, each computed once."""

    def __init__(self, settings: Settings, place: Place) -> None:
        self._settings = settings
        self._machine = _core.Machine.from_file(place.topology_path) if place.topology_path is not None else None
        self._place = place
        self._jobs: dict[str, _core.Job] = {}
        self._known: dict[tuple[str, CellName], float] = {}

    def __call__(self, job: BenchJob, cell: CellName) -> float:
        if self._machine is None:
            return 0.0
        key = (job.placement, cell)
        if key not in self._known:
            if job.placement not in self._jobs:
                hosts = self._place.place(job.placement, self._settings.ppn, self._settings.ranks)
                self._jobs[job.placement] = _core.Job.on_hosts(self._machine, hosts)
            name, size = cell
            bound = _core.bound(self._jobs[job.placement], bounded_as(name), size, self._settings.root)
            self._known[key] = bound.seconds
        return self._known[key]


def _run_to_resume(settings: Settings, place: Place, store: Store) -> Run:
    """The last run if it was made by the same code with settings that ask for the same kind of cells."""
    commit = describe_machine()["commit"]
    for run in store.latest():
        mine = {**settings.to_json(), "place": place.options}
        same = {name for name in mine if name not in _MAY_DIFFER}
        if (
            all(_plain(run.settings.get(name)) == _plain(mine[name]) for name in same)
            and run.place == place.description
        ):
            if run.machine.get("commit") != commit:
                raise CliError(
                    f"run {run.id} was made by commit {run.machine.get('commit')}, this is {commit}:"
                    " cells of both can't be mixed; "
                    "measure anew without --resume"
                )
            return run
    raise CliError(f"{store.path} holds no run of these settings to resume; leave --resume out to begin one")


def _plain(value: object) -> object:
    """Return a value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def write_load(path: Path, run: Run) -> None:
    """Write the run's topology with the traffic's load of each link. Raises CliError."""
    loads = mean_loads(run)
    if run.topology is None or not loads:
        raise CliError("no loaded job came to its end, so no load was measured; see the failures above", status=1)
    loaded = with_loads(run.topology, (load.edge for load in loads))
    write_file(path, json.dumps(loaded, indent=1) + "\n", "--write-load")
