"""Functions and what is inlined in them, whoever reads the debug information."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Line(NamedTuple):
    """A line of the source; `number` is 0 where it isn't known."""

    file: str
    number: int


NOWHERE = Line("", 0)


@dataclass
class Scope:
    """A function, or a function that is inlined: its addresses, and the functions that are inlined in it."""

    ranges: list[tuple[int, int]]
    """First address, and the one behind the last; several where a compiler has moved cold parts away."""
    name: str = ""
    """Linker's name where the language has such names, else the source's."""
    called: Line = NOWHERE
    """Line of the call where the function is inlined."""
    inlined: list[Scope] = field(default_factory=list)

    def holds(self, address: int) -> bool:
        """Whether an address lies in it."""
        return any(begin <= address < end for begin, end in self.ranges)

    def chain(self, address: int) -> list[Scope]:
        """Return this scope and those inlined in it that an address lies in, the outermost first."""
        found = [self]
        while inner := next((one for one in found[-1].inlined if one.holds(address)), None):
            found.append(inner)
        return found


class DebugInformation(Protocol):
    """What a reader of debug information answers. Addresses are those of the file, before it is loaded."""

    def function(self, address: int) -> Scope | None:
        """Return the innermost function with an address, the same object for each of its addresses."""

    def line(self, address: int) -> Line:
        """Return the line of an address; NOWHERE where the table of lines doesn't tell."""

    def close(self) -> None:
        """Close its file."""

    @property
    def notes(self) -> Sequence[str]:
        """What couldn't be read, and why: sentences without the name of the module."""


class Intervals:
    """Which of many intervals has an address, the innermost of nested ones. Cost: O(log n) an address, mostly."""

    def __init__(self, intervals: Sequence[tuple[int, int, int]]) -> None:
        """Take intervals: begin, end, and a number that `at` returns."""
        self._sorted = sorted(intervals, key=lambda one: (one[0], -one[1]))
        self._begins = [one[0] for one in self._sorted]
        self._most_ends: list[int] = []
        for _, end, _ in self._sorted:
            self._most_ends.append(max(end, self._most_ends[-1]) if self._most_ends else end)

    def at(self, address: int) -> int | None:
        """Return the number of the interval that begins last among those with an address."""
        at = bisect_right(self._begins, address) - 1
        while at >= 0 and self._most_ends[at] > address:
            if self._sorted[at][1] > address:
                return self._sorted[at][2]
            at -= 1
        return None

    def all(self) -> Iterator[tuple[int, int, int]]:
        """Give the intervals by begin."""
        return iter(self._sorted)
