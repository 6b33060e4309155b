"""speedscope's own JSON (https://www.speedscope.app/file-format-schema.json): a profile for each thread of a rank.

Of a trace it has the calls over time, each with its call path; of a profile the sums, as samples of different weight.
Where stacks were sampled, a second profile of each rank has what it computes outside of MPI.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from palmette.record.contexts import Site
from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import computing_of
from palmette.record.formats.threads import Step, threads_of
from palmette.record.symbols import Place

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class _Frames:
    """The frames of all profiles, each once."""

    def __init__(self, selection: Selection) -> None:
        self.all: list[dict[str, Any]] = []
        self._selection = selection
        self._numbers: dict[Place, int] = {}
        self._stacks: dict[tuple[int, str], list[int]] = {}

    def stack(self, path: int, function: str) -> list[int]:
        """Return the frames of a call, the outermost first, MPI's function last."""
        key = path, function
        if key not in self._stacks:
            stack = self._selection.stacks[path] or (Place("unknown"),)
            self._stacks[key] = [self._number(place) for place in (*stack, Place(function))]
        return self._stacks[key]

    def of(self, places: Iterable[Place]) -> list[int]:
        """Return the frames of a stack."""
        return [self._number(place) for place in places]

    def _number(self, place: Place) -> int:
        if place not in self._numbers:
            self._numbers[place] = len(self.all)
            frame: dict[str, Any] = {"name": place.function}
            if place.file:
                frame["file"] = place.file
            if place.line:
                frame["line"] = place.line
            self.all.append(frame)
        return self._numbers[place]


def write(path: Path, selection: Selection) -> Counts:
    """Write the calls of a selection, or its sums where there are no calls.

    Cost: O(calls x length of their paths), or O(sums); calls of one process are in memory.
    """
    counts = Counts()
    frames = _Frames(selection)
    profiles = _evented if selection.records_calls else _sampled
    with path.open("w", encoding="utf-8") as file:
        file.write(
            f'{{"$schema": "{SCHEMA}", "exporter": "palmette", "name": {json.dumps(str(selection.job.folder))},\n'
        )
        file.write('"profiles": [')
        before = "\n"
        for index in selection.chosen:
            for profile, key, items in profiles(selection, index, frames, counts):
                file.write(f'{before}{json.dumps(profile)[:-1]}, "{key}": [')
                file.writelines(items)
                file.write("]}")
                before = ",\n"
        for rank, stacks in computing_of(selection):
            profile, key, items = _computing(rank, stacks, frames)
            file.write(f'{before}{json.dumps(profile)[:-1]}, "{key}": [')
            file.writelines(items)
            file.write("]}")
            before = ",\n"
        file.write(f'\n],\n"shared": {{"frames": {json.dumps(frames.all)}}}}}\n')
    return counts


Profile = tuple[dict[str, Any], str, Iterable[str]]
"""A profile without its longest list, that list's name, and the list's text."""


def _evented(selection: Selection, index: int, frames: _Frames, counts: Counts) -> Iterator[Profile]:
    for thread, steps in threads_of(selection, index).steps.items():
        profile = {
            "type": "evented", "name": selection.name(index) + (f", thread {thread}" if thread > 1 else ""),
            "unit": "nanoseconds", "startValue": steps[0].call.begin_ns, "endValue": steps[-1].call.end_ns,
        }  # fmt: skip
        yield profile, "events", _events(steps, frames, counts)


def _events(steps: list[Step], frames: _Frames, counts: Counts) -> Iterator[str]:
    """All frames of a path open with the call and close with it: what its callers do besides isn't known."""
    before = ""
    for step in steps:
        call = step.call
        stack = frames.stack(call.path, call.function)
        opened = [f'{{"type": "O", "frame": {frame}, "at": {call.begin_ns}}}' for frame in stack]
        closed = [f'{{"type": "C", "frame": {frame}, "at": {call.end_ns}}}' for frame in reversed(stack)]
        yield before + ", ".join(opened + closed)
        before = ",\n"
        counts.add(call)


def _sampled(selection: Selection, index: int, frames: _Frames, counts: Counts) -> Iterator[Profile]:
    sums = [one for one in selection.sums(index) if not one.is_request]  # requests overlap with calls
    for one in sums:
        counts.add_sum(one)
    if not sums:
        return
    weights = [round(one.seconds * 1e9) for one in sums]
    profile = {
        "type": "sampled", "name": selection.name(index), "unit": "nanoseconds",
        "startValue": 0, "endValue": sum(weights), "samples": [frames.stack(one.path, one.function) for one in sums],
    }  # fmt: skip
    yield profile, "weights", (", ".join(map(str, weights)),)


def _computing(rank: int, stacks: list[tuple[list[Site], float]], frames: _Frames) -> Profile:
    weights = [round(seconds * 1e9) for _, seconds in stacks]
    profile = {
        "type": "sampled", "name": f"rank {rank}, computing (samples)", "unit": "nanoseconds",
        "startValue": 0, "endValue": sum(weights),
        "samples": [frames.of(Place(one.function, one.file, one.line) for one in stack) for stack, _ in stacks],
    }  # fmt: skip
    return profile, "weights", (", ".join(map(str, weights)),)
