"""The result of one source of discovery, and the error that every source raises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from palmette.topology.model import Fabric, InsideGroup, LeftOut, Machine, Note, Source
from palmette.topology.names import natural_key

MAX_NOTES = 20
MOST_NAMES = 4


def some_names(names: Iterable[str]) -> str:
    """`n1, n2, n3, n4 and 12 more`: the subjects of a warning, in natural order."""
    ordered = sorted(set(names), key=natural_key)
    more = f" and {len(ordered) - MOST_NAMES:,} more" if len(ordered) > MOST_NAMES else ""
    return ", ".join(ordered[:MOST_NAMES]) + more


class DiscoverError(ValueError):
    """Input that can't be used at all; the text says what, where and what to do next."""


@dataclass(slots=True)
class HostInside:
    """The inside of one host: groups below it, and the host's name where the source has it."""

    groups: list[InsideGroup]
    host: str | None = None


@dataclass(slots=True)
class SourceResult:
    """The result of one source. `machine` holds a tree of hosts, `inside` the inside of a host."""

    source: Source
    machine: Machine | None = None
    fabric: Fabric | None = None
    inside: HostInside | None = None
    warnings: list[Note] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    hidden_warnings: int = 0

    def warn(self, message: str, line: int | None = None) -> None:
        """Keeps the first MAX_NOTES warnings that name a line, counts the rest: broken files mustn't flood a screen."""
        if line is not None and sum(note.line is not None for note in self.warnings) >= MAX_NOTES:
            self.hidden_warnings += 1
            return
        self.warnings.append(Note(message, self.source.path or self.source.kind, line))

    def leave_out(self, count: int, what: str, reason: str) -> None:
        if count:
            self.left_out.append(LeftOut(count, what, reason))
