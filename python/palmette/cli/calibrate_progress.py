"""The progress display of `palmette calibrate`."""

from __future__ import annotations

from typing import Any

from palmette.calibrate.measure import MachineSteps, Watcher
from palmette.calibrate.steps import Step
from palmette.calibrate.text import overrun_line, plan_line
from palmette.cli.progress import Bar


class CalibrateProgress(Bar, Watcher):
    """A bar over the converged measurements on a terminal; elsewhere a line for each round."""

    def __init__(self, console: Any) -> None:
        super().__init__("{task.completed}/{task.total} converged")
        self._console = console

    def starts(self, measured: MachineSteps) -> None:
        """Report what will be measured, and the time limit."""
        self._console.print(plan_line(measured), markup=False)

    def step_starts(self, measured: MachineSteps, step: Step) -> None:
        """Show the step's name."""
        self.move(len(measured.sure), len(measured.steps), step.label)

    def round_ends(self, measured: MachineSteps) -> None:
        """Report the progress, and a budget that can't be kept."""
        if (told := overrun_line(measured)) is not None:
            self._console.print(told, markup=False)
        if not self.is_shown:
            self._console.print(
                f"round {measured.rounds}: {len(measured.sure)} of {len(measured.steps)} converged,"
                f" {measured.seconds:.0f} s",
                markup=False,
            )
