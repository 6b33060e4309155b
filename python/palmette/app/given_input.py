"""Standard input of the command, given to every run of a program from its beginning."""

from __future__ import annotations

import os
import select
import shutil
import stat
import subprocess
import tempfile
from typing import IO

WAIT_S = 3.0
"""How long a pipe may stay silent before its first byte: one that nobody writes to, as in many services, never ends."""


class GivenInput:
    """What is behind file descriptor 0: a file, or a pipe that is read to its end. A terminal and /dev/null give none.

    `note` says where something is there that the runs don't get. Of a pipe a copy is kept in a temporary file, as long
    as this object lives. Raises OSError where that can't be written.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self.note = ""
        self._file: IO[bytes] | None = None
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:  # closed
            return
        if stat.S_ISREG(mode):
            self._file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
            self._start = self._file.tell()
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            if not select.select([descriptor], [], [], WAIT_S)[0]:
                self.note = (
                    f"standard input is a pipe that nothing came through for {WAIT_S:g} s: the runs get none; give them"
                    " a file: < FILE"
                )
                return
            self._file = tempfile.TemporaryFile(prefix="palmette-input-")  # noqa: SIM115 - each run reads it
            self._start = 0
            with os.fdopen(os.dup(descriptor), "rb", buffering=0) as pipe:
                shutil.copyfileobj(pipe, self._file)
            self._file.flush()

    def rewound(self) -> int:
        """Return what `subprocess` takes as the standard input of the next run; the last one must have ended."""
        if self._file is None:
            return subprocess.DEVNULL
        self._file.seek(self._start)
        return self._file.fileno()


def none() -> GivenInput:
    """Return what gives no input, for those who have none to give."""
    with open(os.devnull, "rb") as nothing:
        return GivenInput(nothing.fileno())
