"""A running job of the program `calibrate`: one line asks, one line of JSON answers.

The launcher connects its standard streams to rank 0, on whichever host that is, so no file system need be shared.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from palmette.measure.errors import CalibrateError
from palmette.measure.job_output import refuses_root
from palmette.measure.running import end_run

START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 60.0
END_TIMEOUT_S = 15.0

Pair = tuple[int, int]


@dataclass(frozen=True)
class JobLine:
    """The job's description of itself; lists have an entry a rank.

    `processors` and `hosts` are its host's names by the MPI and the system, `sockets` the number of the socket that it
    is bound to, -1 where it isn't.
    """

    mpi: str
    processors: list[str]
    hosts: list[str]
    sockets: list[int]

    @property
    def ranks(self) -> int:
        """Size of the job."""
        return len(self.hosts)


class Asker(Protocol):
    """Something that runs experiments."""

    def ask(
        self, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float = 1.0
    ) -> list[list[float]]:
        """Return the values of each pair, seconds or bytes per second, listed in src/programs/calibrate/request.h.

        `seconds` is about how long it takes.
        """
        ...


class Session:
    """A job of `calibrate`, from its start to its end. A context manager; after it, nothing of the job is left.

    Where SIGTERM shall end the job, too, `lab.running.terminations_raised` is to be around it.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._command = list(command)
        self._environment = environment
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._complaints: list[str] = []

    def __enter__(self) -> Session:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=dict(self._environment) if self._environment is not None else None,
                start_new_session=True,  # Ctrl-C is for this process, which then ends the job in order
            )
        except OSError as error:
            raise CalibrateError(f"{self._command[0]}: {error.strerror}; correct the name or PATH") from None
        self._threads = [threading.Thread(target=reader, daemon=True) for reader in (self._read_out, self._read_err)]
        for thread in self._threads:
            thread.start()
        try:
            self.job = self._read_job()
        except BaseException:
            self._end(in_order=False)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(in_order=error is None)

    def ask(
        self, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float = 1.0
    ) -> list[list[float]]:
        """Do an experiment. Raises CalibrateError when the job ends or doesn't answer."""
        words = [what, *(f"{number:.9g}" for number in numbers), *(f"{a}:{b}" for a, b in pairs)]
        assert self._process.stdin is not None
        # A job that has ended is detected by its missing answer.
        with contextlib.suppress(OSError):
            self._process.stdin.write(" ".join(words) + "\n")
            self._process.stdin.flush()
        event = self._event("answer", ANSWER_TIMEOUT_S + 20 * seconds, f"'{' '.join(words[:5])}'")
        values = event.get("figures")
        if not isinstance(values, list) or len(values) != len(pairs):
            raise CalibrateError(f"an answer to '{what}' that isn't one; build the program anew with `make build`")
        return [[float(value) for value in of_pair] for of_pair in values]

    def _read_job(self) -> JobLine:
        event = self._event("job", START_TIMEOUT_S, "its start")
        if event.get("version") != 1:
            raise CalibrateError("the program `calibrate` is of another version; run `make build`")
        processors, hosts = ([str(name) for name in event[key]] for key in ("processors", "hosts"))
        return JobLine(mpi_name(str(event["mpi"])), processors, hosts, [int(socket) for socket in event["sockets"]])

    def _event(self, kind: str, timeout_s: float, what: str) -> dict[str, Any]:
        """Return the next event, skipping other output: MPIs print warnings on any stream."""
        for line in self._next_lines(timeout_s, what):
            if not line.startswith('{"event":'):
                self._complaints.append(line.strip())
                continue
            try:
                event = json.loads(line)
            except ValueError:
                raise CalibrateError(f"a line of the job is damaged: {line[:60]!r}; try again") from None
            if event["event"] == "error":
                raise CalibrateError(f"the job refuses {what}: {event.get('message')}; build anew with `make build`")
            if event["event"] == kind:
                return dict(event)
        raise AssertionError("unreachable: lines end by an error")

    def _next_lines(self, timeout_s: float, what: str) -> Iterator[str]:
        while True:
            try:
                line = self._lines.get(timeout=timeout_s)
            except queue.Empty:
                raise CalibrateError(
                    f"no answer to {what} within {timeout_s:.0f} s{self._complaint()}; try fewer ranks, or another MPI"
                ) from None
            if line is None:
                self._threads[1].join(timeout=2)  # its last messages may not have been read yet
                status = self._process.wait()
                raise CalibrateError(
                    f"the job ended with status {status} before {what} was answered{self._complaint()}"
                )
            yield line

    def _complaint(self) -> str:
        """Return the most informative line that the job printed, with a colon before it."""
        if refused := refuses_root(self._complaints):
            return f": {refused}"
        # Open MPI frames its errors by lines of dashes.
        lines = [line for line in self._complaints if any(map(str.isalpha, line))]
        ours = [line for line in lines if line.startswith("calibrate:")]
        chosen = (ours or [line for line in lines if "rror" in line] or lines)[:1]
        if chosen and not ours and not chosen[0].endswith("."):
            at = lines.index(chosen[0])
            chosen = [" ".join(lines[at : at + 3])]  # the sentence goes on
        return f": {chosen[0][:200]}" if chosen else ""

    def _read_out(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_err(self) -> None:
        assert self._process.stderr is not None
        self._complaints.extend(line.strip() for line in self._process.stderr)

    def _end(self, *, in_order: bool) -> None:
        """End the job: by its own command, or by force. Should we be killed, the job ends at the end of its input."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            if in_order:
                self._process.stdin.write("end\n")
            self._process.stdin.close()
        try:
            if in_order:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(END_TIMEOUT_S)
        finally:
            end_run(self._process)
            for thread in self._threads:
                thread.join(timeout=2)
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()


def mpi_name(version: str) -> str:
    """Return a short name and version for what MPI_Get_library_version says.

    >>> mpi_name("Open MPI v5.0.11, package: Open MPI ...")
    'Open MPI 5.0.11'
    """
    for name, sign in (
        ("Intel MPI", r"Intel\(R\) MPI Library (\d[\w.]*)"),
        ("MPICH", r"MPICH Version:\s*(\d[\w.]*)"),
        ("Open MPI", r"Open MPI v?(\d[\w.]*)"),
        ("MVAPICH", r"MVAPICH\S* Version\s*:\s*(\d[\w.]*)"),
    ):
        match = re.search(sign, version)
        if match:
            return f"{name} {match.group(1)}"
    return " ".join(version.split())[:60] or "unknown"
