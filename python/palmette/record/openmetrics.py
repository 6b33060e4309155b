"""What a host knows, as OpenMetrics: its links, a recorded job, jobs that have ended (PALMETTE_JOBLOG), its daemon."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.aggregator import status
from palmette.record.fabric import Port, job_bytes
from palmette.record.waiting import State

MOST_JOBLOG_BYTES = 1 << 28
Labels = Mapping[str, str]


@dataclass
class Family:
    """One metric with its samples."""

    name: str
    """Name without `_total`."""
    kind: str
    """`counter` or `gauge`."""
    text: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """Add a sample."""
        self.samples.append((labels, value))

    def lines(self) -> Iterator[str]:
        """Yield the lines of OpenMetrics' text format (1.0.0, section "Text format")."""
        yield f"# TYPE {self.name} {self.kind}"
        yield f"# HELP {self.name} {_escaped(self.text)}"
        suffix = "_total" if self.kind == "counter" else ""
        for labels, value in self.samples:
            told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            number = str(int(value)) if float(value).is_integer() else repr(float(value))
            yield f"{self.name}{suffix}{{{told}}} {number}" if told else f"{self.name}{suffix} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def exposition(families: Sequence[Family]) -> str:
    """Return the whole text."""
    return "".join(f"{line}\n" for one in families if one.samples for line in one.lines()) + "# EOF\n"


def links(ports: Sequence[Port], host: str) -> list[Family]:
    """Return the counters of a host's adapters."""
    moved = Family("palmette_link_bytes", "counter", "Bytes of frames that went over an adapter's port.")
    rate = Family("palmette_link_capacity_bytes_per_second", "gauge", "Of the port, in each direction.")
    errors = Family("palmette_link_errors", "counter", "Frames dropped or damaged, links retrained.")
    waited = Family("palmette_link_waited_ticks", "counter", "InfiniBand's PortXmitWait: data without credits.")
    for port in ports:
        where = {"host": host, "link": port.name}
        moved.add(port.sent, **where, direction="out")
        moved.add(port.received, **where, direction="in")
        errors.add(port.errors, **where)
        if port.rate is not None:
            rate.add(port.rate, **where)
        if port.waited is not None:
            waited.add(port.waited, **where)
    return [moved, rate, errors, waited]


def running(state: State, host: str) -> list[Family]:
    """Return what a recorded job does on a host. Cost: O(pairs of ranks that sent something)."""
    ranks = Family("palmette_job_processes", "gauge", "Processes of the recorded job, by state.")
    waiting = Family("palmette_job_processes_in_mpi", "gauge", "Processes that are in an MPI call now.")
    moved = Family("palmette_job_bytes", "counter", "Bytes that the job's program exchanged with other hosts by MPI.")
    counts: dict[str, int] = defaultdict(int)
    for process in state.job.processes:
        if process.host == host:
            counts[str(process.state)] += 1
    for name, count in sorted(counts.items()):
        ranks.add(count, host=host, state=name)
    waiting.add(sum(one.process.host == host for one in state.open), host=host)
    if (sums := job_bytes(state.job, host)) is not None:
        moved.add(sums[0], host=host, direction="out")
        moved.add(sums[1], host=host, direction="in")
    return [ranks, waiting, moved]


ENDED = {
    "seconds": ("palmette_jobs_seconds", "Seconds between MPI_Init and MPI_Finalize."),
    "calls_served": ("palmette_jobs_calls_served", "Collectives of ranks 0 that palmette served."),
    "calls_left": ("palmette_jobs_calls_left", "Collectives of ranks 0 that went to the MPI."),
    "served_seconds": ("palmette_jobs_served_seconds", "Seconds that served collectives took on ranks 0."),
    "saved_seconds": ("palmette_jobs_saved_seconds", "Seconds less than with the MPI alone, estimated."),
}
"""Sums over jobs, by the key of a job's line: name and help."""


def ended(path: Path) -> list[Family]:
    """Return sums over the lines of a PALMETTE_JOBLOG, a file or a folder. Raises OSError.

    Lines that are no job's are counted as damaged. Cost: a read of all of them, at most 256 MiB of a file.
    """
    jobs = Family("palmette_jobs", "counter", "Jobs that have ended.")
    ranks = Family("palmette_jobs_ranks", "counter", "Their ranks.")
    off = Family("palmette_jobs_off", "counter", "Jobs in which nothing was served, by reason.")
    damaged = Family("palmette_jobs_damaged_lines", "counter", "Lines that are no job's.")
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    reasons: dict[str, int] = defaultdict(int)
    bad = 0
    for line in _job_lines(path):
        job = _job_of(line)
        if job is None:
            bad += 1
            continue
        of_kind = sums[str(job.get("program", "")), str(job.get("mpi", ""))]
        of_kind["jobs"] += 1
        for key in ("ranks", *ENDED):
            of_kind[key] += _number(job.get(key))
        if "off" in job:
            reasons[str(job["off"])] += 1
    families = {key: Family(name, "counter", text) for key, (name, text) in ENDED.items()}
    for (program, mpi), of_kind in sorted(sums.items()):
        where = {"program": program, "mpi": mpi}
        jobs.add(of_kind["jobs"], **where)
        ranks.add(of_kind["ranks"], **where)
        for key, family in families.items():
            family.add(of_kind[key], **where)
    for reason, count in sorted(reasons.items()):
        off.add(count, reason=reason)
    damaged.add(bad)
    return [jobs, ranks, *families.values(), off, damaged]


def _job_lines(path: Path) -> Iterator[str]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            left = MOST_JOBLOG_BYTES
            for line in lines:
                left -= len(line)
                if left < 0:
                    break
                if line.strip():
                    yield line


def _job_of(line: str) -> dict[str, Any] | None:
    try:
        job = json.loads(line)
    except ValueError:
        return None
    return job if isinstance(job, dict) and "palmette" in job else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def daemon(told: status.Status) -> list[Family]:
    """Return what `palmette-aggregator status` tells."""
    made = []
    for name, kind, text, samples in status.families(told):
        one = Family(name.removesuffix("_total") if kind == "counter" else name, kind, text)
        one.samples = [(labels | {"daemon": told["name"] or told["address"]}, value) for labels, value in samples]
        made.append(one)
    return made
