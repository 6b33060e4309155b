"""Judging candidates by their samples.

Candidates of a cell are called in turns, so their samples pair up by round. One beats another when its median is
lower by more than 5 % and the sign test (Arbuthnott 1710; Conover, Practical Nonparametric Statistics, 1999, 3.4)
says that it wins by that margin in more rounds than chance would give, at 5 %. Rounds in which either started late
don't count.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from palmette import _core
from palmette.measure.statistics import MARGIN, in_time
from palmette.tune.results import MPI, TABLE, CandidateTimes, Cell, CellResult

Outcome = Literal["better", "present", "unsure"]
"""better: another one than the present choice, by the margin. present: nothing is better. unsure: too few
samples to say."""
FEWEST_ROUNDS = _core.FEWEST_PAIRS
"""The fewest rounds in which winning all of them is significant."""


@dataclass(frozen=True)
class Verdict:
    """What came out for a cell: `spec` is what to take (`table`: the present choice)."""

    cell: Cell
    outcome: Outcome
    spec: str
    time_s: float
    present_s: float
    mpi_s: float | None
    rounds: int


def paired(first: CandidateTimes, second: CandidateTimes) -> tuple[list[float], list[float]]:
    """Return the times of both in the rounds that both have and started in time."""
    count = min(len(first.time_s), len(second.time_s))
    good = np.ones(count, dtype=np.bool_)
    for one in (first, second):
        good &= in_time(np.array(one.time_s[:count]), np.array(one.late_s[:count]))
    chosen = np.flatnonzero(good)
    return [first.time_s[i] for i in chosen], [second.time_s[i] for i in chosen]


def beats(first: CandidateTimes, second: CandidateTimes, margin: float = MARGIN) -> bool:
    """Whether `first` is faster than `second` by more than the margin, and not by chance."""
    mine, other = paired(first, second)
    if len(mine) < FEWEST_ROUNDS or median(mine) * margin >= median(other):
        return False
    wins = sum(a * margin < b for a, b in zip(mine, other, strict=True))
    return _core.sign_test(wins, len(mine)) <= _core.SIGNIFICANT


def typical_s(one: CandidateTimes) -> float:
    """Return the median of the calls that started in time, of all where none did."""
    times = np.array(one.time_s)
    good = times[in_time(times, np.array(one.late_s))]
    return float(np.median(good if good.size else times))


def ranked(result: CellResult) -> list[CandidateTimes]:
    """Return the candidates that count, fastest first: kept to the end, right, and served as they were asked for."""
    usable = [one for one in result.candidates if one.kept and one.time_s and not one.wrong_ranks]
    usable = [one for one in usable if one.served or one.spec in (MPI, TABLE)]
    return sorted(usable, key=typical_s)


def judge(result: CellResult) -> Verdict:
    """Return what is best in a cell.

    The present choice stays unless another one beats it; where several do, the fastest. The MPI alone is one of them.
    """
    present, mpi = result.of(TABLE), result.of(MPI)
    order = ranked(result)
    mpi_s = typical_s(mpi) if mpi is not None else None
    if present is None or not order:
        return Verdict(result.cell, "unsure", TABLE, 0.0, 0.0, mpi_s, 0)
    rounds = len(present.time_s)
    present_s = typical_s(present)
    best = next((one for one in order if one.spec != TABLE and beats(one, present)), None)
    if best is not None:
        return Verdict(result.cell, "better", best.spec, typical_s(best), present_s, mpi_s, rounds)
    outcome: Outcome = "present" if rounds >= FEWEST_ROUNDS else "unsure"
    return Verdict(result.cell, outcome, TABLE, present_s, present_s, mpi_s, rounds)
