"""Comparing rank orders where only a matrix of distances between places is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from palmette.map.matrix import Matrix
from palmette.map.methods import DistanceOrder, bytes_times_distance
from palmette.map.pattern import Pattern
from palmette.map.text import ratio_text


@dataclass(frozen=True)
class DistanceCosts:
    """The longest distance that a message goes and the sum of bytes times distance, before and after."""

    slowest: tuple[float, float]
    weighted: tuple[float, float]


def compare(distances: Matrix, pattern: Pattern, mapped: DistanceOrder) -> DistanceCosts:
    """Compare the order found with the ranks as they are."""
    both = np.maximum(distances, distances.T)
    slowest, weighted = [], []
    for order in (list(range(len(distances))), mapped.order):
        places = np.array(order)
        slowest.append(float(both[places[pattern.source], places[pattern.target]].max(initial=0.0)))
        weighted.append(bytes_times_distance(distances, pattern, order))
    return DistanceCosts((slowest[0], slowest[1]), (weighted[0], weighted[1]))


def line_of(pattern: Pattern, mapped: DistanceOrder, compared: DistanceCosts) -> str:
    """Return the sentence that follows the order."""
    before, after = compared.slowest
    text = f"{pattern.name} by {mapped.method}: slowest edge {before:.4g} as placed, {after:.4g} now"
    if 0 < after < before:
        text += f", {before / after:.3g} times faster"
    before, now = compared.weighted
    text += f"; bytes x distance {before:.4g} as placed, {now:.4g} now, {ratio_text(before, now)}"
    if mapped.bound is not None:
        gap = after / mapped.bound - 1 if mapped.bound > 0 else 0.0
        text += "; no order is better" if gap <= 0 else f"; at most {gap:.1%} above the best there can be"
    return text


def json_of(pattern: Pattern, mapped: DistanceOrder, compared: DistanceCosts) -> dict[str, Any]:
    """Return all of it as a dictionary."""
    return {
        "pattern": pattern.name,
        "ranks": pattern.ranks,
        "bytes": float(pattern.bytes.sum()),
        "exchanged_bytes": pattern.exchanged,
        "method": mapped.method,
        "order": mapped.order,
        "slowest_before": compared.slowest[0],
        "slowest_after": compared.slowest[1],
        "slowest_bound": mapped.bound,
        "weighted_before": compared.weighted[0],
        "weighted_after": compared.weighted[1],
    }
