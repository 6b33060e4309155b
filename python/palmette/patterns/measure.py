"""Measuring patterns: jobs of patternbench on a lab, on local ranks, or by a launcher line of the user's."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from palmette import _core
from palmette.measure.job_output import error_line
from palmette.measure.lines import LinePlace
from palmette.measure.places import Place, read_topology
from palmette.measure.running import TIMED_OUT
from palmette.mpi.abi import Abi, measuring_program
from palmette.mpi.install import Installation
from palmette.patterns.errors import PatternError
from palmette.patterns.form import Form
from palmette.patterns.rates import PatternResult, evaluate
from palmette.patterns.seats import Seats
from palmette.patterns.transfers import Plan, plan

PROGRAM = "patternbench"


@dataclass(frozen=True)
class Settings:
    """Duration of a measurement."""

    seconds: float = 2.0
    min_calls: int = 10
    max_calls: int = 1000
    warmup: int = 3
    timeout_s: float | None = None

    def job_timeout_s(self, patterns: int) -> float:
        """The time limit of a job."""
        return self.timeout_s or 120 + patterns * (60 + 10 * self.seconds)


class Runner(Protocol):
    """Something that runs patternbench."""

    name: str
    """MPI and placement, for people."""
    folder: Path | None
    """Where files of jobs must lie; None: anywhere."""

    def hosts(self) -> list[str]:
        """Return the host of each rank. Raises PatternError, PlacementError, LabError."""
        ...

    def machine(self) -> _core.Machine | None:
        """Return the machine, None where its topology is unknown."""
        ...

    def run(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run the program with these arguments."""
        ...

    def waiting(self) -> list[str]:
        """Return options of the program that say how ranks wait and start."""
        ...


def program(abi: Abi) -> Path:
    """Return the program for an ABI. Raises PatternError when it isn't built."""
    return measuring_program(PROGRAM, abi, PatternError)


class PatternRunner:
    """A lab's ranks, local ones, or those of a launcher's line."""

    def __init__(self, place: Place, mpi: Installation, placement: str, ppn: int | None, ranks: int | None) -> None:
        self.place, self.mpi, self.folder = place, mpi, place.folder
        self._hosts = place.place(placement, ppn, ranks)
        where = place.line.text if isinstance(place, LinePlace) else placement if place.topology_path else ""
        self.name = f"{mpi.name} {mpi.version}" + (f", {where}" if where else "")
        self._program = str(program(mpi.abi))

    def hosts(self) -> list[str]:
        """Return the host of each rank."""
        return self._hosts

    def machine(self) -> _core.Machine | None:
        """Return the lab's machine."""
        document = read_topology(self.place.topology_path)
        return _core.Machine.from_json(document) if document is not None else None

    def run(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run the program there."""
        return self.place.run(self.mpi, self._hosts, [self._program, *arguments], {}, timeout_s)

    def waiting(self) -> list[str]:
        """Ranks spin where each has a core."""
        return ["--clock", self.place.clock, "--wait", "spin" if self.place.spins else "sleep"]


def measure(runner: Runner, forms: Sequence[Form], sizes: Sequence[int], settings: Settings) -> list[PatternResult]:
    """Measure all patterns of all sizes in one job. Raises PatternError."""
    seats = Seats.on(runner.machine(), runner.hosts())
    plans = [plan(form, seats, size) for form in forms for size in sizes]
    with tempfile.TemporaryDirectory(prefix="palmette-pattern-", dir=runner.folder) as folder:
        files = []
        for number, one in enumerate(plans):
            files.append(Path(folder) / f"{number}.txt")
            one.write(files[-1], seats.ranks)
        output = Path(folder) / "samples.jsonl"
        arguments = [
            *(word for file in files for word in ("--messages", str(file))),
            *("--seconds", f"{settings.seconds:g}"),
            *("--min-iterations", str(min(settings.min_calls, settings.max_calls))),
            *("--max-iterations", str(settings.max_calls)),
            *("--warmup", str(settings.warmup)),
            *runner.waiting(),
            *("--output", str(output)),
        ]
        done = runner.run(arguments, settings.job_timeout_s(len(plans)))
        events = _events(output, done, len(plans))
    return _evaluated(events, plans, seats, done)


def _evaluated(
    events: Sequence[dict[str, Any]], plans: Sequence[Plan], seats: Seats, done: subprocess.CompletedProcess[str]
) -> list[PatternResult]:
    named = [str(host).split(".")[0] for host in events[0]["hosts"]]
    if "localhost" not in seats.hosts and named != [host.split(".")[0] for host in seats.hosts]:
        raise PatternError("the ranks are not on the hosts that the placement says; the launcher placed them otherwise")
    samples = [event for event in events if event["event"] == "samples"]
    messages = [event for event in events if event["event"] == "messages"]
    made = [evaluate(*one) for one in zip(plans, [seats] * len(plans), samples, messages, strict=True)]
    wrong = [one for one in made if one.wrong_ranks]
    if wrong:
        raise PatternError(f"'{wrong[0].plan.form.text}': wrong bytes arrived: {error_line(done)}")
    return made


def _events(path: Path, done: subprocess.CompletedProcess[str], patterns: int) -> list[dict[str, Any]]:
    """Read what the program wrote. Raises PatternError unless it came to its end with all patterns."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        events = []
    finished = sum(event["event"] == "messages" for event in events)
    if done.returncode == TIMED_OUT:
        raise PatternError(f"the job was ended at its time limit after {finished} of {patterns} patterns")
    if done.returncode not in (0, 1) or not events or events[-1]["event"] != "end" or finished < patterns:
        raise PatternError(
            f"mpiexec ended with status {done.returncode} after {finished} of {patterns} patterns: {error_line(done)}"
        )
    return events
