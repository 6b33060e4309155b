"""The progress display of `palmette tune`."""

from __future__ import annotations

from typing import Any

from palmette.cli.progress import Bar
from palmette.tune.job import Watcher
from palmette.tune.store import TuneJob
from palmette.units import plural


class TuneProgress(Bar, Watcher):
    """A bar over a job's cells on a terminal; a line for each job that is over."""

    def __init__(self, console: Any) -> None:
        super().__init__("{task.completed}/{task.total} cells")
        self._console = console

    def job_starts(self, label: str, cells: int, seconds: float) -> None:
        """Show the job's name."""
        self.move(0, cells, f"{label} (at most {seconds:.0f} s)")

    def cells_done(self, cells: int) -> None:
        """Move the bar."""
        self.move(cells)

    def job_ends(self, label: str, job: TuneJob) -> None:
        """Report that the job is over, and its error."""
        samples = sum(len(one.time_s) for result in job.results for one in result.candidates)
        outcome = f"{plural(len(job.results), 'cell')}, {plural(samples, 'call')} in {job.seconds:.0f} s"
        self._console.print(f"{label}: {outcome}{f'; {job.error}' if job.error else ''}", markup=False)
