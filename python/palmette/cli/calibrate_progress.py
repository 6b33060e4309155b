"""The progress display of `palmette calibrate`."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from palmette.calibrate.measure import Measured, Watcher
from palmette.calibrate.steps import Step
from palmette.calibrate.text import plan_line
from palmette.cli.common import make_console


class CalibrateProgress(Watcher):
    """A bar over the figures that are sure on a terminal; elsewhere a line for each round."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._bar: Progress | None = None

    def __enter__(self) -> CalibrateProgress:
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} sure"))
            self._bar = Progress(*columns, TimeElapsedColumn(), console=make_console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def starts(self, measured: Measured) -> None:
        """Say what is going to be done, and how long at most."""
        self._console.print(plan_line(measured), markup=False)

    def step_starts(self, measured: Measured, step: Step, elapsed_s: float) -> None:
        """Show the step's name."""
        if self._bar is not None:
            self._bar.update(
                self._task, description=step.label, total=len(measured.steps), completed=len(measured.sure)
            )

    def round_ends(self, measured: Measured) -> None:
        """Say how far it is."""
        if self._bar is None:
            self._console.print(
                f"round {measured.rounds}: {len(measured.sure)} of {len(measured.steps)} sure, {measured.seconds:.0f} s",
                markup=False,
            )
