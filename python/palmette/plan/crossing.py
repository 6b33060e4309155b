"""Which level of the machine a message crosses."""

from __future__ import annotations

from palmette import _core
from palmette.units import plural


def many(word: str) -> str:
    """`leaf` -> `leaves`."""
    return plural(2, word).removeprefix("2 ")


class Crossings:
    """The levels of a job, outermost first, and the one at which two ranks are separated."""

    def __init__(self, job: _core.Job) -> None:
        self.levels = [level.name for level in job.levels]
        groups = [[level.group_of(job.position_of(rank)) for level in job.levels] for rank in range(job.size)]
        self._groups = [tuple(own) for own in groups]

    def between(self, rank: int, other: int) -> str | None:
        """Return the outermost level at which two ranks are in different groups, None if they share the innermost."""
        for name, a, b in zip(self.levels, self._groups[rank], self._groups[other], strict=True):
            if a != b:
                return name
        return None

    def phrase(self, level: str | None) -> str:
        """`between leaves`, or `inside nodes` for messages that cross no level."""
        return f"between {many(level)}" if level is not None else f"inside {many(self.levels[-1])}"
