"""The lines that jobs leave for their site (PALMETTE_JOBLOG), and what many of them say: who is served, who isn't."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.runs.schema import ArchiveError
from palmette.units import plural

MAX_PROGRAMS = 20
"""Programs that the text shows."""
SECONDS_AN_HOUR = 3600.0
_NUMBERS = ("ranks", "nodes", "seconds", "calls_served", "calls_left", "served_seconds")


@dataclass
class JobSums:
    """What some jobs have in common, added up. Hours are node hours: rank 0's seconds times the nodes of its job."""

    jobs: int = 0
    served: int = 0
    """Jobs with a call that palmette has served."""
    users: set[int] = field(default_factory=set)
    hours: float = 0.0
    served_hours: float = 0.0
    """Node hours in served calls."""
    compared: int = 0
    """Jobs that know from compared calls what they have saved."""
    saved_hours: float = 0.0

    def add(self, job: dict[str, Any]) -> None:
        """Add a job."""
        self.jobs += 1
        self.served += job["calls_served"] > 0
        self.users.add(job.get("uid", -1))
        self.hours += job["seconds"] * job["nodes"] / SECONDS_AN_HOUR
        self.served_hours += job["served_seconds"] * job["nodes"] / SECONDS_AN_HOUR
        if isinstance(job.get("saved_seconds"), (int, float)):
            self.compared += 1
            self.saved_hours += job["saved_seconds"] * job["nodes"] / SECONDS_AN_HOUR

    def to_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return {**vars(self), "users": len(self.users), "saved_hours": self.saved_hours if self.compared else None}


@dataclass
class Jobs:
    """The jobs of a log."""

    all: JobSums
    by_program: dict[str, JobSums]
    """Sums by program, the one with the most node hours first."""
    off: dict[str, JobSums]
    """Sums by the reason why nothing was served, the most frequent first."""
    first: str
    last: str
    skipped: int
    """Lines that no job has written."""

    def to_json(self) -> dict[str, Any]:
        """Return it as a document."""
        rows = [{"program": name, **one.to_json()} for name, one in self.by_program.items()]
        off = [{"reason": reason, **one.to_json()} for reason, one in self.off.items()]
        return {
            "first": self.first, "last": self.last, "skipped_lines": self.skipped, **self.all.to_json(),
            "programs": rows, "off": off,
        }  # fmt: skip


def lines_of(path: Path) -> Iterable[str]:
    """Return the lines of a log: a file, or all files of a folder, by name. Raises ArchiveError."""
    try:
        for file in sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]:
            yield from file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ArchiveError(
            f"{path}: {error.strerror}; give the file or folder that PALMETTE_JOBLOG names, or - for lines of "
            "journalctl -t palmette"
        ) from None


def jobs_of(lines: Iterable[str], name: str, program: str | None = None) -> Jobs:
    """Add up a log, called `name`; what a syslog daemon puts before a line is left out. Raises ArchiveError: no job."""
    found, skipped, others = [], 0, Counter[str]()
    for line in filter(str.strip, lines):
        job = _job(line)
        if job is None:
            skipped += 1
        elif program in (None, job["program"]):
            found.append(job)
        else:
            others[job["program"]] += 1
    if not found:
        there = f"; it has {', '.join(sorted(others))}" if others else ""
        what = f"no job of {program}" if program else "no line of a job"
        raise ArchiveError(f"{name} has {what}{there or '; docs/guide/site.md says how jobs write them'}")
    by_program: dict[str, JobSums] = defaultdict(JobSums)
    off: dict[str, JobSums] = defaultdict(JobSums)
    everything = JobSums()
    for job in found:
        everything.add(job)
        by_program[job["program"]].add(job)
        if job["calls_served"] == 0:
            off[str(job.get("off", "all calls were left to the MPI"))].add(job)
    times = sorted(str(job["time"]) for job in found)
    return Jobs(
        everything,
        dict(sorted(by_program.items(), key=lambda item: (-item[1].hours, item[0]))),
        dict(sorted(off.items(), key=lambda item: (-item[1].jobs, item[0]))),
        times[0], times[-1], skipped,
    )  # fmt: skip


def _job(line: str) -> dict[str, Any] | None:
    start = re.search(r'\{"palmette"', line)
    if start is None:
        return None
    try:
        job = json.loads(line[start.start() :])
    except ValueError:
        return None
    is_whole = isinstance(job, dict) and all(
        isinstance(job.get(name), (int, float)) and not isinstance(job[name], bool) and job[name] >= 0
        for name in _NUMBERS
    )
    return job if is_whole and isinstance(job.get("program"), str) and isinstance(job.get("time"), str) else None


def text_of(jobs: Jobs) -> list[str]:
    """Return it as text, 80 columns wide."""
    every = jobs.all
    head = f"{plural(every.jobs, 'job')} of {plural(len(every.users), 'user')}, {jobs.first[:10]} to {jobs.last[:10]}: "
    lines = [head + f"{every.served:,} served, {every.jobs - every.served:,} not"]
    if every.compared:
        lines.append(
            f"{every.saved_hours:,.3g} node hours saved, by {plural(every.compared, 'job')} that compared calls (an "
            "estimate)"
        )
    lines += ["", f"{'program':<30} {'jobs':>7} {'served':>7} {'users':>6} {'node h':>8} {'in calls':>9} {'saved':>7}"]
    for name, one in list(jobs.by_program.items())[:MAX_PROGRAMS]:
        share = f"{one.served_hours / one.hours:.0%}" if one.hours > 0 else "-"
        saved = f"{one.saved_hours / one.hours:.1%}" if one.compared and one.hours > 0 else "-"
        lines.append(
            f"{name[:30]:<30} {one.jobs:>7,} "
            f"{one.served:>7,} {len(one.users):>6,} {one.hours:>8,.3g} {share:>9} {saved:>7}"
        )
    if len(jobs.by_program) > MAX_PROGRAMS:
        lines.append(f"and {len(jobs.by_program) - MAX_PROGRAMS:,} more (--json has all)")
    if jobs.off:
        lines += ["", "not served, and why"]
        for reason, one in jobs.off.items():
            lines.append(f"{one.jobs:>7,} of {plural(len(one.users), 'user')}: {reason}"[:80])
    if jobs.skipped:
        lines += ["", f"{plural(jobs.skipped, 'line')} left out: no job has written them"]
    return lines
