"""How flows share an edge: k flows at once move k times what one moves, until the edge is full.

    bytes per second of all together = min(k * stream, capacity)

The two lines meet between two of the numbers of flows that were tried; each meeting point is tried, and the one with
the least squares of the logarithms is taken. A meeting point behind the last number means that the flows didn't fill the edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palmette.calibrate.estimate import relative_error

NEARER = 0.7
"""A model with one more line must leave less than this share of the squares to be believed."""
ADDS_LITTLE = 1.25
"""An edge is full when twice the flows bring less than this times as much; with k flows of the stream's rate they'd
bring twice."""


@dataclass(frozen=True)
class Fit:
    """What an edge carries. `filled`: a capacity; else the most that was seen. `error` is relative, 95 %."""

    bytes_per_s: float
    error: float
    filled: bool


def fit(rates: Mapping[int, Sequence[float]]) -> Fit:
    """Return the capacity that fits `rates`, by number of flows the repetitions' bytes per second of all flows together.

    Raises ValueError without any.
    """
    counts = sorted(k for k, values in rates.items() if len(values))
    if not counts:
        raise ValueError("no rates to fit")
    models = sorted(_models(counts, rates))
    squares, full_from = models[0]
    # Fewer points on the rising line say the same with fewer figures.
    for other, start in sorted(models, key=lambda model: model[1]):
        if other * NEARER <= squares:
            squares, full_from = other, start
            break
    on_edge = [value for k in counts[full_from:] for value in rates[k]]
    if len(counts) > 1 and full_from < len(counts) and _is_full(counts, rates, full_from):
        return Fit(float(np.mean(on_edge)), relative_error(on_edge), filled=True)
    best = max(counts, key=lambda k: float(np.mean(rates[k])))
    return Fit(float(np.mean(rates[best])), relative_error(rates[best]), filled=False)


def _models(counts: Sequence[int], rates: Mapping[int, Sequence[float]]) -> Iterator[tuple[float, int]]:
    """Yield the squares that each model leaves, and the index of the first number of flows that fills the edge in it."""
    for start in range(len(counts) + 1):
        rising = [math.log(value / k) for k in counts[:start] for value in rates[k]]
        level = [math.log(value) for k in counts[start:] for value in rates[k]]
        squares = sum(float(np.sum((np.array(part) - np.mean(part)) ** 2)) for part in (rising, level) if part)
        yield squares, start


def _is_full(counts: Sequence[int], rates: Mapping[int, Sequence[float]], full_from: int) -> bool:
    """Whether the edge is seen to be full: more flows brought little more, or the last ones far less than they'd move alone."""
    last = counts[-1]
    together = float(np.mean(rates[last]))
    if full_from < len(counts) - 1:
        before = counts[full_from]
        return together < ADDS_LITTLE * float(np.mean(rates[before])) or last < 2 * before
    rising = float(np.mean([value / k for k in counts[:full_from] for value in rates[k]]))
    return together < rising * last / ADDS_LITTLE
