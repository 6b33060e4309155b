"""The links of a place where they can be read: bytes over each of them, and background traffic that loads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinkLog:
    """Cumulative bytes over the link of each group, out and in, frame headers included, by CLOCK_MONOTONIC time."""

    time_s: Numbers
    out: Mapping[str, Numbers]
    into: Mapping[str, Numbers]

    def between(self, group: str, begin_s: Numbers, end_s: Numbers) -> tuple[Numbers, Numbers]:
        """Return the bytes that left the group in each of these intervals, and those that entered it.

        NaN for intervals that aren't within the log.
        """
        found = []
        for counted in (self.out[group], self.into[group]):
            at = [np.interp(times, self.time_s, counted, left=np.nan, right=np.nan) for times in (begin_s, end_s)]
            found.append(np.asarray(at[1] - at[0], dtype=np.float64))
        return found[0], found[1]


class Load(Protocol):
    """Background traffic while it runs."""

    def is_alive(self) -> bool:
        """Whether it still runs."""
        ...

    def snapshot(self) -> Any:
        """Return its counters and those of the links."""
        ...

    def load(self, before: Any, after: Any) -> list[Any]:
        """Return the load of each link with a capacity between two snapshots, outermost first."""
        ...


class Links(Protocol):
    """What an emulated cluster knows of its links."""

    def logging(self, period_s: float) -> AbstractContextManager[Callable[[], LinkLog]]:
        """Log the bytes over all links about every `period_s` seconds; yields a function that ends the log."""
        ...

    def background(self, traffic: str) -> AbstractContextManager[Load]:
        """Run traffic, `alltoall[:half|:all][:SIZE]`, for as long as the context lasts. Raises BenchError."""
        ...
