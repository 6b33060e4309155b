"""Interposition overhead: additional latency of calls that palmette passes through to the MPI."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from palmette.bench.results import Job, PassThrough


@dataclass(frozen=True)
class PassCost:
    """Nanoseconds per call. `more_ns`: the additional time of palmette's loop of a pair, the median over the pairs.

    `low_ns` and `high_ns`: its quartiles.
    """

    mpi: str
    function: str
    where: str
    alone_ns: float
    palmette_ns: float
    more_ns: float
    low_ns: float
    high_ns: float

    def to_json(self) -> dict[str, Any]:
        """Return the cost as JSON values."""
        return dict(vars(self))


def pass_costs(jobs: Iterable[Job]) -> list[PassCost]:
    """Return the costs in the order in which they were measured."""
    return [_cost(job.mpi, one) for job in jobs for one in job.passes]


def _cost(mpi: str, one: PassThrough) -> PassCost:
    alone, palmette = np.array(one.alone_ns), np.array(one.palmette_ns)
    low, middle, high = (float(value) for value in np.percentile(palmette - alone, [25, 50, 75]))
    return PassCost(
        mpi, one.function, one.where, float(np.median(alone)), float(np.median(palmette)), middle, low, high
    )
