"""Rank agreement of predicted and measured times.

Algorithms of a cell are called in turns, so their samples are paired by round. A pair counts where the medians differ
by over 15 % and the faster one wins significantly more rounds (sign test, 5 %).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median
from typing import Any

from palmette import _core
from palmette.tune.decide import FEWEST_ROUNDS, paired
from palmette.tune.forecast import Forecast
from palmette.tune.results import MPI, TABLE, CandidateTimes, Cell, CellResult

DISTINCT_RATIO = 1.15
"""Measured medians that differ by less aren't ranked."""
WORTH_MEASURING = 4.0
"""Candidates predicted this many times slower than the best are easy to rank, and slow to measure."""


@dataclass(frozen=True)
class Pair:
    """Two algorithms of a cell, the faster one first; seconds. `sure`: significantly faster."""

    mpi: str
    placement: str
    cell: Cell
    faster: str
    slower: str
    faster_s: float
    slower_s: float
    faster_predicted_s: float
    slower_predicted_s: float
    rounds: int
    sure: bool

    @property
    def right(self) -> bool:
        """Whether the faster one was predicted to be faster; predicting a tie is wrong."""
        return self.faster_predicted_s < self.slower_predicted_s

    def to_json(self) -> dict[str, Any]:
        """Return the pair as a JSON object."""
        return asdict(self) | {"right": self.right}


def predicted_of(
    result: CellResult, predicted_s: Callable[[CandidateTimes], float | None]
) -> list[tuple[CandidateTimes, float]]:
    """Return a cell's algorithms with their predicted seconds.

    Algorithms with wrong results or without a prediction are left out, and so are the present choice and the MPI alone,
    which have no prediction.
    """
    return [
        (one, seconds)
        for one in result.candidates
        if one.served and one.time_s and not one.wrong_ranks and one.spec not in (TABLE, MPI)
        and (seconds := predicted_s(one)) is not None
    ]  # fmt: skip


def pairs_of(
    mpi: str, placement: str, result: CellResult, predicted_s: Callable[[CandidateTimes], float | None]
) -> list[Pair]:
    """Return the pairs of a cell's algorithms whose medians, over the rounds that both have, differ by over 15 %."""
    found = []
    for (first, first_s), (second, second_s) in combinations(predicted_of(result, predicted_s), 2):
        mine, other = paired(first, second)
        if not mine:
            continue
        if median(mine) > median(other):
            first, second, first_s, second_s, mine, other = second, first, second_s, first_s, other, mine
        if median(other) <= DISTINCT_RATIO * median(mine):
            continue
        wins = sum(a < b for a, b in zip(mine, other, strict=True))
        sure = len(mine) >= FEWEST_ROUNDS and _core.sign_test(wins, len(mine)) <= _core.SIGNIFICANT
        found.append(
            Pair(mpi, placement, result.cell, first.spec, second.spec, median(mine), median(other), first_s, second_s,
                 len(mine), sure)
        )  # fmt: skip
    return found


def spread(found: Iterable[Forecast], most: int) -> list[Forecast]:
    """Return at most `most` of sorted forecasts that differ: the best of each family, then the best of the others, if
    they are worth measuring.
    """
    ordered = [one for one in found if one.seconds is not None]
    if not ordered:
        return []
    limit = WORTH_MEASURING * (ordered[0].seconds or 0.0)
    worth = [one for one in ordered if (one.seconds or 0.0) <= limit]
    heads = list({one.family: one for one in reversed(worth)}.values())
    taken = sorted(heads, key=worth.index)[:most]
    # From the slow end: equal predictions form no pair.
    taken += [one for one in reversed(worth) if one not in taken][: most - len(taken)]
    return sorted(taken, key=worth.index)


def within(found: Sequence[Forecast], calls: int, seconds: float, fewest: int = 3) -> list[Forecast]:
    """Return the fastest of sorted forecasts whose `calls` calls each fit into `seconds`, `fewest` at least. The
    present choice and the MPI alone, which come with them, count like three of the middle one.
    """
    kept = list(found)
    while len(kept) > fewest:
        times = [one.seconds or 0.0 for one in kept]
        if calls * (sum(times) + 3 * times[len(times) // 2]) <= seconds:
            break
        kept.pop()
    return kept
