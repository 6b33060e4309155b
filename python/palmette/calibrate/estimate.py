"""Estimates from repeated measurements, with their confidence intervals.

The error is relative: half of the 95 % confidence interval (Student's t) of the mean of the repetitions, as a share
of it. The value of a repetition is a median of many samples, so that outliers don't distort it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

CONFIDENCE = 0.95
MIN_REPETITIONS = 3
"""Minimum number of repetitions for a meaningful error."""


@dataclass
class Estimate:
    """The repetitions of one value."""

    values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Add the value of one repetition; NaN and infinity (nothing was transferred) are ignored."""
        if math.isfinite(value):
            self.values.append(value)

    @property
    def mean(self) -> float:
        """The estimated value; NaN without repetitions."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def error(self) -> float:
        """The relative error; infinite with fewer than two repetitions."""
        return relative_error(self.values)


def relative_error(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of the mean of `values` as a share of it; infinite where there is none."""
    count = len(values)
    mean = float(np.mean(values)) if count else 0.0
    if count < 2 or mean == 0:
        return math.inf
    from scipy.special import stdtrit  # an optional dependency, and slow to load

    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return abs(quantile * float(np.std(values, ddof=1)) / math.sqrt(count) / mean)


def median(values: Sequence[float]) -> float:
    """Return the median; NaN without values."""
    return float(np.median(values)) if len(values) else math.nan
