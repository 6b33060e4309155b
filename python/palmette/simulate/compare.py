"""Palmette against its rivals: all jobs of a comparison, and the table of what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from palmette.bench.text import size_text, time_text
from palmette.simulate import simgrid
from palmette.simulate.parameters import Parameters
from palmette.simulate.run import PALMETTE, Job, Outcome, bound_s, simulate

WITHIN = 1.05
"""A cell is slower where palmette takes more than this of the best rival's time, as in `palmette bench`."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One collective and size on one placement."""

    collective: str
    size_bytes: int
    placement: str
    palmette_s: float | None
    algorithm: str
    rivals_s: dict[str, float]
    """Of those whose result was right."""
    bound_s: float

    @property
    def best_rival(self) -> str | None:
        """The fastest rival, or None where none was right."""
        return min(self.rivals_s, key=lambda name: self.rivals_s[name]) if self.rivals_s else None

    @property
    def ratio(self) -> float | None:
        """Palmette's time over the best rival's."""
        best = self.best_rival
        return self.palmette_s / self.rivals_s[best] if best is not None and self.palmette_s is not None else None

    @property
    def multiple(self) -> float | None:
        """Palmette's time in bounds."""
        return self.palmette_s / self.bound_s if self.bound_s > 0 and self.palmette_s is not None else None

    def to_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "collective": self.collective,
            "size_bytes": self.size_bytes,
            "placement": self.placement,
            "palmette_s": self.palmette_s,
            "algorithm": self.algorithm,
            "rivals_s": self.rivals_s,
            "best_rival": self.best_rival,
            "ratio": self.ratio,
            "bound_s": self.bound_s,
            "multiple_of_bound": self.multiple,
        }


@dataclass(frozen=True, slots=True)
class Trouble:
    """A contender that didn't end well, or was wrong."""

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
class Asked:
    """What is compared."""

    jobs: Sequence[Job]
    collectives: Sequence[str]
    sizes: Sequence[int]
    rivals: Sequence[str]
    root: int = 0
    checks: bool = True
    cpu_limit_s: int = 120
    parallel: int = 1


@dataclass(frozen=True, slots=True)
class Compared:
    """All that came out."""

    cells: list[Cell]
    troubles: list[Trouble]


def compare(smpirun: str, asked: Asked, parameters: Parameters, done: Callable[[str], None]) -> Compared:
    """Run every job; `done` is told of each simulation that ended. Raises SimulateError as `simulate` does."""
    runs = [
        (job, collective, contender)
        for job in asked.jobs
        for collective in asked.collectives
        for contender in (PALMETTE, *asked.rivals)
    ]

    def one(run: tuple[Job, str, str]) -> Outcome:
        job, collective, contender = run
        outcome = simulate(
            smpirun,
            job,
            parameters,
            contender,
            collective,
            _sizes_of(collective, asked.sizes),
            root=asked.root,
            checks=asked.checks,
            cpu_limit_s=asked.cpu_limit_s,
        )
        done(f"{collective}, {job.placement}: {contender}")
        return outcome

    with ThreadPoolExecutor(asked.parallel) as pool:
        try:
            outcomes = list(pool.map(one, runs))
        except BaseException:
            # Ctrl-C, for instance: none goes on until its limit.
            pool.shutdown(wait=False, cancel_futures=True)
            simgrid.stop_all()
            raise
    found = {(job.placement, collective, contender): outcome
             for (job, collective, contender), outcome in zip(runs, outcomes, strict=True)}  # fmt: skip
    cells, troubles = [], []
    for job in asked.jobs:
        for collective in asked.collectives:
            mine = [found[job.placement, collective, contender] for contender in (PALMETTE, *asked.rivals)]
            cells += list(_cells(asked, job, collective, mine))
            troubles += list(_troubles(asked, job, collective, mine))
    return Compared(cells, troubles)


def _sizes_of(collective: str, sizes: Sequence[int]) -> Sequence[int]:
    return (0,) if collective == "barrier" else sizes


def _cells(asked: Asked, job: Job, collective: str, outcomes: Sequence[Outcome]) -> Iterator[Cell]:
    own, *rivals = outcomes
    for size in _sizes_of(collective, asked.sizes):
        times = {rival.contender: time for rival in rivals if (time := rival.time_s(size)) is not None}
        bound = bound_s(job, collective, size, asked.root)
        algorithm = own.algorithms.get(size, "")
        yield Cell(collective, size, job.placement, own.time_s(size), algorithm, times, bound)


def _troubles(asked: Asked, job: Job, collective: str, outcomes: Sequence[Outcome]) -> Iterator[Trouble]:
    for outcome in outcomes:
        wrong = [size for size, ranks in outcome.wrong_ranks.items() if ranks]
        texts = [f"wrong result at {', '.join(map(size_text, wrong))}"] if wrong else []
        if outcome.trouble:
            missing = [size for size in _sizes_of(collective, asked.sizes) if size not in outcome.times_s]
            texts.append(outcome.trouble + (f", from {size_text(missing[0])} on" if missing else ""))
        if texts:
            yield Trouble(collective, job.placement, outcome.contender, "; ".join(texts))


def table_lines(compared: Compared) -> list[str]:
    """The tables, one for each collective and placement; 80 columns."""
    lines: list[str] = []
    last = None
    for cell in compared.cells:
        if (cell.collective, cell.placement) != last:
            last = (cell.collective, cell.placement)
            lines += ["", f"{cell.collective}, {cell.placement}"]
            lines.append(f"{'size':>6} {'palmette':>9} {'best rival':>20} {'ratio':>6} {'bound':>7}  algorithm")
        best = cell.best_rival
        rival = f"{time_text(cell.rivals_s[best])} {best}" if best is not None else "none is right"
        own = time_text(cell.palmette_s) if cell.palmette_s is not None else "WRONG"
        lines.append(
            f"{size_text(cell.size_bytes):>6} {own:>9} {rival:>20} {_number(cell.ratio):>6} "
            f"{_number(cell.multiple) + 'x' if cell.multiple is not None else '-':>7}  {cell.algorithm}"[:80]
        )
    return lines[1:]


def closing_lines(compared: Compared) -> list[str]:
    """What stands below the tables: how to read them, means, troubles."""
    lines = ["ratio: palmette / best rival, in simulated time. bound: in physical bounds."]
    for collective in dict.fromkeys(cell.collective for cell in compared.cells):
        ratios = [cell.ratio for cell in compared.cells if cell.collective == collective and cell.ratio is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slower = sum(ratio > WITHIN for ratio in ratios)
            lines.append(f"{collective}: geometric mean {mean:.2f} of {len(ratios)}, {slower} slower by more than 5 %")
    for trouble in compared.troubles:
        lines.append(f"{trouble.contender} {trouble.collective}, {trouble.placement}: {trouble.text}")
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 99.95 else f"{value:.0f}"
