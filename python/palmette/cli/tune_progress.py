"""The progress display of `palmette tune`."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from palmette.tune.job import Watcher
from palmette.tune.store import TuneJob


class TuneProgress(Watcher):
    """A bar over a job's cells on a terminal; a line for each job that is over."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._bars: Bars | None = None

    def __enter__(self) -> TuneProgress:
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

    def job_starts(self, label: str, cells: int, seconds: float) -> None:
        """Show the job's name."""
        text = f"{label} (at most {seconds:.0f} s)"
        if self._bars is not None:
            self._bars.update(self._task, description=text, total=cells, completed=0)

    def cells_done(self, cells: int) -> None:
        """Move the bar."""
        if self._bars is not None:
            self._bars.update(self._task, completed=cells)

    def job_ends(self, label: str, job: TuneJob) -> None:
        """Say that the job is over, and what went wrong."""
        samples = sum(len(one.time_s) for result in job.results for one in result.candidates)
        outcome = f"{len(job.results)} cells, {samples} calls in {job.seconds:.0f} s"
        self._console.print(f"{label}: {outcome}{f'; {job.error}' if job.error else ''}", markup=False)
