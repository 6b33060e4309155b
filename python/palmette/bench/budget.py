"""Time budget of a benchmark: estimating its duration, and fitting cells into a given time.

A cell's run time isn't known in advance, but its physical bound is: an MPI by itself takes a few times the bound, and a
call on a lab at least some milliseconds. The budget is shared evenly by all cells. Cells that are expensive even with
the minimum number of pairs get that minimum; the most expensive are left out where even that exceeds the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from palmette.bench.jobs import BenchJob, CellName
from palmette.bench.settings import Settings

MULTIPLE = 3.5
"""Estimated time of a call as a multiple of its bound, mean of the MPI alone and palmette."""

_NEAR_BOUND = ("gather", "gatherv", "scatter", "scatterv", "alltoall", "alltoallv", "alltoallw", "ialltoall")
_NEAR_BOUND_MULTIPLE = 1.7
"""MULTIPLE for the collectives of _NEAR_BOUND, in which an MPI by itself is close to the bound."""

SHORTEST_CALL_S = 8e-3
"""Shortest time of a call on a lab, with the agreement on its start."""

SHORTEST_LOADED_CALL_S = 0.15
"""Shortest time of a call under traffic, where the agreement takes longer and starts are scheduled further ahead."""

FEWEST_CALLS = 12
"""Calls of a cell at its time limit: two checks a variant before and after, a warm-up pair, three counted pairs."""

JOB_S = 4.0
"""Overhead of starting and ending a job."""

_PLAIN_CALLS = 4
"""Checks before and after, in addition to the time that a cell is given."""

Bounds = Callable[[BenchJob, CellName], float]
"""The physical bound of a cell in seconds, 0 where nothing is known."""


@dataclass(frozen=True)
class JobBudget:
    """The jobs with their cells and limits, their estimated time, and the cells that were left out."""

    jobs: list[BenchJob]
    expected_s: float
    left_out: list[tuple[BenchJob, CellName]]


def expected_seconds(jobs: Sequence[BenchJob], settings: Settings, bounds: Bounds) -> float:
    """Return the estimated duration of jobs without a budget."""
    total = 0.0
    for job in jobs:
        share = 0.2 if job.kind == "floor" else 1.0
        total += JOB_S
        for cell in _cells(job, settings):
            call = _call_s(job, cell, bounds)
            calls = _PLAIN_CALLS + 2 * settings.warmup
            total += calls * call + max(share * settings.seconds, 2 * settings.min_pairs * call)
    return total


def cheapest_seconds(jobs: Sequence[BenchJob], settings: Settings, bounds: Bounds) -> float:
    """Return the estimated time of the cheapest collective and size in all its jobs, with the minimum of pairs."""
    needs: dict[CellName, float] = {}
    for job in jobs:
        for cell in _cells(job, settings):
            needs[cell] = needs.get(cell, 0.0) + FEWEST_CALLS * _call_s(job, cell, bounds)
    return JOB_S * len(jobs) + min(needs.values(), default=0.0)


def fit(jobs: Sequence[BenchJob], settings: Settings, bounds: Bounds, budget_s: float) -> JobBudget:
    """Return jobs that take about `budget_s` seconds; the most expensive cells are left out where even their minimum
    number of pairs doesn't fit.
    """
    least: dict[tuple[int, CellName], float] = {}
    for number, job in enumerate(jobs):
        for cell in _cells(job, settings):
            least[number, cell] = FEWEST_CALLS * _call_s(job, cell, bounds)
    # A cell is kept or dropped in all jobs at once, as MPIs are compared with each other.
    cost: dict[CellName, float] = {}
    for (_, cell), seconds in least.items():
        cost[cell] = cost.get(cell, 0.0) + seconds
    dearest = sorted(cost, key=lambda cell: (-cost[cell], -cell[1]))
    dropped: set[CellName] = set()
    available_s = budget_s - JOB_S * len(jobs)
    for cell in dearest:
        if sum(seconds for (_, name), seconds in least.items() if name not in dropped) <= available_s:
            break
        dropped.add(cell)
    kept = {key: seconds for key, seconds in least.items() if key[1] not in dropped}
    limit = _limit(list(kept.values()), available_s, settings.seconds + settings.seconds / 4)
    fitted = []
    for number, job in enumerate(jobs):
        cells = tuple(cell for cell in _cells(job, settings) if (number, cell) in kept)
        if cells or job.kind == "pass_through":
            fitted.append(replace(job, cells=cells or None, limit_s=limit))
    expected = JOB_S * len(fitted) + sum(max(seconds, limit) for seconds in kept.values())
    left_out = [(jobs[number], cell) for number, cell in least if cell in dropped]
    return JobBudget(fitted, expected, left_out)


class Keeper:
    """Keeps a running benchmark within its budget: refits the remaining jobs before each job, at the measured pace."""

    def __init__(self, settings: Settings, bounds: Bounds, budget_s: float, now: Callable[[], float]) -> None:
        self._settings = settings
        self._bounds = bounds
        self._budget_s = budget_s
        self._now = now
        self._began_s = now()
        self._expected_s = 0.0
        self.left_out: list[tuple[BenchJob, CellName]] = []
        """Cells that were dropped during the run."""

    def __call__(self, left: Sequence[BenchJob]) -> list[BenchJob]:
        """Return the remaining jobs, the next one first, with new limits."""
        spent = self._now() - self._began_s
        # A single short job is too small a sample of the pace.
        pace = min(4.0, max(0.5, spent / self._expected_s)) if self._expected_s > JOB_S else 1.0
        fitted = fit(
            left, self._settings, lambda job, cell: pace * self._bounds(job, cell), max(0.0, self._budget_s - spent)
        )
        if not fitted.jobs:
            self.left_out += [(job, cell) for job in left for cell in _cells(job, self._settings)]
            return []
        self.left_out += fitted.left_out
        first = fitted.jobs[0]
        limit = first.limit_s or 0.0
        self._expected_s += JOB_S + sum(
            max(FEWEST_CALLS * _call_s(first, cell, self._bounds), limit) for cell in _cells(first, self._settings)
        )
        return fitted.jobs


def _limit(least: Sequence[float], available_s: float, most: float) -> float:
    """The time limit of a cell with which all together use the available time; a cell takes its minimum in any case."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        if sum(max(seconds, middle) for seconds in least) > available_s:
            high = middle
        else:
            low = middle
    return max(round(low, 3), 0.05)


def _cells(job: BenchJob, settings: Settings) -> Sequence[CellName]:
    if job.kind == "pass_through":
        return ()
    return settings.cells if job.cells is None else job.cells


def _call_s(job: BenchJob, cell: CellName, bounds: Bounds) -> float:
    # Background traffic is assumed to take half of each link.
    factor = (_NEAR_BOUND_MULTIPLE if cell[0] in _NEAR_BOUND else MULTIPLE) * (2 if job.loaded else 1)
    return max(SHORTEST_LOADED_CALL_S if job.loaded else SHORTEST_CALL_S, factor * bounds(job, cell))


def duration_text(seconds: float) -> str:
    """`about 40 s`, `about 12 min`, `about 2.5 h`."""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
