"""A recorded job: all processes of all nodes, from the files of one folder."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from palmette import _core

SUFFIX = ".palmette"
SIMULATED = "simulated"
"""The boot id of simulated nodes."""
MAX_ENTRIES = 1000
"""Entries of a folder among which a mistyped recording is looked for."""
DRIFT = 50e-6
"""Drift of two nodes' clocks, as a share, where nothing better is known: crystals are within 25 ppm each."""


class RecordError(ValueError):
    """A recording that can't be used; the text names the file and what to do."""


@dataclass
class Process:
    """One process, and the node that it runs on."""

    host: str
    """Name of the node; of several nodes of one name, which containers may have, the name of its file."""
    recorded: _core.RecordedProcess
    here: bool = False
    """Whether it ran under this node's kernel, since that was last started."""
    file: Path | None = None
    section: int = 0
    """Which of the file's processes it is."""

    synced: list[_core.ClockSync] = field(default_factory=list)
    """What was found of its node's clock: at the start, and at the end where all nodes came in time."""
    simulated: bool = False
    """Whether it was recorded by `palmette-lab simulate`: all clocks are one."""
    boot_id: str = ""
    """Boot id of the machine that its node is, or is emulated on."""

    def clock_at(self, real_ns: int) -> tuple[int, int | None]:
        """Return what to add to a time of this node for that of the first rank's node, and up to how many nanoseconds
        that may be wrong; None: nothing is known of it.

        Between two comparisons the offset is interpolated. Beyond a single one, which happens where the job didn't end
        well, the error grows by DRIFT.
        """
        if not self.synced:
            return 0, 0 if self.simulated else None
        first, last = self.synced[0], self.synced[-1]
        if last.real_ns > first.real_ns:
            share = (real_ns - first.real_ns) / (last.real_ns - first.real_ns)
            offset = first.offset_ns + share * (last.offset_ns - first.offset_ns)
            error = float(max(first.error_ns, last.error_ns))
            # The first rank's own node is never wrong by its own clock.
            beyond = max(0, first.real_ns - real_ns, real_ns - last.real_ns) if error else 0
            return round(offset), round(error + DRIFT * beyond)
        error = first.error_ns + DRIFT * abs(real_ns - first.real_ns) if first.error_ns else 0.0
        return first.offset_ns, round(error)

    def calls(self) -> list[_core.RecordedCall]:
        """Calls and requests one by one, by time: of `--trace`, as far as its ring holds them. Cost: O(calls)."""
        return _core.Recording.calls_of(str(self.file), self.section) if self.file else []

    @property
    def name(self) -> str:
        """The rank, or the process where it isn't known yet."""
        rank = self.recorded.rank
        return f"rank {rank}" if rank >= 0 else f"process {self.recorded.pid}"

    @property
    def state(self) -> str:
        """begun, running, finalizing, finalized or aborted; killed: it is gone without a word."""
        name = str(self.recorded.state).rpartition(".")[2]
        if name in ("finalized", "aborted"):
            return name
        if self.recorded.life != _core.LifeSign.unknown:
            return "killed" if self.recorded.life == _core.LifeSign.ended else name
        # By its number, where that means the same here.
        if not self.here or self.recorded.pid_namespace not in (0, _pid_namespace()):
            return name
        return name if Path(f"/proc/{self.recorded.pid}").exists() else "killed"

    def now_ns(self) -> int:
        """The present moment by its node's time: on this node whatever is done to the time of day, else by that."""
        if self.here:
            now = time.monotonic_ns() + self.recorded.node_offset_ns
            if now >= self.recorded.last_real_ns:  # else its monotonic clock is another one (a namespace of times)
                return now
        return time.time_ns()

    def communicator(self, index: int) -> _core.RecordedCommunicator | None:
        """The communicator of that index; None: none, or one that found no place in the table."""
        known = self.recorded.communicators
        return known[index] if 0 < index < len(known) else None


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - a link whose target is no path
    except OSError:
        return 0


@dataclass
class Job:
    """The processes of a job by rank; those whose rank isn't known yet come last."""

    folder: Path
    processes: list[Process] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Ranks of the job, as its processes have it; 0: unknown."""
        return max((process.recorded.size for process in self.processes), default=0)

    @property
    def begin_ns(self) -> int:
        """The first call of a process that knows its rank, by the time of rank 0's node."""
        begins = (
            process.recorded.begin_real_ns + process.clock_at(process.recorded.begin_real_ns)[0]
            for process in self.processes
            if process.recorded.rank >= 0
        )
        return min(begins, default=0)

    def notes(self) -> list[str]:
        """Return what in a recording isn't as it seems, for every page that shows calls and times of it."""
        recorded = [process.recorded for process in self.processes]
        notes = []
        if nested := sum(one.nested for one in recorded):
            notes.append(
                f"{nested:,} calls were made by callbacks inside of others: a part of those, not counted again"
            )
        if left := sum(one.left for one in recorded):
            notes.append(
                f"{left:,} calls were left by a jump (longjmp) or with their thread: how long they took isn't known "
                "and counts as 0"
            )
        if any(one.counter_distrusted for one in recorded):
            notes.append(
                "the kernel found during the run that the processor's time-stamp counter goes wrong: durations may be "
                "wrong, too"
            )
        return notes

    def missing_ranks(self) -> list[int]:
        """Ranks of which no file tells: their nodes' files aren't here."""
        there = {process.recorded.rank for process in self.processes}
        return [rank for rank in range(self.size) if rank not in there]


def read_job(folder: Path, *, with_tables: bool = True) -> Job:
    """Read all files of a folder. Raises RecordError.

    Cost: a mapping per node, and O(entries) with `with_tables`; O(processes) without.
    """
    if not folder.is_dir():
        raise RecordError(f"{folder}: {_no_folder(folder)}")
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise RecordError(f"{folder!r}: a name that isn't UTF-8 can't be read; rename it") from None
    job = Job(folder)
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot_id = ""
    recordings = []
    for path in sorted(folder.glob("*" + SUFFIX)):
        try:
            recordings.append((path, _core.Recording.read(str(path), with_tables)))
        except _core.Error as error:
            raise RecordError(str(error)) from None
    named = Counter(recording.host for _, recording in recordings)
    for path, recording in recordings:
        here = bool(boot_id) and recording.boot_id == boot_id
        host = recording.host if named[recording.host] == 1 else path.name.removesuffix(SUFFIX)
        synced = next((process.synced for process in recording.processes if process.synced), [])
        job.processes += [
            Process(host, process, here, path, section, synced, recording.boot_id == SIMULATED, recording.boot_id)
            for section, process in enumerate(recording.processes)
        ]
    if not job.processes:
        quoted = shlex.quote(str(folder))
        raise RecordError(f"{folder}: it holds no recording yet; `palmette run --profile {quoted}` makes one")
    job.processes.sort(key=lambda one: (one.recorded.rank < 0, one.recorded.rank, one.recorded.pid))
    return job


def _no_folder(path: Path) -> str:
    """Return what is wrong with a path that is no folder, and what may be meant."""
    give = "give the folder that `palmette run --trace` or `--profile` got"
    try:
        if path.suffix == SUFFIX and path.is_file():
            return f"this is one node's file of a recording; give its folder, {path.parent}"
        if path.suffix == ".json" and path.is_file():
            quoted = shlex.quote(str(path))
            return f"this is a file, no recording; a report of a run is read by `palmette explain --report {quoted}`"
        if path.exists():
            return f"this is a file, no recording; {give}"
        near = [one.name for one in islice(path.parent.iterdir(), MAX_ENTRIES) if next(one.glob("*" + SUFFIX), None)]
    except (OSError, ValueError):  # a folder that can't be looked into, a name far too long
        near = []
    meant = get_close_matches(path.name, near, n=1)
    return f"no such folder{f' (did you mean {path.with_name(meant[0])}?)' if meant else ''}; {give}"
