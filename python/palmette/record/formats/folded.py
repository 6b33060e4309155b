"""Folded stacks, which flamegraph.pl, inferno, speedscope and others draw: `main;solve (solve.c:88);MPI_Send 1234`.

A line for each call path and function, over all ranks; weights are microseconds.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import words


def write(path: Path, selection: Selection) -> Counts:
    """Write the sums of a selection. Cost: O(sums); of a window O(calls)."""
    counts = Counts()
    seconds: dict[str, float] = defaultdict(float)
    for index in selection.chosen:
        for one in selection.sums(index):
            if one.is_request:  # overlaps with calls
                continue
            counts.add_sum(one)
            names = [*words(selection, one.path), one.function]
            seconds[";".join(name.replace(";", ":") for name in names)] += one.seconds
    with path.open("w", encoding="utf-8") as file:
        for stack, time_s in sorted(seconds.items()):
            file.write(f"{stack} {time_s * 1e6:.0f}\n")
    return counts
