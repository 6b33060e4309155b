"""An estimate out of repeated measurements, and how sure it is.

The error is relative: half of the 95 % confidence interval (Student's t) of the mean of the repetitions, as a share
of it. A repetition's own figure is a median of many samples, so that a disturbance of the machine counts once and
not by its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95
FEWEST = 3
"""Repetitions before an error is believed."""


@dataclass
class Estimate:
    """The repetitions of one figure."""

    values: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Add the figure of one repetition; what is no number (nothing came through) is left out."""
        if math.isfinite(value):
            self.values.append(value)

    @property
    def mean(self) -> float:
        """The figure; NaN without repetitions."""
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
    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return abs(quantile * float(np.std(values, ddof=1)) / math.sqrt(count) / mean)


def median(values: Sequence[float]) -> float:
    """Return the median; NaN of nothing."""
    return float(np.median(values)) if len(values) else math.nan
