"""Medians, spread, and the verdict on two sets of samples.

The verdict follows the confidence interval of the ratio of medians and a margin of 5 %: faster or slower only when the
whole interval lies outside of the margin, same only when it lies inside, and ambiguous otherwise, which asks for more
samples. The interval is the percentile bootstrap's (Efron 1979), 95 %; pairs are resampled whole, because noise of the
machine affects both calls of a pair, and each job's pairs separately (stratified).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Verdict = Literal["faster", "slower", "same", "ambiguous"]
Times = npt.NDArray[np.float64]

MARGIN = 1.05
CONFIDENCE = 0.95
RESAMPLES = 2000
FEWEST_PAIRS = 5
"""With fewer samples a 95 % interval of a median doesn't exist."""

LATE_S = 2e-3
LATE_SHARE = 0.1
"""Sixteen ranks that wake on two cores at once take up to 1 ms for it; a much later start is noise of the machine.

A late start can only lengthen a sample."""


@dataclass(frozen=True)
class Summary:
    """Median and quartiles of `count` samples, seconds."""

    median_s: float
    low_s: float
    high_s: float
    count: int

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles as a share of the median."""
        return (self.high_s - self.low_s) / 2 / self.median_s if self.median_s > 0 else 0.0


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians with its confidence interval, and the verdict on the numerator."""

    value: float
    low: float
    high: float
    verdict: Verdict


def summarize(samples: Times) -> Summary:
    """Return median and quartiles; raises ValueError without samples."""
    if samples.size == 0:
        raise ValueError("no samples to summarize")
    low, median, high = np.percentile(samples, [25, 50, 75])
    return Summary(float(median), float(low), float(high), int(samples.size))


def judge(low: float, high: float) -> Verdict:
    """Return the verdict for a ratio that lies between `low` and `high`."""
    if high < 1 / MARGIN:
        return "faster"
    if low > MARGIN:
        return "slower"
    return "same" if low >= 1 / MARGIN and high <= MARGIN else "ambiguous"


def in_time(times: Times, late: Times) -> npt.NDArray[np.bool_]:
    """Return which samples started in time on all ranks: at most 2 ms late, or 10 % of the sample if that is more."""
    return late <= np.maximum(LATE_S, LATE_SHARE * times)


def compare_pairs(jobs: Sequence[tuple[Times, Times]]) -> Ratio:
    """Return palmette / alone for pairs of samples: one (alone, palmette) of equal length for each job."""
    alone = np.concatenate([pair[0] for pair in jobs]) if jobs else np.empty(0)
    palmette = np.concatenate([pair[1] for pair in jobs]) if jobs else np.empty(0)
    random = np.random.default_rng(0)
    drawn, first = [], 0
    for times, _ in jobs:
        drawn.append(first + random.integers(0, max(times.size, 1), (RESAMPLES, times.size)))
        first += times.size
    chosen = np.concatenate(drawn, axis=1) if drawn else np.empty((RESAMPLES, 0), dtype=np.int64)
    return _ratio(palmette, alone, palmette[chosen], alone[chosen])


def compare_groups(numerator: Times, denominator: Times) -> Ratio:
    """Return numerator / denominator for samples that were taken independently: two runs."""
    random = np.random.default_rng(0)
    above, below = (
        times[random.integers(0, max(times.size, 1), (RESAMPLES, times.size))] for times in (numerator, denominator)
    )
    return _ratio(numerator, denominator, above, below)


def _ratio(numerator: Times, denominator: Times, above: Times, below: Times) -> Ratio:
    """`above`, `below`: resampled times, a row each."""
    if min(numerator.size, denominator.size) == 0 or below.min() <= 0:
        return Ratio(float("nan"), 0.0, float("inf"), "ambiguous")
    value = float(np.median(numerator) / np.median(denominator))
    ratios = np.median(above, axis=1) / np.median(below, axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = (float(edge) for edge in np.percentile(ratios, [tail, 100 - tail]))
    few = min(numerator.size, denominator.size) < FEWEST_PAIRS
    return Ratio(value, low, high, "ambiguous" if few else judge(low, high))
