"""Time series of bytes over each link of a lab, sampled from interface counters."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from palmette.measure.links import LinkLog
from palmette.mpi import helpers
from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.namespaces import Keeper
from palmette_lab.lab.network import Network

_LONGEST_S = 7200.0
"""Lifetime of the sampling program, even where its parent dies."""


@contextmanager
def logging_links(network: Network, keeper: Keeper, period_s: float) -> Iterator[Callable[[], LinkLog]]:
    """Log the bytes over all links about every `period_s` seconds; yields a function that ends the log and reads it.

    Raises LabError when the counters can't be read.
    """
    uppers = [edge.upper.interface for edge in network.edges]
    with tempfile.TemporaryDirectory(prefix="palmette-links-") as folder:
        path = Path(folder) / "links"
        words = [f"{_LONGEST_S:g}", f"{period_s * 1e6:.0f}", str(path), *uppers]
        process = helpers.start(keeper.command(None, [str(helper("palmette-lab-links")), *words]))
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
