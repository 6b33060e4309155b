"""Folded stacks, which flamegraph.pl, inferno, speedscope and others draw: `main;solve (solve.c:88);MPI_Send 1234`.

A line for each call path and function, over all ranks; weights are microseconds. With samples, those outside of MPI are
lines, too, whose weights are processor time.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import computing_of, sampled_words, without_starts, words


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
    sampled = [stack for _, stacks in computing_of(selection) for stack in stacks]
    if sampled:
        # What starts main isn't told there.
        calls, seconds = seconds, defaultdict(float)
        for stack, time_s in calls.items():
            seconds[";".join(without_starts(stack.split(";")))] += time_s
    for sites, time_s in sampled:
        seconds[";".join(name.replace(";", ":") for name in sampled_words(sites))] += time_s
    with path.open("w", encoding="utf-8") as file:
        for stack, time_s in sorted(seconds.items()):
            file.write(f"{stack} {time_s * 1e6:.0f}\n")
    return counts
