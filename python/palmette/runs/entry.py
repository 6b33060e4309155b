"""What a recording says, as rows of the archive."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from palmette import _core
from palmette.analysis import Trace
from palmette.record.functions import ENDS
from palmette.record.machine import Seats
from palmette.record.reading import Job
from palmette.record.sums import place_of, told
from palmette.record.symbols import Place, Resolver
from palmette.record.tables import size_class
from palmette.run.choices import KEPT_TOPOLOGY


@dataclass
class Calls:
    """Calls of all ranks together."""

    ranks: set[int] = field(default_factory=set)
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0


CallKey = tuple[str, str, str, int, str]
"""Function, place, path, size class, level."""


@dataclass
class Entry:
    """One run; the columns of the table `runs` say what its members are."""

    identity: str
    began: str | None
    program: str
    build_id: str
    kind: str
    ranks: int
    nodes: int
    placement: str
    hosts: Sequence[str]
    topology: str
    time_s: float | None
    computing_s: float | None
    waiting_s: float | None
    recorded: str
    tags: Mapping[str, str]
    calls: Mapping[CallKey, Calls]
    waits: Mapping[tuple[str, str], float]
    samples: Mapping[tuple[str, str], tuple[float, float]]


def entry_of(folder: Path, tags: Mapping[str, str]) -> Entry:
    """Read a recording. Cost: as `palmette report`. Raises RecordError."""
    trace = Trace(folder)
    job, found = trace.job, trace.document
    sampled = trace.contexts
    return Entry(
        identity_of(job), found["began"], found["program"], _build_id(job), found["kind"], job.size, found["nodes"],
        placement_of(trace.seats), _hosts(trace.seats), _hash_of(folder / KEPT_TOPOLOGY), found["time_s"] or None,
        found["split"]["computing_s"], found["split"]["waiting_s"], str(folder.resolve()), tags,
        calls_of(job, trace.seats),
        {
            (found["functions"][row["function"]], found["places"][row["place"]]): row["waiting_s"]
            for row in found["paths"] if row["waiting_s"] is not None
        } if trace.has_calls else {},
        {
            (site.function, site.file): (own_s, whole_s) for site, whole_s, own_s in sampled.functions()
        } if sampled else {},
    )  # fmt: skip


def identity_of(job: Job) -> str:
    """Return what tells a job from all others, wherever its files lie."""
    processes = sorted((one.host, one.recorded.pid, one.recorded.begin_real_ns) for one in job.processes)
    return hashlib.sha256(json.dumps(processes).encode()).hexdigest()[:32]


def placement_of(seats: Seats | None) -> str:
    """Return a hash of which ranks share which groups of each level of the network; empty: not known.

    Names of hosts and switches aren't in it: other nodes below the same switches are the same placement.
    """
    if seats is None:
        return ""
    renumbered = []
    for groups in seats.groups_of_ranks[: seats.network_levels]:
        numbers: dict[int, int] = {}
        renumbered.append([numbers.setdefault(group, len(numbers)) for group in groups])
    return hashlib.sha256(json.dumps(renumbered).encode()).hexdigest()[:12]


def calls_of(job: Job, seats: Seats | None) -> dict[CallKey, Calls]:
    """Return the sums of calls. Cost: O(sums of all processes), and a reading of each module on a call path."""
    resolver = Resolver()
    resolver.add(frame for process in job.processes for path in process.recorded.paths for frame in path)
    level_of = _levels(job, seats)
    found: dict[CallKey, Calls] = defaultdict(Calls)
    for process in job.processes:
        recorded = process.recorded
        paths = [(str(place_of(path, resolver)), _path(told(path, resolver))) for path in recorded.paths]
        for one in recorded.aggregates:
            if one.is_request or one.function in ENDS or not one.calls:
                continue
            place, path = paths[one.path] if one.path < len(paths) else ("unknown", "unknown")
            communicator = process.communicator(one.communicator)
            level = level_of.get(communicator.id, "") if communicator else ""
            row = found[one.function, place, path, size_class(one.bytes, one.calls), level]
            row.ranks.add(recorded.rank)
            row.calls += one.calls
            row.bytes += one.bytes
            row.seconds += one.seconds
            row.longest_s = max(row.longest_s, one.longest_s)
    return found


def _path(places: Sequence[Place]) -> str:
    return ";".join(str(place) for place in reversed(places)) or "unknown"


def _levels(job: Job, seats: Seats | None) -> dict[int, str]:
    """Return by number of a communicator the outermost level that its ranks differ in."""
    if seats is None:
        return {}
    members: dict[int, set[int]] = defaultdict(set)
    for process in job.processes:
        for one in process.recorded.communicators[1:]:
            members[one.id].add(process.recorded.rank)
    found = {}
    for number, ranks in members.items():
        if min(ranks) < 0:
            continue
        for name, groups in zip(seats.levels, seats.groups_of_ranks, strict=True):
            if len({groups[rank] for rank in ranks}) > 1:
                found[number] = name
                break
        else:
            found[number] = "one rank" if len(ranks) == 1 else "processor"
    return found


def _build_id(job: Job) -> str:
    for process in job.processes:
        executable = process.recorded.executable
        for path in process.recorded.paths:
            for frame in path:
                if isinstance(frame, _core.RecordedFrame) and frame.module == executable and frame.build_id:
                    return frame.build_id
    return ""


def _hosts(seats: Seats | None) -> list[str]:
    return [seats.job.host_of(rank) for rank in range(seats.job.size)] if seats else []


def _hash_of(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError:
        return ""
