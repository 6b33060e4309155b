"""A tuning from its beginning to its rows: search, confirm, refine, within a budget."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.tune import parts
from palmette.tune.candidates import sizes_unknown
from palmette.tune.decide import Verdict, judge, ranked
from palmette.tune.job import InterruptedJobError, Question, RoundOptions, Watcher, measure
from palmette.tune.plan import CONFIRM_SHARE, SEARCH_SHARE, SitePlan, present_choice
from palmette.tune.results import MPI, TABLE, Cell, CellResult
from palmette.tune.rows import FinalVerdict, Surroundings, rows_of
from palmette.tune.store import TuneJob, TuningStore
from palmette.tune.validity import holds_for, own_range
from palmette.units import plural

MOST_REFINEMENTS = 4
NEAREST_SIZES = 2
"""Sizes that are nearer than this factor are not refined any further."""
_LEAST_S = 2.0
"""Less time than this is not worth another job."""


@dataclass
class Outcome:
    """The result of a tuning. `verdicts`: (site, decided) for each cell. `interrupted`: Ctrl-C ended it early."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[tuple[SitePlan, FinalVerdict]] = field(default_factory=list)
    jobs: list[TuneJob] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def errors(self) -> list[str]:
        """What went wrong in jobs."""
        return [job.error for job in self.jobs if job.error]


class Session:
    """Does the tuning of several sites one after the other."""

    def __init__(
        self,
        plans: Sequence[SitePlan],
        budget_s: float,
        how: RoundOptions,
        store: TuningStore | None,
        watcher: Watcher,
        *,
        unconfirmed: bool = False,
    ) -> None:
        """`unconfirmed`: rows for choices that were better in the search alone, too."""
        self._plans, self._budget_s, self._how, self._store, self._watcher = plans, budget_s, how, store, watcher
        self._unconfirmed = unconfirmed
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Measure and return the outcome; after Ctrl-C the partial one."""
        started = time.monotonic()
        for number, plan in enumerate(self._plans):
            left = self._budget_s - (time.monotonic() - started)
            site = _Site(plan, self._how, self._watcher, self._keep)
            try:
                site.run(left / (len(self._plans) - number))
            except InterruptedJobError as error:
                self._keep(error.job)
                site.take(error.job)
                self.outcome.interrupted = True
            self._take(plan, site)
            if self.outcome.interrupted:
                break
        self.outcome.seconds = time.monotonic() - started
        return self.outcome

    def _keep(self, job: TuneJob) -> None:
        self.outcome.jobs.append(job)
        if self._store is not None:
            self._store.add(job)

    def _take(self, plan: SitePlan, site: _Site) -> None:
        decided = site.decided()
        self.outcome.verdicts += [(plan, one) for one in decided]
        around = Surroundings(
            plan.mpi,
            _core.is_scattered(plan.job),
            plan.oversubscribed,
            datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            f"{plural(plan.job.size, 'rank')}, {plural(own_range(plan.job).min_nodes, 'node')}",
        )
        self.outcome.rows += rows_of(decided, around, unconfirmed=self._unconfirmed)


class _Site:
    """One MPI and placement."""

    def __init__(self, plan: SitePlan, how: RoundOptions, watcher: Watcher, keep: Any) -> None:
        self._plan, self._how, self._watcher, self._keep = plan, how, watcher, keep
        self._searched: dict[Cell, CellResult] = {}
        self._confirmed: dict[Cell, CellResult] = {}

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._job(self._plan.questions, seconds * SEARCH_SHARE, "search")
        again = self._to_confirm()
        self._job(again, min(end - time.monotonic(), seconds * CONFIRM_SHARE), "confirm")
        for _ in range(MOST_REFINEMENTS):
            between = self._between()
            left = end - time.monotonic()
            if not between or left < _LEAST_S:
                break
            self._job(between, left / 2 if left > 4 * _LEAST_S else left, "refine")

    def _job(self, questions: Sequence[Question], seconds: float, step: str) -> None:
        if not questions or seconds < _LEAST_S:
            return
        job = measure(self._plan.site, questions, seconds, self._how, step, self._watcher)
        self._keep(job)
        self.take(job)

    def take(self, job: TuneJob) -> None:
        """Store a job's results; refined sizes need no confirmation: their few candidates were chosen before."""
        for result in job.results:
            (self._searched if job.step == "search" else self._confirmed)[result.cell] = result

    def _to_confirm(self) -> list[Question]:
        """Cells where something is better than the present choice, with the best two, and with combined levels."""
        questions = []
        for cell, result in self._searched.items():
            verdict = judge(result)
            specs = [verdict.spec] if verdict.outcome == "better" else []
            specs += [one for one in self._combination(result) if one not in specs]
            if not specs:
                continue
            runner_up = next((one.spec for one in ranked(result) if one.spec not in (*specs, TABLE, MPI)), None)
            specs += [runner_up] if runner_up is not None else []
            questions.append(self._question(cell, specs))
        return questions

    def _combination(self, result: CellResult) -> list[str]:
        """The combination of the best parts, where an algorithm with parts is among the best, unless measured."""
        order = ranked(result)
        base = next((one.spec for one in order[:3] if parts.has_parts(one.spec)), None)
        if base is None:
            return []
        spec = parts.combined(result, base, parts.part_keys(self._plan.job, base))
        return [spec] if spec is not None else []

    def _question(self, cell: Cell, specs: Sequence[str]) -> Question:
        wanted = [spec for spec in dict.fromkeys(specs) if spec not in (TABLE, MPI)]
        return Question(cell, {spec: self._plan.predict(spec, cell) for spec in wanted})

    def _between(self) -> list[Question]:
        """Sizes in the middle of neighbours with different choices, with those choices as candidates."""
        questions = []
        best = {cell: judge(result).spec for cell, result in self._results().items()}
        cells = sorted(cell for cell in best if cell.size_bytes > 0 and not sizes_unknown(cell.function))
        for low, high in pairwise(cells):
            same = (low.function, low.root) == (high.function, high.root)
            if not same or best[low] == best[high] or high.size_bytes <= NEAREST_SIZES * low.size_bytes:
                continue
            size = isqrt(low.size_bytes * high.size_bytes) // 4 * 4
            if low.size_bytes < size < high.size_bytes:
                questions.append(self._question(Cell(low.function, size, low.root), [best[low], best[high]]))
        return questions

    def _results(self) -> dict[Cell, CellResult]:
        return {**self._searched, **self._confirmed}

    def decided(self) -> list[FinalVerdict]:
        """Return the verdict of each cell, with the jobs for which it holds."""
        found = []
        for cell, result in sorted(self._results().items()):
            verdict = judge(result)
            before = self._present(cell)
            if verdict.spec == before:  # the present choice under its own name
                verdict = Verdict(
                    cell, "present", TABLE, verdict.present_s, verdict.present_s, verdict.mpi_s, verdict.rounds
                )
            rivals = [one.spec for one in ranked(result) if one.spec not in (TABLE, MPI)] + [before]
            holds = holds_for(self._plan.machine, self._plan.job, cell, verdict.spec, rivals)
            found.append(FinalVerdict(verdict, before, holds, cell in self._confirmed))
        return found

    def _present(self, cell: Cell) -> str:
        if cell not in self._plan.present:
            table = self._how.table
            rules = _core.Table.from_file(table) if table is not None else _core.Table.built_in()
            self._plan.present[cell] = present_choice(rules, self._plan, cell)
        return self._plan.present[cell]


def table_of(path: Path | None) -> dict[str, Any]:
    """Return a table as a document: the file's, or the built-in one. Raises _core.Error."""
    table = _core.Table.from_file(path) if path is not None else _core.Table.built_in()
    return table.to_json()
