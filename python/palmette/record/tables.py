"""A recording's sums as the page has them: by function and place, call path, size and duration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palmette import _core
from palmette.record.functions import ENDS
from palmette.record.reading import Job
from palmette.record.sums import place_of, told
from palmette.record.symbols import INTERPRETER, PYTHON, FrameLike, Place, Resolver

MOST_FRAMES = 200
"""Frames of a call path in a flame graph, from the outermost on: recursion may be deep."""
MOST_CLASS = 60
"""Largest class of sizes (power of two): a damaged recording may claim more than there can be."""
LEAST_FRAME = 1e-4
"""Share of the time in MPI: smaller frames of a flame graph are left out, their time stays in the frame above."""


@dataclass
class Sums:
    """All calls of one function from one place, of all ranks."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, one: _core.RecordedSum) -> None:
        self.calls += one.calls
        self.bytes += one.bytes
        self.seconds += one.seconds
        self.longest_s = max(self.longest_s, one.longest_s)


class Names:
    """Indices of names, in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    @property
    def names(self) -> list[str]:
        return list(self.numbers)


class Tables:
    """Sums of all processes, by function and place, call path, size and duration. Cost: O(sums of all processes)."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.functions, self.places = Names(), Names()
        self.rows: dict[tuple[int, int], Sums] = defaultdict(Sums)
        self.ranks: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._sizes: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._durations: dict[tuple[int, int], int] = defaultdict(int)
        self._stacks: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        resolver = Resolver()
        resolver.add(frame for process in job.processes for path in process.recorded.paths for frame in path)
        self.notes = resolver.notes
        """Places that couldn't be resolved."""
        known: dict[tuple[tuple[str, int], ...], tuple[str, tuple[str, ...]]] = {}
        for process in job.processes:
            recorded = process.recorded
            paths = [_resolved(path, resolver, known) for path in recorded.paths]
            tick_exponent = np.log2(max(recorded.tick_s, 1e-12))
            for one in recorded.aggregates:
                if one.is_request:
                    continue
                place, stack = paths[one.path] if one.path < len(paths) else ("unknown", ("unknown",))
                function = self.functions.of(one.function)
                key = (function, self.places.of(place))
                self.rows[key].add(one)
                self.ranks[key].add(recorded.rank)
                if one.function in ENDS:
                    continue
                size = self._sizes[function, size_class(one.bytes, one.calls)]
                size[0] += one.calls
                size[1] += one.seconds
                for index, count in enumerate(one.histogram):
                    if count:
                        self._durations[function, round(tick_exponent + index + 4)] += count
                whole_stack = (*stack[:MOST_FRAMES], one.function)
                weight = self._stacks[whole_stack]
                weight[0] += one.seconds
                weight[1] += one.calls

    def sizes(self) -> list[dict[str, Any]]:
        """Return calls and time by function and size class."""
        return [
            {"function": function, "bytes_from": 2**size if size >= 0 else 0,
             "bytes_to": 2 ** (size + 1) if size >= 0 else 0, "calls": int(calls), "seconds": seconds}
            for (function, size), (calls, seconds) in sorted(self._sizes.items())
        ]  # fmt: skip

    def durations(self) -> list[dict[str, Any]]:
        """Return calls by function and duration, in powers of two."""
        return [
            {"function": function, "from_s": 2.0**exponent, "to_s": 2.0 ** (exponent + 1), "calls": calls}
            for (function, exponent), calls in sorted(self._durations.items())
        ]

    def flame(self) -> dict[str, Any]:
        """Return time in MPI by call path, outermost frame first, as [name, own seconds, calls, children]."""
        names = Names()
        whole = sum(seconds for seconds, _ in self._stacks.values())
        root: list[Any] = [names.of(program_of(self.job)), 0.0, 0, {}]
        inclusive: dict[tuple[str, ...], float] = defaultdict(float)
        for stack, (seconds, _) in self._stacks.items():
            for depth in range(1, len(stack) + 1):
                inclusive[stack[:depth]] += seconds
        for stack, (seconds, calls) in self._stacks.items():
            node = root
            for depth, name in enumerate(stack, 1):
                if inclusive[stack[:depth]] < LEAST_FRAME * whole:
                    break
                node = node[3].setdefault(name, [names.of(name), 0.0, 0, {}])
            node[1] += seconds
            node[2] += int(calls)
        return {"names": names.names, "tree": _listed(root)}


def _listed(node: list[Any]) -> list[Any]:
    return [node[0], node[1], node[2], [_listed(child) for child in node[3].values()]]


def _resolved(
    path: Sequence[_core.RecordedFrame],
    resolver: Resolver,
    known: dict[tuple[tuple[str, int], ...], tuple[str, tuple[str, ...]]],
) -> tuple[str, tuple[str, ...]]:
    """Return the place of a path, and its frames in words, outermost first; those of MPI libraries are left out."""
    key = tuple((frame.module, frame.offset) for frame in path)
    if key in known:
        return known[key]
    stack = [_frame_text(one) for place in reversed(told(path, resolver)) for one in place.frames]
    known[key] = (str(place_of(path, resolver)), tuple(stack) or ("unknown",))
    return known[key]


def _frame_text(place: Place) -> str:
    return f"{place.function} ({Path(place.file).name}:{place.line})" if place.line else place.function


def size_class(total_bytes: int, calls: int) -> int:
    """Return the power of two at or below the mean bytes of calls; -1: none."""
    mean = total_bytes // calls if calls else 0
    return min(mean.bit_length() - 1, MOST_CLASS)


def program_of(job: Job) -> str:
    """Return the program's name: where that is Python, its script's, as far as call paths or samples know it."""
    for process in job.processes:
        recorded = process.recorded
        if not INTERPRETER.match(Path(recorded.executable).name):
            continue
        outermost = [
            *(frame.module.rpartition(":")[2] for path in recorded.paths for frame in path[::-1] if _is_script(frame)),
        ]
        if not outermost and recorded.sampling.samples:
            outermost = [
                one.module for one in recorded.contexts if one.function == "<module>" and one.module[:1] != "<"
            ]
        if outermost:
            return Path(outermost[0]).name
    return next((Path(one.recorded.executable).name for one in job.processes if one.recorded.executable), "program")


def _is_script(frame: FrameLike) -> bool:
    return frame.module.startswith(f"{PYTHON}<module>:")
