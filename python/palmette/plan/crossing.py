"""Which level of the machine a message crosses."""

from __future__ import annotations

from palmette import _core
from palmette.units import plural


def many(word: str) -> str:
    """`leaf` -> `leaves`."""
    return plural(2, word).removeprefix("2 ")


def link_names(job: _core.Job) -> list[tuple[str, list[str]]]:
    """Levels of a job with the names of their groups, then `aggregator` with those of its aggregators."""
    groups = [(level.name, level.names) for level in job.levels]
    return [*groups, ("aggregator", [one.name for one in job.aggregators])]


class Crossings:
    """The levels of a job, outermost first, and the one at which two ranks are separated."""

    def __init__(self, job: _core.Job) -> None:
        self.levels = [level.name for level in job.levels]
        self._job = job
        self._aggregators = [one.name for one in job.aggregators]

    def between(self, rank: int, other: int) -> str | None:
        """Return the outermost level at which two ranks are in different groups, None if they share the innermost."""
        level = self._job.parting_level(rank, other)
        return self.levels[level] if level < len(self.levels) else None

    def name(self, rank: int) -> str:
        """`3`, or the name of an aggregator for a service position."""
        return str(rank) if rank < self._job.size else self._aggregators[rank - self._job.size]

    def phrase(self, level: str | None) -> str:
        """`between leaves`, or `inside nodes` for messages that cross no level."""
        return f"between {many(level)}" if level is not None else f"inside {many(self.levels[-1])}"
