"""What a terminal shows while a command works, and that nothing is shown elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time

import pytest

from palmette.cli.progress import ActivityLine

CODE = """
import sys, time
from palmette.cli.progress import ActivityLine
ActivityLine.QUIET_S = 0.2
with ActivityLine("planning") as working:
    holder = __import__("subprocess").Popen(["sleep", "30"], close_fds=False)  # keeps what it inherits
    time.sleep(0.5)
    working.now("verifying")
    sum(range(3 * 10**7))  # holds Python's lock
    {then}
holder.kill()
print("done")
"""


def on_a_terminal(code: str) -> tuple[int, str]:
    """Run Python with standard error on a terminal; return the status and what the terminal got."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the last of its holders has gone
                break
            if not part:
                break
            text += part
        return done.wait(timeout=20), text.decode()
    finally:
        os.close(ours)


def test_a_line_is_shown_with_what_is_done_and_goes_at_the_end() -> None:
    started = time.monotonic()
    status, text = on_a_terminal(CODE.format(then="pass"))
    assert time.monotonic() - started < 20
    assert status == 0
    assert re.search("planning, 0 s", text)
    assert re.search(r"verifying, \d s", text)
    assert text.endswith("\r\x1b[Kdone\r\n")


def test_the_line_ends_with_an_error_too() -> None:
    status, text = on_a_terminal(CODE.format(then="holder.kill(); sys.exit(3)"))
    assert status == 3
    assert text.endswith("\r\x1b[K")


def test_nothing_is_shown_without_a_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActivityLine, "QUIET_S", 0.0)
    with ActivityLine("planning") as working:
        working.now("verifying")
        time.sleep(0.1)
    assert capfd.readouterr() == ("", "")
