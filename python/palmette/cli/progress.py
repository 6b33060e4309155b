"""The bar that long commands show on a terminal; elsewhere they print lines."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TypeVar

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from palmette.cli.common import make_console

Shown = TypeVar("Shown", bound="Bar")


class Bar:
    """A progress bar on standard error with a name and counters, for the length of `with`; none without a terminal."""

    def __init__(self, counters: str, total: int | None = None, name: str = "starting") -> None:
        """`counters`: the text behind the bar, such as "{task.completed}/{task.total} cells"."""
        self._counters = counters
        self._total, self._name = total, name
        self._bars: Progress | None = None

    def __enter__(self: Shown) -> Shown:
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(self._counters), TimeElapsedColumn())
            self._bars = Progress(*columns, console=make_console(stderr=True), transient=True)
            self._bars.start()
            self._task = self._bars.add_task(self._name, total=self._total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self._bars is not None

    def move(self, completed: int, total: int | None = None, name: str | None = None) -> None:
        """Show how much is done; None leaves the total, and the name, as they are."""
        if self._bars is not None:
            self._bars.update(self._task, completed=completed, total=total, description=name)
