"""pprof's profiles (gzip of a protobuf), which `go tool pprof`, Google's pprof, Pyroscope and speedscope read.

MPI calls and samples are one tree: of calls their time, of what lies outside of MPI the processor time. Each rank's
samples have the label `rank`. Field numbers are those of the messages named beside them in pprof's public
`profile.proto`.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from palmette.record.formats.counts import Counts
from palmette.record.formats.protobuf import data, number, text, varint
from palmette.record.formats.selection import Selection
from palmette.record.formats.stacks import computing_of, without_starts
from palmette.record.symbols import Place

VALUE_TYPE, SAMPLE, LOCATION, FUNCTION, STRINGS, BEGIN_NS, DURATION_NS, DEFAULT_TYPE = 1, 2, 4, 5, 6, 9, 10, 14
TYPE, UNIT = 1, 2  # ValueType
SAMPLE_LOCATIONS, SAMPLE_VALUES, SAMPLE_LABEL = 1, 2, 3  # Sample
LABEL_KEY, LABEL_NUMBER = 1, 3  # Label
ID, LOCATION_LINE, LINE_FUNCTION, LINE_NUMBER = 1, 4, 1, 2  # Location, Line
FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE = 2, 3, 4  # Function

VALUES = (("calls", "count"), ("bytes", "bytes"), ("time", "nanoseconds"))


class _Profile:
    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Place, int] = {}
        self._parts: list[bytes] = []

    def string(self, value: str) -> int:
        return self._strings.setdefault(value, len(self._strings))

    def location(self, place: Place) -> int:
        """Return the number of a function at a line, from 1 on."""
        if place not in self._locations:
            at = number(LINE_FUNCTION, self._function(place.function, place.file)) + number(LINE_NUMBER, place.line)
            self._locations[place] = len(self._locations) + 1
            self._parts.append(data(LOCATION, number(ID, self._locations[place]) + data(LOCATION_LINE, at)))
        return self._locations[place]

    def _function(self, name: str, file: str) -> int:
        if (name, file) not in self._functions:
            at = self._functions[name, file] = len(self._functions) + 1
            made = number(ID, at) + number(FUNCTION_NAME, self.string(name))
            made += number(FUNCTION_SYSTEM_NAME, self.string(name)) + number(FUNCTION_FILE, self.string(file))
            self._parts.append(data(FUNCTION, made))
        return self._functions[name, file]

    def sample(self, stack: Sequence[int], values: Sequence[int], rank: int) -> None:
        """Add a stack, the innermost location first."""
        label = number(LABEL_KEY, self.string("rank")) + number(LABEL_NUMBER, rank)
        self._parts.append(
            data(SAMPLE, data(SAMPLE_LOCATIONS, b"".join(map(varint, stack)))
                 + data(SAMPLE_VALUES, b"".join(map(varint, values))) + data(SAMPLE_LABEL, label))
        )  # fmt: skip

    def whole(self, begin_ns: int, duration_ns: int) -> bytes:
        """Return the message."""
        kinds = b"".join(
            data(VALUE_TYPE, number(TYPE, self.string(name)) + number(UNIT, self.string(unit))) for name, unit in VALUES
        )
        end = number(BEGIN_NS, begin_ns) + number(DURATION_NS, duration_ns) + number(DEFAULT_TYPE, self.string("time"))
        strings = b"".join(text(STRINGS, value) for value in self._strings)
        return kinds + b"".join(self._parts) + strings + end


def write(path: Path, selection: Selection) -> Counts:
    """Write the sums of a selection. Cost: O(sums + contexts of all ranks); of a window O(calls)."""
    counts = Counts()
    profile = _Profile()
    computing = list(computing_of(selection))
    for index in selection.chosen:
        rows: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for one in selection.sums(index):
            if one.is_request:  # overlaps with calls
                continue
            counts.add_sum(one)
            places = [*(selection.stacks[one.path] or (Place("unknown"),)), Place(one.function)]
            if computing:  # what starts main isn't told in samples
                first = len(places) - len(without_starts([place.function for place in places]))
                places = places[first:]
            row = rows[tuple(profile.location(place) for place in reversed(places))]
            row[0] += one.calls
            row[1] += one.bytes
            row[2] += round(one.seconds * 1e9)
        for stack, values in rows.items():
            profile.sample(stack, values, selection.everyone[index].recorded.rank)
    for rank, stacks in computing:
        for sites, seconds in stacks:
            at = [profile.location(Place(one.function, one.file, one.line)) for one in reversed(sites)]
            profile.sample(at, (0, 0, round(seconds * 1e9)), rank)
    recorded = [selection.everyone[index] for index in selection.chosen]
    end_ns = max(selection.since_begin_ns(one, one.recorded.last_real_ns) for one in recorded)
    path.write_bytes(gzip.compress(profile.whole(selection.begin_real_ns, max(0, end_ns)), 6, mtime=0))
    return counts
