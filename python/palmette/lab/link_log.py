"""Time series of bytes over each link of a lab, sampled from interface counters."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from palmette.lab import helpers
from palmette.lab.errors import LabError
from palmette.lab.namespaces import Keeper
from palmette.lab.network import Network

Numbers = npt.NDArray[np.float64]

_LONGEST_S = 7200.0
"""Lifetime of the sampling program, even where its parent dies."""


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


@contextmanager
def logging_links(network: Network, keeper: Keeper, period_s: float) -> Iterator[Callable[[], LinkLog]]:
    """Log the bytes over all links about every `period_s` seconds; yields a function that ends the log and reads it.

    Raises LabError when the counters can't be read.
    """
    uppers = [edge.upper.interface for edge in network.edges]
    with tempfile.TemporaryDirectory(prefix="palmette-links-") as folder:
        path = Path(folder) / "links"
        words = [f"{_LONGEST_S:g}", f"{period_s * 1e6:.0f}", str(path), *uppers]
        process = helpers.start(keeper.command(None, [str(helpers.helper("palmette-lab-links")), *words]))
        try:
            if (error := helpers.wait_until_ready(process)) is not None:
                raise LabError(f"the counters of the lab's links can't be sampled: {error}")

            def read() -> LinkLog:
                helpers.end(process)
                return _read(path, [edge.child for edge in network.edges])

            yield read
        finally:
            helpers.end(process)


def _read(path: Path, groups: list[str]) -> LinkLog:
    width = 1 + 2 * len(groups)
    data = path.read_bytes()
    words = np.frombuffer(data[: len(data) // (8 * width) * 8 * width], dtype=np.uint64).reshape(-1, width)
    time_s = np.ascontiguousarray(words[:, 0]).view(np.float64)
    # Bytes that the upper end of a link receives have left the group below it.
    out = {group: words[:, 1 + 2 * i].astype(np.float64) for i, group in enumerate(groups)}
    into = {group: words[:, 2 + 2 * i].astype(np.float64) for i, group in enumerate(groups)}
    return LinkLog(time_s, out, into)
