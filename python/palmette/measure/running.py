"""Running a command to completion or timeout, with all of its descendants ended afterwards."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from palmette.measure.errors import PlaceError

GRACE_S = 5.0
"""Grace period for a launcher to shut down its ranks before everything is killed."""

TIMED_OUT = 124
"""Exit status of a run that was ended by its timeout, as of timeout(1)."""


class _TerminatedError(BaseException):
    """SIGTERM or SIGHUP was received: the run ends as after Ctrl-C."""


def run_to_end(
    command: Sequence[str], *, timeout_s: float | None, capture: bool, stdin: int | None = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    """Run `command`; it inherits this process's output, or `capture` returns it in the result.

    On timeout the run is ended and the status is 124. Ctrl-C and SIGTERM end it too and are raised again. Raises
    PlaceError where the command can't be started.
    """
    pipe = subprocess.PIPE if capture else None
    # In a session of its own: Ctrl-C reaches only the launcher, through us, and not all of its children at once.
    try:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
        )
    except OSError as error:
        raise PlaceError(f"{command[0]}: {error.strerror}; correct PATH, or its permissions") from None
    try:
        with terminations_raised():
            out, err = process.communicate(timeout=timeout_s)
        return subprocess.CompletedProcess(command, process.returncode, out, err)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, TIMED_OUT, *_communicate_to_end(process))
    except BaseException:
        _communicate_to_end(process)
        raise


def end_run(process: subprocess.Popen[str]) -> None:
    """End a run in a session of its own, with all of its descendants: first by SIGINT, then by SIGKILL.

    Its pipes may be read by others meanwhile.
    """
    for number, timeout_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(timeout=timeout_s)
            return
        except subprocess.TimeoutExpired:
            continue


def _communicate_to_end(process: subprocess.Popen[str]) -> tuple[str | None, str | None]:
    """End the run as `end_run` does, and return what it printed."""
    for number, timeout_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, None)):
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("unreachable: the last wait has no limit")


@contextmanager
def terminations_raised() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions during a run, in the main thread."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise _TerminatedError(number)

    try:
        previous = {number: signal.signal(number, terminate) for number in (signal.SIGTERM, signal.SIGHUP)}
    except ValueError:  # not the main thread: no signal handlers can be set
        yield
        return
    try:
        yield
    except _TerminatedError as error:
        raise KeyboardInterrupt(*error.args) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
