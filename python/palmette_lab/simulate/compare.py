"""Palmette against its rivals: all jobs of a comparison, and the results cell by cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from palmette.bench.results import EdgeLoad, Limit
from palmette.bench.text import size_text
from palmette.run.choices import make_recording_folder
from palmette_lab.simulate import simgrid
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.job import Background, Job
from palmette_lab.simulate.kept import SimulationCache
from palmette_lab.simulate.limits import limit_of
from palmette_lab.simulate.parameters import Parameters
from palmette_lab.simulate.run import PALMETTE, Outcome, is_large, simulate
from palmette_lab.simulate.watch import watched

SLOWER_RATIO = 1.05
"""A cell is slower where palmette takes more than this of the best rival's time, as in `palmette bench`."""
WON = 1.5
"""A cell is won where palmette is this many times faster than the best rival,"""
NEAR_BOUND = {"bcast": 1.5, "reduce": 1.5, "allreduce": 1.5, "reduce_scatter": 1.5, "reduce_scatter_block": 1.5}
NEAR_BOUND_OTHERS = 1.15
"""or where its time is at most this multiple of the bound: without in-network support no plan reaches 1 for broadcast
and reductions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One collective and size on one placement."""

    collective: str
    size_bytes: int
    placement: str
    palmette_s: float | None
    algorithm: str
    rivals_s: dict[str, float]
    """Seconds of rivals whose result was right."""
    bound: Limit
    """0 seconds: unknown."""
    checked: bool = True
    """Results were compared byte for byte; large ones are timed only."""
    reason: str = ""
    """Why palmette took the algorithm, or left the call to the MPI."""
    ended: bool = True
    """Palmette finished this cell: without a time its result was wrong."""

    @property
    def missing(self) -> str:
        """The text in place of palmette's missing time."""
        return "wrong" if self.ended else "no time"

    @property
    def best_rival(self) -> str | None:
        """The fastest rival, or None where none was right."""
        return min(self.rivals_s, key=lambda name: self.rivals_s[name]) if self.rivals_s else None

    @property
    def _best_s(self) -> float:
        return min(self.rivals_s.values(), default=0.0)

    @property
    def ratio(self) -> float | None:
        """Palmette's time over the best rival's; None without one, or where that is 0, with nothing to move."""
        return self.palmette_s / self._best_s if self._best_s > 0 and self.palmette_s is not None else None

    @property
    def multiple(self) -> float | None:
        """Palmette's time as a multiple of the bound."""
        return self.palmette_s / self.bound.seconds if self.bound.seconds > 0 and self.palmette_s is not None else None

    @property
    def is_slower(self) -> bool:
        """Slower than the best rival by more than the margin."""
        return bool(self.rivals_s) and self.palmette_s is not None and self.palmette_s > SLOWER_RATIO * self._best_s

    @property
    def is_good(self) -> bool:
        """Much faster than the best rival, or near the bound."""
        if self.palmette_s == 0:
            return True
        near = NEAR_BOUND.get(self.collective, NEAR_BOUND_OTHERS)
        won = self.ratio is not None and self.ratio * WON <= 1
        return won or (self.multiple is not None and self.multiple <= near)

    def to_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "collective": self.collective,
            "size_bytes": self.size_bytes,
            "placement": self.placement,
            "palmette_s": self.palmette_s,
            "algorithm": self.algorithm,
            "reason": self.reason,
            "rivals_s": self.rivals_s,
            "best_rival": self.best_rival,
            "ratio": self.ratio,
            "bound_s": self.bound.seconds,
            "bound_set_by": self.bound.reason if self.bound.seconds > 0 else None,
            "multiple_of_bound": self.multiple,
            "checked": self.checked,
            "ended": self.ended,
            "slower": self.is_slower,
            "good": self.is_good,
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """A contender that failed or whose result was wrong."""

    collective: str
    placement: str
    contender: str
    text: str

    def to_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "collective": self.collective,
            "placement": self.placement,
            "contender": self.contender,
            "trouble": self.text,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation: a contender with some sizes of a collective, one after the other."""

    job: Job
    collective: str
    contender: str
    sizes: Sequence[int]


RECORDED_BYTES = 8 << 20
"""Size of a simulated rank's recording: all of them are on this machine."""


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """A comparison to run."""

    jobs: Sequence[Job]
    collectives: Sequence[str]
    sizes: Sequence[int]
    rivals: Sequence[str]
    sizes_of: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Sizes of collectives that have their own."""
    root: int = 0
    checks: bool = True
    cpu_limit_s: int = 120
    parallel: int = 1
    store: SimulationCache | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """PALMETTE_ variables of palmette's part."""
    recording: tuple[str, Path] | None = None
    """The variable that records palmette's part, and its folder: one for each simulation where there are several."""
    rivals_from: Mapping[str, tuple[int, Sequence[str]]] = field(default_factory=dict)
    """First size, and the rivals from it on, of collectives whose rivals change."""

    def sizes_for(self, collective: str) -> Sequence[int]:
        """Return the sizes at which a collective is called; a barrier has none."""
        return (0,) if collective == "barrier" else self.sizes_of.get(collective, self.sizes)

    def contenders_for(self, collective: str, size: int) -> tuple[str, ...]:
        """Return the contenders, palmette first."""
        first, others = self.rivals_from.get(collective, (0, self.rivals))
        return (PALMETTE, *(others if size >= first else self.rivals))

    def runs(self) -> list[Run]:
        """All simulations."""
        return [
            Run(job, collective, contender, sizes)
            for job in self.jobs
            for collective in self.collectives
            for contender, asked in self._sizes_by_contender(collective).items()
            for sizes in _together(asked, collective, len(job.seats))
        ]

    def _sizes_by_contender(self, collective: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for size in self.sizes_for(collective):
            for contender in self.contenders_for(collective, size):
                found.setdefault(contender, []).append(size)
        return found


def _together(sizes: Sequence[int], collective: str, ranks: int) -> list[list[int]]:
    """Return the sizes of each simulation."""
    small = [size for size in sizes if not is_large(collective, size, ranks)]
    return [*([small] if small else []), *([size] for size in sizes if size not in small)]


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """All results."""

    cells: list[Cell]
    troubles: list[Failure]
    loads: Sequence[EdgeLoad] = ()
    """Load of each link by the background alone, which palmette gets in its topology."""
    notes: Sequence[str] = ()


def _recorded_in(asked: ComparisonRequest, runs: Sequence[Run]) -> dict[int, Path]:
    """Return the folder of each recording, by the run's index. Raises SimulateError where one can't be made."""
    if asked.recording is None:
        return {}
    own = [index for index, run in enumerate(runs) if run.contender == PALMETTE]
    folder = asked.recording[1].absolute()
    found = {}
    for index in own:
        run = runs[index]
        name = "-".join([run.collective, run.job.placement, *(f"{size}" for size in run.sizes)])
        found[index] = folder if len(own) == 1 else folder / re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:200]
        if trouble := make_recording_folder(found[index], parents=True):
            raise SimulateError(f"{found[index]}: {trouble}")
    return found


def compare(
    smpirun: str, asked: ComparisonRequest, parameters: Parameters, done: Callable[[str], None]
) -> ComparisonResult:
    """Run every job; `done` is called with each finished simulation's name. Raises SimulateError as `simulate` does."""
    with simgrid.ended_with():
        asked, notes = _watched(smpirun, asked, parameters)
    notes += _few_rivals(asked)
    runs = asked.runs()
    folders = _recorded_in(asked, runs)

    def one(run: Run) -> Outcome:
        environment = dict(asked.environment)
        recorded = asked.recording is not None and run.contender == PALMETTE
        if asked.recording is not None and recorded:
            environment |= {asked.recording[0]: str(folders[runs.index(run)])}
            environment.setdefault("PALMETTE_TRACE_BYTES", str(RECORDED_BYTES))
        outcome = simulate(
            smpirun,
            run.job,
            parameters,
            run.contender,
            run.collective,
            run.sizes,
            root=asked.root,
            checks=asked.checks,
            cpu_limit_s=asked.cpu_limit_s,
            store=None if recorded else asked.store,
            environment=environment,
        )
        done(f"{run.collective}, {run.job.placement}: {run.contender}")
        return outcome

    with ThreadPoolExecutor(asked.parallel) as pool:
        try:
            with simgrid.ended_with():
                outcomes = list(zip(runs, pool.map(one, runs), strict=True))
        except BaseException:
            # Such as Ctrl-C: stop the others, too.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    cells, troubles = [], []
    for job in asked.jobs:
        for collective in asked.collectives:
            mine = [(run, outcome) for run, outcome in outcomes if run.job is job and run.collective == collective]
            cells += list(_cells(asked, parameters, job, collective, mine))
            troubles += list(_troubles(mine))
    loads = next((job.background.loads for job in asked.jobs if job.background), ())
    return ComparisonResult(cells, troubles, loads, notes)


def _watched(smpirun: str, asked: ComparisonRequest, parameters: Parameters) -> tuple[ComparisonRequest, list[str]]:
    """Return the same with backgrounds of known load, each measured once; a note where that takes too long."""
    found: dict[tuple[int, tuple[str, ...], int], Background] = {}
    jobs: list[Job] = []
    notes: list[str] = []
    for job in asked.jobs:
        if job.background is None:
            jobs.append(job)
            continue
        key = (id(job.cluster), tuple(job.background.hosts), job.background.size_bytes)
        if key not in found:
            found[key] = job.background
            try:
                found[key] = watched(
                    smpirun, job.cluster, job.background, parameters, cpu_limit_s=asked.cpu_limit_s, store=asked.store
                )
            except SimulateError as error:
                notes.append(f"palmette doesn't know the load of links: {error}")
        jobs.append(replace(job, background=found[key]))
    return replace(asked, jobs=jobs), notes


def _few_rivals(asked: ComparisonRequest) -> Iterator[str]:
    for collective, (first, rivals) in asked.rivals_from.items():
        if any(size >= first for size in asked.sizes_for(collective)) and collective in asked.collectives:
            yield (
                f"{collective} of {size_text(first)} and more: the rival asked is {', '.join(rivals)}, as others take"
                " too long to simulate"
            )


def _cells(
    asked: ComparisonRequest, parameters: Parameters, job: Job, collective: str, outcomes: Sequence[tuple[Run, Outcome]]
) -> Iterator[Cell]:
    for size in asked.sizes_for(collective):
        own, *rivals = [outcome for run, outcome in outcomes if size in run.sizes]
        times = {rival.contender: time for rival in rivals if (time := rival.time_s(size)) is not None}
        bound = limit_of(job, parameters, collective, size, asked.root)
        algorithm = own.algorithms.get(size, "")
        checked = size not in own.unchecked
        reason = own.reasons.get(size, "")
        ended = size in own.times_s
        yield Cell(collective, size, job.placement, own.time_s(size), algorithm, times, bound, checked, reason, ended)


def _troubles(outcomes: Sequence[tuple[Run, Outcome]]) -> Iterator[Failure]:
    for run, outcome in outcomes:
        wrong = [size for size, ranks in outcome.wrong_ranks.items() if ranks]
        texts = [f"wrong result at {', '.join(map(size_text, wrong))}"] if wrong else []
        if outcome.trouble:
            missing = [size for size in run.sizes if size not in outcome.times_s]
            where = f", from {size_text(missing[0])} on" if len(missing) > 1 else f", at {size_text(missing[0])}"
            texts.append(outcome.trouble + (where if missing else ""))
        if texts:
            yield Failure(run.collective, run.job.placement, outcome.contender, "; ".join(texts))
