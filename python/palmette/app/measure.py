"""Running a program with and without palmette by turns, and what its times, its recording and its output say."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from palmette.app.given_input import GivenInput, none
from palmette.app.output import Comparison, Reference, compare, reference
from palmette.measure.errors import BenchError, PlaceError
from palmette.measure.job_output import refuses_root
from palmette.measure.places import Place
from palmette.measure.statistics import Ratio, Summary, Times, compare_pairs, summarize
from palmette.mpi.abi import preload_library, record_library
from palmette.mpi.errors import RunError
from palmette.mpi.install import Installation
from palmette.record.findings import findings_of
from palmette.record.functions import ENDS
from palmette.record.links import of_trace
from palmette.record.machine import seats_of
from palmette.record.reading import RecordError, read_job
from palmette.record.sums import sums_of
from palmette.run import Choices, prepare, variables
from palmette.settings_files import read_files, with_files
from palmette.units import plural

ALONE, PALMETTE = "alone", "palmette"
"""The MPI by itself, and with palmette as `palmette run` starts it."""
OFF = {"PALMETTE_ENABLE": "0"}
"""Recorded runs of the MPI alone: palmette's library passes every call through."""


@dataclass(frozen=True)
class Variant:
    """One way to run the program. `settings` are PALMETTE_ variables; None: without palmette."""

    name: str
    settings: Mapping[str, str] | None


@dataclass(frozen=True)
class RunResult:
    """One run."""

    seconds: float
    status: int
    out: str
    err: str


class Runner(Protocol):
    """Where and how the program runs."""

    topology: Path | None

    @property
    def name(self) -> str:
        """Command or program and place, in words."""

    def run(self, settings: Mapping[str, str] | None, timeout_s: float, stdin: int = subprocess.DEVNULL) -> RunResult:
        """Run it once, with that standard input; None: without palmette. Raises BenchError."""


@dataclass
class CommandRunner:
    """A whole command line, launcher included, as a user types it."""

    words: Sequence[str]
    topology: Path | None = None

    @property
    def name(self) -> str:
        """The command line."""
        return " ".join(self.words)

    def run(self, settings: Mapping[str, str] | None, timeout_s: float, stdin: int = subprocess.DEVNULL) -> RunResult:
        """Run it once. Raises BenchError."""
        words, environment = list(self.words), dict(os.environ)
        if settings is not None:
            try:
                given = with_files({**environment, **settings}, read_files(environment))
                prepared = prepare(self.words, variables(Choices(), given), environment)
            except RunError as error:
                raise BenchError(str(error)) from None
            words, environment = list(prepared.command), {**environment, **prepared.environment}
        started = time.monotonic()
        try:
            done = subprocess.run(
                words, env=environment, stdin=stdin, capture_output=True, text=True, errors="replace",
                timeout=timeout_s, check=False,
            )  # fmt: skip
        except OSError as error:
            raise BenchError(f"{words[0]}: {error.strerror}; correct the command") from None
        except subprocess.TimeoutExpired:
            raise BenchError(f"no end after {timeout_s:g} s: {self.name}; give it more time (--timeout)") from None
        return RunResult(time.monotonic() - started, done.returncode, done.stdout, done.stderr)


@dataclass
class PlaceRunner:
    """A program without a launcher, on an emulated cluster or on local ranks."""

    place: Place
    mpi: Installation
    words: Sequence[str]
    placement: str
    ranks: int | None
    topology: Path | None = field(init=False)

    def __post_init__(self) -> None:
        self.topology = self.place.topology_path
        self.hosts = self.place.place(self.placement, None, self.ranks)
        launcher = [str(self.mpi.mpiexec), "-n", str(len(self.hosts)), *self.words]
        try:
            self.evidence = prepare(launcher, {}, {**os.environ, **self.mpi.environment()}).evidence
        except RunError as error:
            raise BenchError(str(error)) from None

    @property
    def name(self) -> str:
        """The program and its place."""
        where = (
            f"{plural(len(self.hosts), 'rank')}, {self.placement}"
            if self.place.links is not None
            else self.place.description
        )
        return f"{' '.join(self.words)}: {self.mpi.name} {self.mpi.version}, {where}"

    def run(self, settings: Mapping[str, str] | None, timeout_s: float, stdin: int = subprocess.DEVNULL) -> RunResult:
        """Run it once. Raises BenchError."""
        environment: dict[str, str] = {}
        if settings is not None:
            libraries = [preload_library(abi) for abi in self.evidence.abis]
            if "PALMETTE_TRACE" in settings:
                libraries = [*(record_library(abi) for abi in self.evidence.abis), *libraries]
            environment = {**settings, "LD_PRELOAD": ":".join(map(str, libraries))}
            if self.topology is not None:
                environment.setdefault("PALMETTE_TOPOLOGY", str(self.topology))
        started = time.monotonic()
        try:
            done = self.place.run(self.mpi, self.hosts, list(self.words), environment, timeout_s, stdin)
        except PlaceError as error:
            raise BenchError(str(error)) from None
        if done.returncode == 124:
            raise BenchError(f"no end after {timeout_s:g} s: {self.name}; give it more time (--timeout)")
        return RunResult(time.monotonic() - started, done.returncode, done.stdout, done.stderr)


@dataclass
class RunProfile:
    """What a recorded run of a variant says; times are sums over ranks."""

    in_mpi_s: float
    by_function_s: dict[str, float]
    calls: dict[str, int]
    busiest_link: str = ""
    busiest_bytes: float | None = None
    uncounted: int = 0
    """Calls of irregular collectives by the MPI itself, whose bytes no single rank knows: not among those."""
    served: int = 0
    missing_ranks: int = 0
    """Ranks whose nodes have recorded in a folder of their own: not among these sums."""
    oversubscribed: str = ""
    """Ranks and processors, where all ran on this machine, which has fewer of these."""


@dataclass
class VariantRuns:
    """All runs of one variant."""

    variant: Variant
    seconds: list[float] = field(default_factory=list)
    outputs: list[Comparison] = field(default_factory=list)
    recorded: RunProfile | None = None

    @property
    def summary(self) -> Summary:
        """Summary of the seconds of whole runs."""
        return summarize(np.asarray(self.seconds))

    @property
    def difference(self) -> str:
        """The first difference of an output from that of the MPI alone; empty: all are the same."""
        return next((one.difference for one in self.outputs if not one.same), "")

    @property
    def order(self) -> str:
        """What is another order in an output that is the same but for that; empty: nothing."""
        return next((one.order for one in self.outputs if one.order), "")


@dataclass
class Comparisons:
    """A program, all variants; the first is the MPI alone."""

    name: str
    variants: list[VariantRuns]
    compared_numbers: int
    varying: int
    """Words of the output that change between runs of the MPI alone, which aren't compared."""
    checker: str | None = None
    """What has looked at the outputs instead of a comparison."""
    first_run: str = ""
    """How the first run was another one than those after it: sentences; empty where it wasn't."""

    def ratio(self, measured: VariantRuns) -> Ratio:
        """Return time over that of the MPI alone."""
        alone = self.variants[0]
        pair: tuple[Times, Times] = (np.asarray(alone.seconds), np.asarray(measured.seconds))
        return compare_pairs([pair])


@dataclass(frozen=True)
class MeasureOptions:
    """How to measure."""

    rounds: int = 5
    tolerance: float = 1e-9
    ignored: Sequence[re.Pattern[str]] = ()
    checker: str | None = None
    """A command that gets the path of a run's output, and says by its status whether that is right."""
    timeout_s: float = 600.0
    record: bool = True
    given: GivenInput = field(default_factory=none)
    """Standard input for each run."""


def measure(
    runner: Runner, variants: Sequence[Variant], asked: MeasureOptions, done: Callable[[str], None] = lambda _: None
) -> Comparisons:
    """Run all variants by turns, `asked.rounds` times each, and once more each with all MPI calls recorded.

    The first variant has to be the MPI alone: its outputs are the reference. A warm-up run of it comes first, whose
    time doesn't count. `done` is called with a line after each run. Raises BenchError where a run fails.
    """
    measured = [VariantRuns(variant) for variant in variants]
    outputs: dict[int, list[str]] = defaultdict(list)
    warming = _run(runner, variants[0], None, asked)
    outputs[0].append(warming.out)
    done(f"warmed up: {warming.seconds:.3f} s")
    for turn in range(asked.rounds):
        # Each takes each place in a round by turns: whoever runs first may find a colder machine.
        for offset in range(len(variants)):
            index = (turn + offset) % len(variants)
            ended = _run(runner, variants[index], None, asked)
            measured[index].seconds.append(ended.seconds)
            outputs[index].append(ended.out)
            done(f"{variants[index].name}: {ended.seconds:.3f} s")
    if asked.record:
        for index, variant in enumerate(variants):
            measured[index].recorded, ended = _recorded(runner, variant, asked)
            outputs[index].append(ended.out)
            done(f"{variant.name}: recorded")
    common = reference(outputs[0], asked.tolerance, asked.ignored)
    if common.first_differs and asked.checker is None:
        # It says what no later run of the MPI alone says.
        del outputs[0][0]
    for index, one in enumerate(measured):
        one.outputs = [_compared(text, common, asked) for text in outputs[index]]
    first = _of_first_run(warming, common.first_differs if asked.checker is None else "", measured[0])
    return Comparisons(runner.name, measured, common.numbers, len(common.varying), asked.checker, first)


SLOW_START, SLOW_START_S = 2.0, 0.2
"""The first run took longer than each later one of the MPI alone by this factor, and this much."""


def _of_first_run(warming: RunResult, differs: str, alone: VariantRuns) -> str:
    """Say how the first run, which isn't timed, differs from the others: those may do less than the program's user."""
    told = []
    if differs:
        told.append(f"the first run printed something else than all later ones ({differs})")
    if len(alone.seconds) > 1:
        longest = max(alone.seconds)
        if warming.seconds > max(SLOW_START * longest, longest + SLOW_START_S):
            told.append(f"the first run took {warming.seconds:.3g} s, later ones at most {longest:.3g} s")
    if not told:
        return ""
    return (
        f"{'; '.join(told)}: does the program keep something between runs (a restart file, a cache)? Times and outputs"
        " are those of later runs"
    )


def _run(runner: Runner, variant: Variant, folder: Path | None, asked: MeasureOptions) -> RunResult:
    settings = variant.settings
    if folder is not None:
        settings = {**(OFF if settings is None else settings), "PALMETTE_TRACE": str(folder)}
    ended = runner.run(settings, asked.timeout_s, asked.given.rewound())
    if ended.status != 0:
        said = ended.err.splitlines()
        last = next((line for line in reversed(said) if any(map(str.isalnum, line))), "it said nothing")
        last = refuses_root(said) or last
        raise BenchError(f"{variant.name}: {runner.name} ended with status {ended.status}: {last.strip()}")
    return ended


def _compared(text: str, common: Reference, asked: MeasureOptions) -> Comparison:
    if asked.checker is None:
        return compare(common, text, asked.tolerance, asked.ignored)
    with tempfile.NamedTemporaryFile("w", suffix=".out", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            words = [*shlex.split(asked.checker), file.name]
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        except (OSError, ValueError) as error:
            raise BenchError(f"--check {asked.checker}: {error}; correct the command") from None
    said = (done.stdout + done.stderr).strip().splitlines()
    return Comparison(done.returncode == 0, said[-1] if said else f"the checker's status is {done.returncode}")


def _recorded(runner: Runner, variant: Variant, asked: MeasureOptions) -> tuple[RunProfile, RunResult]:
    with tempfile.TemporaryDirectory(prefix="palmette-app-") as temporary:
        folder = Path(temporary) / "calls"
        folder.mkdir()
        ended = _run(runner, variant, folder, asked)
        try:
            job = read_job(folder)
            try:
                seats, _ = seats_of(job, runner.topology)
            except RecordError:  # a topology of other hosts: without links
                seats = None
            findings = findings_of(job, seats)
        except RecordError as error:
            raise BenchError(f"{variant.name} wasn't recorded: {error}") from None
        by_function: dict[str, float] = defaultdict(float)
        calls: dict[str, int] = defaultdict(int)
        for row in sums_of(job).rows:
            if row.function not in ENDS:
                by_function[row.function] += row.seconds
                calls[row.function] += row.calls
        served = sum(plan.calls for process in job.processes for plan in process.recorded.plans[1:])
        found = RunProfile(sum(by_function.values()), dict(by_function), dict(calls), served=served)
        if seats is not None and len({process.host for process in job.processes}) > 1:
            loads = of_trace(findings.view, seats)
            found.uncounted = loads.uncounted
            busiest = max(loads.links, key=lambda link: max(link.out.sum(), link.into.sum()))
            found.busiest_link = busiest.group.name
            found.busiest_bytes = float(max(busiest.out.sum(), busiest.into.sum()))
        found.missing_ranks = len(job.missing_ranks())
        processors = len(os.sched_getaffinity(0))
        if {process.host for process in job.processes} == {socket.gethostname()} and job.size > processors:
            found.oversubscribed = f"{plural(job.size, 'rank')} on {plural(processors, 'processor')}"
        return found, ended
