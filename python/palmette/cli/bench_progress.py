"""The progress display of `palmette bench`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from palmette.bench.jobs import Planned
from palmette.bench.results import Job
from palmette.bench.runner import Watcher
from palmette.bench.settings import Settings


class Progress(Watcher):
    """A bar over all cells on a terminal; elsewhere a line for each job."""

    def __init__(self, console: Any, settings: Settings, jobs: Sequence[Planned] | None = None) -> None:
        """`jobs`: what will be done; None: everything that the settings ask for."""
        self._console = console
        self._settings = settings
        self._jobs = jobs
        self._before = 0
        self._current = 0
        self._bars: Bars | None = None
        self._label = ""

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from palmette.cli.common import make_console

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} cells"))
            self._bars = Bars(*columns, TimeElapsedColumn(), console=make_console(stderr=True), transient=True)
            self._bars.start()
            self._task = self._bars.add_task("starting", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def job_starts(self, job: Planned, number: int, jobs: int) -> None:
        """Show the job's name."""
        self._before += self._current
        self._current = self._cells_of(job)
        self._label = f"{job.label} ({number + 1}/{jobs})"
        if self._bars is not None:
            known = self._jobs is not None
            total = sum(map(self._cells_of, self._jobs or [])) if known else jobs * self._settings.cells_per_job
            self._bars.update(self._task, description=self._label, total=total, completed=self._before)

    def _cells_of(self, job: Planned) -> int:
        return self._settings.cells_per_job if job.cells is None else len(job.cells)

    def cells_done(self, cells: int) -> None:
        """Move the bar."""
        if self._bars is not None:
            self._bars.update(self._task, completed=self._before + cells)

    def job_ends(self, job: Job) -> None:
        """Say that the job is over, and what went wrong."""
        if job.error or self._bars is None:
            outcome = job.error or f"{len(job.cells)} cells in {job.seconds:.0f} s"
            self._console.print(f"{self._label}: {outcome}", markup=False)
