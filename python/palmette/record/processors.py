"""Whether a recorded job had more ranks than processors: then waits and long calls may be the scheduler's."""

from __future__ import annotations

from dataclasses import dataclass

from palmette.record.reading import Job
from palmette.run.choices import KEPT_PROCESSORS
from palmette.units import plural


@dataclass(frozen=True)
class Crowd:
    """Ranks on the machine that the job was started on, more than it has processors."""

    ranks: int
    processors: int

    @property
    def note(self) -> str:
        """In a sentence, as `palmette run --compare` has it."""
        return (
            f"{plural(self.ranks, 'rank')} on {plural(self.processors, 'processor')}: ranks that wait keep others from "
            "computing, so that waits and long calls may be the scheduler's, and say nothing of machines with a "
            "processor for each rank"
        )

    mark = "ranks share processors, which may be why"
    """Remark for a finding that oversubscription may explain."""


def crowd_of(job: Job) -> Crowd | None:
    """Return how many ranks share how few processors; None where each has its own, or that isn't known.

    Known is how many processors `palmette run` may use; other machines of the job may have more.
    """
    try:
        boot_id, _, number = (job.folder / KEPT_PROCESSORS).read_text(encoding="ascii", errors="replace").partition(" ")
        processors = int(number)
    except (OSError, ValueError):
        return None
    ranks = sum(1 for process in job.processes if process.recorded.rank >= 0 and process.boot_id == boot_id)
    return Crowd(ranks, processors) if ranks > processors > 0 else None
