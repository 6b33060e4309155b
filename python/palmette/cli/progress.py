"""The bar that long commands show on a terminal; elsewhere they print lines."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from palmette.cli.common import make_console

if TYPE_CHECKING:
    from rich.progress import Progress

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
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(self._counters), TimeElapsedColumn())
            self._bars = Progress(*columns, console=make_console(), transient=True)
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


class ActivityLine:
    """A line on a terminal, after two seconds: what is being done, and for how long. Nothing without a terminal.

    A process of its own writes it, for the core holds Python's lock while it plans, counts and verifies: a thread
    wouldn't get to run.
    """

    QUIET_S = 2.0

    def __init__(self, what: str) -> None:
        self._what = what
        self._pipe: int | None = None
        self._child = 0

    def __enter__(self) -> ActivityLine:
        if sys.stderr.isatty():
            sys.stdout.flush()
            sys.stderr.flush()
            reading, writing = os.pipe()
            self._child = os.fork()
            if self._child == 0:
                try:
                    os.close(writing)
                    _show_elapsed(reading, self.QUIET_S)
                finally:
                    os._exit(0)
            os.close(reading)
            self._pipe = writing
            self.now(self._what)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pipe is not None:
            os.write(self._pipe, _OVER)  # closing isn't enough: programs that were started meanwhile may hold it
            os.close(self._pipe)
            self._pipe = None
            os.waitpid(self._child, 0)

    def now(self, what: str) -> None:
        """Say what is being done from here on."""
        if self._pipe is not None:
            os.write(self._pipe, f"{what}\n".encode())


_OVER = b"\0"


def _show_elapsed(pipe: int, quiet_s: float) -> None:
    """Write the last line that came through the pipe, and the time, each second until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent
    started, what, shown, parent = time.monotonic(), "", False, os.getppid()
    while os.getppid() == parent:
        elapsed = time.monotonic() - started
        wait = max(0.05, quiet_s - elapsed) if elapsed < quiet_s else 1.0
        if select.select([pipe], [], [], wait)[0]:
            told = os.read(pipe, 4096)
            if not told or told.endswith(_OVER):
                break
            what = told.decode(errors="replace").rstrip("\n").rpartition("\n")[2]
        if time.monotonic() - started >= quiet_s:
            text = f"{what}, {time.monotonic() - started:.0f} s"[: shutil.get_terminal_size().columns - 1]
            os.write(2, f"\r\x1b[K{text}".encode())
            shown = True
    if shown:
        os.write(2, b"\r\x1b[K")
