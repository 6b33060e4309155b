"""The progress display of `palmette bench`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palmette.bench.jobs import BenchJob
from palmette.bench.results import Job
from palmette.bench.runner import Watcher
from palmette.bench.settings import Settings
from palmette.cli.progress import Bar
from palmette.units import plural


class BenchProgress(Bar, Watcher):
    """A bar over all cells on a terminal; elsewhere a line for each job."""

    def __init__(self, console: Any, settings: Settings, jobs: Sequence[BenchJob] | None = None) -> None:
        """`jobs`: what will be done; None: everything that the settings ask for."""
        super().__init__("{task.completed}/{task.total} cells")
        self._console = console
        self._settings = settings
        self._jobs = jobs
        self._before = 0
        self._current = 0
        self._label = ""

    def job_starts(self, job: BenchJob, number: int, jobs: int) -> None:
        """Show the job's name."""
        self._before += self._current
        self._current = self._cells_of(job)
        self._label = f"{job.label} ({number + 1}/{jobs})"
        known = self._jobs is not None
        total = sum(map(self._cells_of, self._jobs or [])) if known else jobs * self._settings.cells_per_job
        self.move(self._before, total, self._label)

    def _cells_of(self, job: BenchJob) -> int:
        return self._settings.cells_per_job if job.cells is None else len(job.cells)

    def cells_done(self, cells: int) -> None:
        """Move the bar."""
        self.move(self._before + cells)

    def job_ends(self, job: Job) -> None:
        """Report that the job is over, and its error."""
        if job.error or not self.is_shown:
            outcome = job.error or f"{plural(len(job.cells), 'cell')} in {job.seconds:.0f} s"
            self._console.print(f"{self._label}: {outcome}", markup=False)
