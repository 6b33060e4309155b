"""Planning of a tuning: a site's cells with the candidates to measure, and the expected duration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import cpu_count
from pathlib import Path

from palmette import _core
from palmette.tune import parts
from palmette.tune.candidates import Levels, grids, sizes_unknown
from palmette.tune.errors import TuneError
from palmette.tune.forecast import Forecast, Predict, chosen, forecasts, predictor
from palmette.tune.job import Question, mpi_name, probe
from palmette.tune.places import Site
from palmette.tune.results import Cell
from palmette.tune.specs import read
from palmette.tune.transports import transports

SEARCH_SHARE, CONFIRM_SHARE = 0.55, 0.2
"""Shares of a site's time for search and confirmation; the rest is for refinement between sizes."""
FEWEST_CANDIDATES = 3
_START_S = 3.0
"""Startup time of a job."""
_OVERHEAD_S = {True: 0.8e-3, False: 5e-3}
"""Overhead per call of agreeing on a common start, with a core for each rank or without."""
_CALLS_BEFORE, _MPI_CALLS_BEFORE = 5, 9
_ROUNDS = ((5, 1.0), (5, 0.5), (10, 0.25))
"""(rounds, share of the candidates that are still in them) up to where most cells are decided."""
_LAST_ROUNDS, _LAST_CANDIDATES = 40, 3


@dataclass
class SitePlan:
    """A site with its job and the cells to measure.

    `machine`: None where there is no topology. `present`: what the table chooses for a cell, as text. `tried`:
    candidates that pass the preconditions, before selection by the model. `expected_s`: of all jobs, at most the
    budget.
    """

    site: Site
    mpi: str
    machine: _core.Machine | None
    job: _core.Job
    oversubscribed: bool | None
    predict: Predict
    questions: list[Question] = field(default_factory=list)
    forecasts: dict[Cell, list[Forecast]] = field(default_factory=dict)
    present: dict[Cell, str] = field(default_factory=dict)
    expected_s: float = 0.0

    @property
    def tried(self) -> int:
        """Candidates of all cells that the job can take."""
        return sum(map(len, self.forecasts.values()))

    @property
    def measured(self) -> int:
        """Candidates of all cells that are to be measured, the present choice and the MPI alone among them."""
        return sum(len(question.candidates) for question in self.questions)


def cells_of(functions: Sequence[str], sizes: Sequence[int], root: int) -> list[Cell]:
    """Return the cells: each function at each size, a barrier once; sums at multiples of their elements."""
    found = []
    for function in functions:
        if function == "barrier":
            found.append(Cell(function, 0, 0))
            continue
        unit = 4 if _core.is_reduction(_core.collective_of(function)) else 1
        at = root if _core.is_rooted(_core.collective_of(function)) else 0
        found += [Cell(function, size, at) for size in dict.fromkeys(max(unit, size // unit * unit) for size in sizes)]
    return found


def plan_site(site: Site, cells: Sequence[Cell], table: Path | None, seconds: float, most: int) -> SitePlan:
    """Return what to measure at a site in `seconds`, with at most `most` candidates a cell.

    A site with unknown ranks is probed. Raises TuneError, _core.Error, RunError, LabError.
    """
    hosts, mpi = site.hosts, site.mpi
    if hosts is None:
        output = probe(site)
        hosts, mpi = output.hosts, mpi_name(output.mpi_version)
    machine, job = job_on(site.topology_path, hosts)
    if job.size < 2:
        raise TuneError(f"{site.description}: one rank alone has nothing to tune; start two or more")
    too_high = next((cell for cell in cells if cell.root >= job.size), None)
    if too_high is not None:
        raise TuneError(f"root {too_high.root} is outside of a job of {job.size} ranks; take 0 to {job.size - 1}")
    fullest = max(Counter(hosts).values())
    oversubscribed = fullest > (cpu_count() or 1) if site.hosts is not None else None
    plan = SitePlan(site, mpi, machine, job, oversubscribed, predictor(job))
    rules = _core.Table.from_file(table) if table is not None else _core.Table.built_in()
    share = seconds * SEARCH_SHARE / max(1, len(cells))
    overhead = _OVERHEAD_S[site.spins]
    for cell in cells:
        plan.present[cell] = present_choice(rules, plan, cell)
        found = _others(forecasts(job, cell, plan.predict), plan, cell)
        plan.forecasts[cell] = found
        count = most
        question = _question(plan, cell, found, count)
        while count > FEWEST_CANDIDATES and expected_s(question, overhead) > share:
            count -= 1
            question = _question(plan, cell, found, count)
        plan.questions.append(question)
        plan.expected_s += min(share, expected_s(question, overhead))
    plan.expected_s = min(seconds, 3 * _START_S + plan.expected_s / SEARCH_SHARE)
    return plan


def _others(found: Sequence[Forecast], plan: SitePlan, cell: Cell) -> list[Forecast]:
    """Leave out duplicates of the present choice: keys in another order, or an explicit default.

    The same algorithm with the same predicted time to the last digit counts as the same plan.
    """
    present = plan.present[cell]
    family, seconds = present.partition(":")[0], plan.predict(present, cell) if present != "mpi" else None
    return [
        one
        for one in found
        if one.spec != present and not (one.family == family and seconds is not None and one.seconds == seconds)
    ]


def _question(plan: SitePlan, cell: Cell, found: Sequence[Forecast], most: int) -> Question:
    """Take the best by the model; for a tree tuned level by level those that differ in one level; for algorithms with
    shared memory its other transports.
    """
    job = plan.job
    specs = [one.spec for one in chosen(found, most)]
    base = next((spec for spec in specs if parts.is_exact(job, spec)), None)
    if base is not None:
        name = read(base)[0]
        grid = grids(_core.collective_of(cell.function), Levels.of(job), cell.size_bytes)[name]
        rays = parts.star(base, parts.part_keys(job, base), grid)
        others = [spec for spec in specs if read(spec)[0] != name]
        if len(rays) + len(others) <= most:
            specs = others + rays
    predicted = {one.spec: one.seconds for one in found}
    specs = [spec for spec in specs if spec in predicted]
    ways = _transports(plan, cell, specs)[: max(0, most - 1)]
    specs = [*specs[: max(1, most - len(ways))], *ways]
    return Question(cell, {spec: predicted[spec] if spec in predicted else plan.predict(spec, cell) for spec in specs})


def _transports(plan: SitePlan, cell: Cell, specs: Sequence[str]) -> list[str]:
    """The intra-node transports to try for the present choice, and for the best candidate that shares memory."""
    found = transports(plan.job, cell, plan.present[cell])
    found += next((ways for spec in specs if (ways := transports(plan.job, cell, spec))), [])
    return [spec for spec in dict.fromkeys(found) if spec not in specs]


def job_on(topology: Path | None, hosts: Sequence[str]) -> tuple[_core.Machine | None, _core.Job]:
    """Return the machine, where a topology is known, and the job of ranks on `hosts`. Raises _core.Error."""
    if topology is not None:
        machine = _core.Machine.from_file(topology)
        return machine, _core.Job.on_hosts(machine, list(hosts))
    return None, _core.Job.from_groups(["node"], [[list(dict.fromkeys(hosts)).index(host)] for host in hosts])


def present_choice(table: _core.Table, plan: SitePlan, cell: Cell) -> str:
    """Return what the table takes for a cell of a site: a specification, or mpi."""
    return present_choice_on(table, plan.job, cell, plan.mpi, oversubscribed=bool(plan.oversubscribed))


def present_choice_on(table: _core.Table, job: _core.Job, cell: Cell, mpi: str, *, oversubscribed: bool) -> str:
    """Return what the table takes for a cell on a job: a specification, or mpi."""
    size = -1 if sizes_unknown(cell.function) else cell.size_bytes
    choice = table.choose(cell.function, job, cell.root, size, mpi=mpi, oversubscribed=oversubscribed, compared=True)
    return choice.algorithm or "mpi"


def expected_s(question: Question, overhead_s: float) -> float:
    """Return how long a cell should take if nothing ends it before: from the predicted times, those that slow down
    the most dropped early.

    Candidates without a prediction, the present choice and the MPI alone count like the median of the others, the MPI
    twice.
    """
    known = sorted(seconds for seconds in question.predicted_s.values() if seconds is not None)
    typical = known[len(known) // 2] if known else 1e-3
    calls = [seconds if seconds is not None else typical for seconds in question.predicted_s.values()] + [typical]
    calls = sorted([*calls, 2 * typical])
    total = sum(one + overhead_s for one in calls) * _CALLS_BEFORE + 2 * typical * (_MPI_CALLS_BEFORE - _CALLS_BEFORE)
    for rounds, share in _ROUNDS:
        left = calls[: max(_LAST_CANDIDATES, round(len(calls) * share))]
        total += rounds * sum(one + overhead_s for one in left)
    return total + _LAST_ROUNDS * sum(one + overhead_s for one in calls[:_LAST_CANDIDATES])
