"""Processes identified by PID and start time, which is safe against PID reuse."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


def _stat(pid: int) -> tuple[str, int] | None:
    """Return the state and the start time (clock ticks since boot) of a process, or None when there is none."""
    try:
        # The name, in parentheses, may hold blanks and parentheses itself.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[19])


@dataclass(frozen=True)
class ProcessId:
    """One process: its PID and its start time in clock ticks since boot."""

    pid: int
    started: int

    @staticmethod
    def of(pid: int) -> ProcessId:
        """Return the process that has `pid` now. Raises ProcessLookupError."""
        stat = _stat(pid)
        if stat is None:
            raise ProcessLookupError(pid)
        return ProcessId(pid, stat[1])

    def is_alive(self) -> bool:
        """Whether the process runs still; a zombie doesn't."""
        stat = _stat(self.pid)
        return stat is not None and stat[1] == self.started and stat[0] not in "ZX"

    def kill(self, timeout_s: float = 10.0) -> bool:
        """Kill the process and wait for its end; returns whether it ended. An already ended process is fine."""
        if self.is_alive():
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                return True
        end = time.monotonic() + timeout_s
        while self.is_alive():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True
