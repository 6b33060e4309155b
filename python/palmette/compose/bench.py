"""`palmette bench compose`: composed plans against the MPI's collectives in one job (composebench), and plan counts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palmette import _core
from palmette.compose.composition import Composition, named
from palmette.compose.errors import ComposeError
from palmette.compose.factoring import Factoring, outer_traffic
from palmette.compose.text import stages_json
from palmette.measure.job_output import error_line
from palmette.measure.places import Place, read_topology
from palmette.measure.running import TIMED_OUT
from palmette.measure.statistics import Ratio, Summary, Times, compare_groups, in_time, summarize
from palmette.mpi.abi import Abi, measuring_program, preload_library
from palmette.mpi.install import Installation

PROGRAM = "composebench"
COLLECTIVES = {
    "gather": "gather",
    "scatter": "scatter",
    "broadcast": "bcast",
    "broadcast_scatter_allgather": "bcast",
    "reduce": "reduce",
    "reduce_scatter_gather": "reduce",
    "alltoall": "alltoall",
    "allgather": "allgather",
    "reduce_scatter": "reduce_scatter",
    "allreduce": "allreduce",
    "allreduce_reduce_broadcast": "allreduce",
}
"""The collective that each composition implements, whose bound holds for it."""
REDUCES = ("reduce", "reduce_scatter_gather", "reduce_scatter", "allreduce", "allreduce_reduce_broadcast")


@dataclass(frozen=True)
class NamedFactoring:
    """A factoring with a name such as `striped`."""

    name: str
    factoring: Factoring
    predicted_s: float | None = None


@dataclass(frozen=True)
class BenchCase:
    """One composition and size, and the factorings to measure against the MPI's collective."""

    composition: str
    size_bytes: int
    variants: tuple[NamedFactoring, ...]


@dataclass(frozen=True)
class Settings:
    """Durations and limits of the measurement."""

    seconds: float = 2.0
    min_rounds: int = 5
    max_rounds: int = 200
    root: int = 0
    drop: float = 0.0
    """Variants slower than the fastest by more than this factor are dropped after three rounds; 0: none are."""
    timeout_s: float | None = None


@dataclass(frozen=True)
class PlanCounts:
    """Counts of a plan, which don't depend on the load of the machine."""

    messages: int
    outer_level: str
    outer_messages: int
    outer_bytes: int
    scratch_bytes: int
    stages: int
    chain: int


@dataclass(frozen=True)
class Row:
    """One variant, measured: the MPI (no factoring), or a factoring."""

    name: str
    factoring: Factoring | None
    time: Summary
    ratio: Ratio | None
    """To the MPI; None for the MPI itself."""
    made_s: float
    dropped: bool
    counts: PlanCounts | None


@dataclass(frozen=True)
class Cell:
    """One composition and size of one job."""

    composition: str
    size_bytes: int
    ranks: int
    bound_s: float | None
    rows: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """The fastest factoring."""
        return min(self.rows[1:], key=lambda row: row.time.median_s)


def composition_of(name: str, ranks: int, size_bytes: int, root: int) -> Composition:
    """Return the composition that composebench makes. Raises `_core.Error`."""
    # Sums are of 4-byte numbers; data that is only moved may be cut at any byte.
    element = 4 if name in REDUCES else 1
    return named(name, ranks, size_bytes, element_bytes=element, **({"root": root} if root else {}))


def job_on(place: Place, placement: str, ppn: int | None, ranks: int | None) -> tuple[_core.Job, list[str]]:
    """Return the job and the hosts of its ranks. Raises LabError, PlacementError, TopologyError."""
    hosts = place.place(placement, ppn, ranks)
    document = read_topology(place.topology_path)
    if document is None:
        return _core.Job.from_groups(["node"], [[0]] * len(hosts)), hosts
    return _core.Job.on_hosts(_core.Machine.from_json(document), hosts), hosts


def plan_counts(composition: Composition, factoring: Factoring, job: _core.Job) -> PlanCounts:
    """Verify a plan and return its counts. Raises `_core.Error`, ComposeError where it is wrong."""
    plan = factoring.plan(composition, job)
    complaint = plan.verify()
    if complaint is not None:
        raise ComposeError(f"{composition.name} with {factoring.text()} is wrong: {complaint}")
    counted = plan.count()
    level, messages, size = outer_traffic(plan)
    return PlanCounts(
        counted.messages,
        level,
        messages,
        size,
        max(plan.scratch_bytes),
        len(stages_json(plan)),
        counted.longest_chain,
    )


def program(abi: Abi) -> Path:
    """Return the program for an ABI. Raises ComposeError when it isn't built."""
    return measuring_program(PROGRAM, abi, ComposeError)


def measure(
    place: Place,
    mpi: Installation,
    placement: str,
    asked: Sequence[BenchCase],
    settings: Settings,
    *,
    ppn: int | None = None,
    ranks: int | None = None,
) -> list[Cell]:
    """Measure in one job. Raises ComposeError, LabError, PlacementError, RunError, TopologyError, `_core.Error`."""
    job, hosts = job_on(place, placement, ppn, ranks)
    env = {"LD_PRELOAD": str(preload_library(mpi.abi))}
    if place.topology_path is not None:
        env["PALMETTE_TOPOLOGY"] = str(place.topology_path)
    words = [str(program(mpi.abi))]
    for one in asked:
        words += ["--cell", f"{one.composition}:{one.size_bytes}"]
        words += [word for variant in one.variants for word in ("--factoring", variant.factoring.runtime_text())]
    words += [
        *("--root", str(settings.root)),
        *("--seconds", f"{settings.seconds:g}"),
        *("--min-iterations", str(min(settings.min_rounds, settings.max_rounds))),
        *("--max-iterations", str(settings.max_rounds)),
        *("--drop", f"{settings.drop:g}"),
        *("--clock", place.clock),
        *("--wait", "spin" if place.spins else "sleep"),
    ]
    limit_s = settings.timeout_s or 120 + len(asked) * (120 + 10 * settings.seconds)
    with tempfile.TemporaryDirectory(prefix="palmette-compose-", dir=place.folder) as folder:
        output = Path(folder) / "samples.jsonl"
        done = place.run(mpi, hosts, [*words, "--output", str(output)], env, limit_s)
        events = _events(output, done, len(asked))
    cells = [event for event in events if event["event"] == "cell"]
    return [_cell(one, event, job, settings.root) for one, event in zip(asked, cells, strict=True)]


def _events(path: Path, done: subprocess.CompletedProcess[str], cells: int) -> list[dict[str, Any]]:
    try:
        events: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        events = []
    finished = sum(event["event"] == "cell" for event in events)
    if done.returncode == TIMED_OUT:
        raise ComposeError(f"the job was ended at its time limit after {finished} of {cells} compositions; take fewer")
    if done.returncode == 1 and finished == cells:
        raise ComposeError(f"a wrong result: {error_line(done)}")
    if done.returncode != 0 or finished < cells:
        raise ComposeError(f"mpiexec ended with status {done.returncode}: {error_line(done)}")
    return events


def _cell(asked: BenchCase, event: dict[str, Any], job: _core.Job, root: int) -> Cell:
    composition = composition_of(asked.composition, job.size, asked.size_bytes, root)
    bound = _core.bound(job, COLLECTIVES[asked.composition], asked.size_bytes, root)
    rows: list[Row] = []
    first: Times | None = None
    for variant, entry in zip((None, *asked.variants), event["variants"], strict=True):
        times = _times(entry)
        ratio = compare_groups(times, first) if first is not None else None
        first = times if first is None else first
        rows.append(
            Row(
                variant.name if variant else "the MPI",
                variant.factoring if variant else None,
                summarize(times),
                ratio,
                float(entry["made_s"]),
                bool(entry["dropped"]),
                plan_counts(composition, variant.factoring, job) if variant else None,
            )
        )
    return Cell(asked.composition, asked.size_bytes, job.size, bound.seconds or None, tuple(rows))


def _times(entry: dict[str, Any]) -> Times:
    """The times of calls that started in time on all ranks; of all where none did."""
    times, late = np.array(entry["time_s"]), np.array(entry["late_s"])
    good = in_time(times, late)
    return times[good] if good.any() else times
