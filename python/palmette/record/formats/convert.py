"""A recording written in another tool's format, whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from palmette.record.formats.counts import Counts
from palmette.record.formats.selection import Selection
from palmette.record.limits import limits_of
from palmette.record.reading import Job, RecordError


@dataclass(frozen=True)
class Format:
    """A row of the table of formats."""

    module: str
    needs_calls: bool = False
    """Whether it needs single calls, which a profile doesn't have."""
    has_calls: bool = True
    """Whether it has single calls where a trace is converted; else sums, as of a profile."""
    is_folder: bool = False
    passes: int = 1
    """How often the writer reads the calls: messages are matched before anything is written."""


FORMATS = {
    "otf2": Format("otf2", needs_calls=True, is_folder=True, passes=2),
    "perfetto": Format("perfetto", needs_calls=True, passes=2),
    "chrome": Format("chrome", needs_calls=True, passes=2),
    "speedscope": Format("speedscope"),
    "folded": Format("folded", has_calls=False),
    "pprof": Format("pprof", has_calls=False),
    "cali": Format("cali", has_calls=False),
    "csv": Format("table"),
    "sqlite": Format("database", passes=2),
}


@dataclass(frozen=True)
class Conversion:
    """Counts of what a conversion has written."""

    counts: Counts
    ranks: int
    notes: list[str]


def convert(
    job: Job,
    name: str,
    output: Path,
    *,
    ranks: Sequence[int] | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Write a job, some of its ranks (None: all), or a window of it in the format `name`.

    Times are seconds since the job's first call. `progress` is told how many calls were read, and of how many. Output
    that is there is replaced when the new one is complete. Raises RecordError for what can't be converted, OSError
    where it can't be written. Cost: O(calls log calls), 5 to 40 us each; the calls of one process are in memory.
    """
    form = FORMATS[name]
    total = 0
    selection = Selection(
        job, ranks, from_s, until_s, (lambda done: progress(done, total)) if progress is not None else None
    )
    total = form.passes * selection.recorded_calls
    if not selection.records_calls and (form.needs_calls or selection.is_window):
        what = f"which {name} needs" if form.needs_calls else "of which some could be in a window"
        others = ", ".join(other for other, row in FORMATS.items() if not row.needs_calls)
        raise RecordError(
            f"{job.folder}: a profile has no single calls, {what}; record with `palmette run --trace`, or take all "
            f"of it as {others}"
        )
    write = import_module(f"palmette.record.formats.{form.module}").write
    if _is_device(output) and not form.is_folder and name != "sqlite":
        counts = write(output, selection)
        _refuse_nothing(counts, selection)
    else:
        counts = _replace(output, form, lambda path: _refuse_nothing(write(path, selection), selection))
    return Conversion(counts, len(selection.chosen), _notes(selection, form))


def _refuse_nothing(counts: Counts, selection: Selection) -> Counts:
    if counts.calls or counts.requests:
        return counts
    folder = selection.job.folder
    if any(selection.everyone[index].recorded.calls for index in selection.chosen) and not selection.recorded_calls:
        raise RecordError(f"{folder}: its rings hold no single call; PALMETTE_TRACE_BYTES gives them more memory")
    if not selection.is_window:
        raise RecordError(f"{folder}: no call has ended yet; there is nothing to convert")
    end_ns = max(selection.since_begin_ns(one, one.recorded.last_real_ns) for one in selection.everyone)
    raise RecordError(f"no call is in this window; the recording goes from 0 s to {end_ns * 1e-9:.6g} s")


def _is_device(output: Path) -> bool:
    """Whether it is there and neither file nor folder: a pipe, /dev/stdout."""
    return output.exists() and not output.is_file() and not output.is_dir()


def _replace(output: Path, form: Format, write: Callable[[Path], Counts]) -> Counts:
    """Write beside `output`, then rename over it. A folder can't be renamed over another one: the old one is moved
    away first, and comes back where the new one can't take its place.
    """
    try:
        target = output.resolve()
    except RuntimeError:  # a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(output)) from None
    if target.is_dir() and not form.is_folder:
        raise RecordError(f"{output}: this is a folder; name a file with -o")
    if form.is_folder and target.exists() and not _is_archive(target):
        raise RecordError(f"{output}: it is there and no OTF2 archive; name another folder with -o")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13), str(output))
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        made, old = beside / "new", beside / "old"
        counts = write(made)
        if not form.is_folder:
            if target.exists():
                shutil.copymode(target, made)
            made.replace(target)
            return counts
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
        return counts
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _is_archive(folder: Path) -> bool:
    """Whether a folder holds an OTF2 archive as they are written here, and nothing else."""
    return folder.is_dir() and {entry.name for entry in folder.iterdir()} == {"traces", "traces.def", "traces.otf2"}


def _notes(selection: Selection, form: Format) -> list[str]:
    job = selection.job
    notes = [*selection.resolver.notes, *job.notes()]
    if missing := job.missing_ranks():
        notes.append(f"{len(missing):,} of {job.size:,} ranks aren't recorded here")
    chosen = [selection.everyone[index] for index in selection.chosen]
    by_calls = selection.records_calls and (form.has_calls or selection.is_window)
    recordings = [process.recorded for process in chosen]
    notes += limits_of(recordings, sums=not by_calls or form.module == "database", communicators=True)
    if (dropped := sum(process.recorded.dropped for process in chosen)) and by_calls:
        notes.append(
            f"of {dropped:,} calls only sums remain (PALMETTE_TRACE_BYTES gives the rings more memory): single calls "
            "are the last ones"
        )
    hosts = {process.host for process in chosen}
    if by_calls and len(hosts) > 1 and any(not one.synced and not one.simulated for one in chosen):
        notes.append("clocks of the nodes weren't compared: times of different nodes may not fit together")
    return notes
