"""Contention model of an edge: k concurrent flows have k times the rate of one, until they saturate the edge.

    aggregate bytes per second = min(k * stream, capacity)

The breakpoint of this piecewise linear model lies between two of the measured flow counts; each is tried, and the one
with the least squares of the logarithms is taken. A breakpoint after the last count means that the flows didn't
saturate the edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palmette.calibrate.estimate import relative_error

SIMPLER_MODEL = 0.7
"""The model with the earliest breakpoint is taken unless the best one leaves less than this share of its squares."""
SATURATED_GAIN = 1.25
"""An edge is saturated when twice the flows gain less than this factor; unsaturated flows would gain 2."""


@dataclass(frozen=True)
class Fit:
    """The rate of an edge. `filled`: saturated, so its capacity; else the highest rate measured. `error`: relative."""

    bytes_per_s: float
    error: float
    filled: bool


def fit(rates: Mapping[int, Sequence[float]]) -> Fit:
    """Return the capacity that fits `rates`: by number of flows, the aggregate bytes per second of each repetition.

    Raises ValueError without any.
    """
    counts = sorted(k for k, values in rates.items() if len(values))
    if not counts:
        raise ValueError("no rates to fit")
    models = sorted(_models(counts, rates))
    squares, full_from = models[0]
    # Prefer the model with fewer points on the rising line.
    for other, start in sorted(models, key=lambda model: model[1]):
        if other * SIMPLER_MODEL <= squares:
            squares, full_from = other, start
            break
    on_edge = [value for k in counts[full_from:] for value in rates[k]]
    if len(counts) > 1 and full_from < len(counts) and _is_full(counts, rates, full_from):
        return Fit(float(np.mean(on_edge)), relative_error(on_edge), filled=True)
    best = max(counts, key=lambda k: float(np.mean(rates[k])))
    return Fit(float(np.mean(rates[best])), relative_error(rates[best]), filled=False)


def _models(counts: Sequence[int], rates: Mapping[int, Sequence[float]]) -> Iterator[tuple[float, int]]:
    """Yield the residual squares of each model, and the index of its first flow count that saturates the edge."""
    for start in range(len(counts) + 1):
        rising = [math.log(value / k) for k in counts[:start] for value in rates[k]]
        level = [math.log(value) for k in counts[start:] for value in rates[k]]
        squares = sum(float(np.sum((np.array(part) - np.mean(part)) ** 2)) for part in (rising, level) if part)
        yield squares, start


def _is_full(counts: Sequence[int], rates: Mapping[int, Sequence[float]], full_from: int) -> bool:
    """Whether the edge is saturated: more flows gained little, or the last ones got far less than they'd move alone."""
    last = counts[-1]
    together = float(np.mean(rates[last]))
    if full_from < len(counts) - 1:
        before = counts[full_from]
        return together < SATURATED_GAIN * float(np.mean(rates[before])) or last < 2 * before
    rising = float(np.mean([value / k for k in counts[:full_from] for value in rates[k]]))
    return together < rising * last / SATURATED_GAIN
