"""What costs a recorded job most, in sentences: late ranks, calls that take longer than they must, or nothing.

Waiting is found by `_core.find_waits`. A finding's share is its time, of all ranks together, of the ranks' whole time.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from palmette import _core
from palmette.record.limits import limits_of
from palmette.record.machine import Limits, Seats, mean_block, plain_collective
from palmette.record.processors import Crowd, crowd_of
from palmette.record.reading import Job, Process, RecordError
from palmette.record.sums import place_of
from palmette.record.symbols import Place, Resolver, frames_of
from palmette.run.choices import KEPT_TOPOLOGY
from palmette.units import bytes_text

LEAST_SHARE = 0.01
"""Share of the ranks' time below which a cost is no finding."""
BOUND_SHARE = 0.1
"""Share of the ranks' time above which it is told that physics needs it."""
MAX_FINDINGS = 5
MAJORITY_SHARE = 0.5
"""Share of the waiting at one place above which the rank that causes it is named."""
SECOND_RANK_SHARE = 0.25
"""Share of the waiting at one place above which a second rank is named, maybe another phase's."""


class Cause(Protocol):
    """What made a rank late: palmette.record.causes.Root."""

    @property
    def rank(self) -> int:
        """Rank in MPI_COMM_WORLD."""

    @property
    def function(self) -> str:
        """The call, or the one before which it computes."""

    @property
    def place(self) -> Place:
        """Place where the function is called."""

    @property
    def in_call(self) -> bool:
        """Whether the call itself took long."""


class Lateness(Protocol):
    """What made a rank late by samples: palmette.record.late.LateCause."""

    @property
    def sentence(self) -> str:
        """A part of a sentence."""


@dataclass(frozen=True)
class Finding:
    """One thing that costs time."""

    kind: str
    """late_rank, taking_turns, long_call, full_link, chain, small_messages, uneven_bytes, or root_cause: a late rank
    whom nobody waits for by itself.
    """
    function: str
    place: Place
    ranks: tuple[int, ...]
    """Whose fault it is, as far as that can be told."""
    seconds: float
    """Seconds that it costs all ranks together."""
    share: float
    sentence: str
    next: str
    """A command that tells more or helps."""
    window: tuple[float, float] | None = None
    """When the longest single wait was, in seconds from the begin of what efficiencies are about."""
    cause: Cause | None = None
    """What made the rank late, as far as the replay tells."""
    gain: float | None = None
    """Share of the run time that would be saved without it."""
    late: Lateness | None = None
    """What samples say of why ranks were late."""


@dataclass(frozen=True)
class Detail:
    """How much of a trace is kept to be drawn."""

    rows: int = 128
    bins: int = 2048
    calls: int = 40000
    messages: int = 10000
    link_bins: int = 64


SUMS_ALONE = Detail(1, 1, 0, 0)
"""Detail for those who draw nothing."""
TERMINAL = Detail(128, 128, 0, 0)
"""Detail for a timeline of characters."""


@dataclass
class Findings:
    """A job's efficiencies and at most MAX_FINDINGS findings, the costliest first."""

    ranks: int
    calls: int
    efficiencies: _core.Efficiencies
    found: list[Finding]
    waiting_s: float
    """Waiting of all ranks together, in seconds."""
    notes: list[str]
    balance: list[tuple[str, float]]
    """Load balance by level of the machine, outermost first, the ranks within its last level last; their product is
    that of efficiencies."""
    view: _core.TraceView
    places: list[Place]
    """Innermost place outside of MPI for each path of the view."""
    has_whole_bounds: bool
    """Whether bounds of calls are known in full: else links aren't counted in them, and they aren't worth telling."""


def has_calls(job: Job) -> bool:
    """Whether calls were recorded one by one."""
    return any(process.recorded.records_calls for process in job.processes)


def findings_of(job: Job, seats: Seats | None = None, detail: Detail = SUMS_ALONE) -> Findings:
    """Analyse a trace. Raises RecordError where calls weren't recorded one by one. Cost: O(calls)."""
    if not has_calls(job):
        sums = f"`palmette top {shlex.quote(str(job.folder))} --calls`"
        raise RecordError(
            f"{job.folder}: a profile has no single calls; {sums} shows its sums, "
            "`palmette run --trace` records what waits are found in"
        )
    try:
        view = _core.view_trace(
            trace_files(job), seats.groups_of_ranks[: seats.network_levels] if seats else [],
            detail.rows, detail.bins, detail.calls, detail.messages, detail.link_bins,
            Limits(seats).seconds if seats else None,
        )  # fmt: skip
    except _core.Error as error:
        raise RecordError(str(error)) from None
    waits = view.waits
    resolver = Resolver()
    resolver.add(frame for path in waits.paths for frame in frames_of(path))
    places = [place_of(frames_of(path), resolver) for path in waits.paths]
    rates = waits.efficiencies
    whole_s = whole_time_s(waits)
    found = []
    whole = seats is not None and seats.has_whole_bounds
    if whole_s > 0:
        found = [*_late(view, places, whole_s, job), *_long(waits, places, whole_s, job, has_whole_bounds=whole)]
    found = sorted((one for one in found if one.share >= LEAST_SHARE), key=lambda one: -one.seconds)
    crowd = crowd_of(job)
    if crowd:
        found = [_marked(one, crowd) for one in found]
    return Findings(
        len(waits.ranks), waits.calls, rates, found[:MAX_FINDINGS], sum(row.split.waiting_s for row in waits.rows),
        [*([crowd.note] if crowd else []), *_notes(waits, job, has_whole_bounds=whole), *resolver.notes],
        balance_of(dict(zip(waits.ranks, waits.useful_s, strict=True)), seats), view, places, whole,
    )  # fmt: skip


def whole_time_s(waits: _core.Waits) -> float:
    """Return the time of all ranks together, and what calls of several threads at once take besides; 0: not known."""
    inside = sum(row.split.seconds for row in waits.rows if waits.kinds[row.function] != "init")
    accounted_s = sum(waits.useful_s) + inside
    return max(waits.efficiencies.time_s * len(waits.ranks), accounted_s) if waits.efficiencies.time_s > 0 else 0.0


def balance_of(useful_s: Mapping[int, float], seats: Seats | None) -> list[tuple[str, float]]:
    """Split load balance, mean over largest time outside of MPI, by level: how unequal groups are within their parents.

    With M(g) the mean over the ranks of a group g, a level's factor is the largest M one level up over the largest M of
    its own groups; the factors' product is the whole. `useful_s` is by rank.
    """
    if seats is None or not useful_s or len(useful_s) < seats.job.size:
        return []
    above = sum(useful_s.values()) / len(useful_s)
    found = []
    for name, groups in zip(seats.levels, seats.groups_of_ranks, strict=True):
        sums: dict[int, list[float]] = defaultdict(list)
        for rank, group in enumerate(groups):
            sums[group].append(useful_s[rank])
        largest = max(sum(own) / len(own) for own in sums.values())
        found.append((name, above / largest if largest > 0 else 1.0))
        above = largest
    largest = max(useful_s.values())
    found.append(("rank", above / largest if largest > 0 else 1.0))
    return found


def trace_files(job: Job) -> list[_core.TraceFile]:
    """Return the recordings of a job's nodes, with what brings their clocks together."""
    by_file: dict[str, Process] = {}
    for process in job.processes:
        if process.file is not None:
            by_file.setdefault(str(process.file), process)
    files = []
    for path, process in by_file.items():
        if not process.synced:
            files.append(_core.TraceFile(path))
            continue
        first, last = process.synced[0], process.synced[-1]
        end_ns = max(one.recorded.last_real_ns for one in job.processes if one.file == process.file)
        error = process.clock_at(end_ns)[1] or 0
        files.append(
            _core.TraceFile(path, first.real_ns, first.offset_ns, last.real_ns, last.offset_ns, error_ns=error)
        )
    return files


_Placed = TypeVar("_Placed", _core.WaitCause, _core.WaitRow)


def by_place(
    waits: _core.Waits, places: list[Place], items: Iterable[_Placed]
) -> dict[tuple[str, Place], list[_Placed]]:
    """Return causes or rows by function and place; a job's start and end are nobody's."""
    found: dict[tuple[str, Place], list[_Placed]] = defaultdict(list)
    for item in items:
        if waits.kinds[item.function] != "init":
            found[waits.functions[item.function], places[item.path]].append(item)
    return found


def _late(view: _core.TraceView, places: list[Place], whole_s: float, job: Job) -> list[Finding]:
    """Return a finding for each place where ranks wait for others."""
    waits, begin_ns = view.waits, view.begin_ns
    more = f"palmette report {shlex.quote(str(job.folder))} -o report.html"
    found = []
    for (function, place), causes in by_place(waits, places, waits.causes).items():
        by_rank: dict[int, list[_core.WaitCause]] = defaultdict(list)
        for cause in causes:
            by_rank[waits.ranks[cause.process]].append(cause)
        waited_s = {rank: sum(cause.waiting_s for cause in own) for rank, own in by_rank.items()}
        seconds = sum(waited_s.values())
        # Shorter waits may be the clocks'.
        if seconds / max(1, sum(cause.waiters for cause in causes)) <= 2 * waits.clock_error_s:
            continue
        order = sorted(waited_s, key=lambda rank: -waited_s[rank])
        if waited_s[order[0]] < MAJORITY_SHARE * seconds:
            text = f"ranks wait {seconds / whole_s:.0%} of their time for whoever comes last, now one and "
            text += f"now another ({len(order)} ranks, mostly {', '.join(map(str, order[:3]))})"
            window = _longest(causes, begin_ns)
            text = f"{function} at {place}: {text}"
            found.append(
                Finding("taking_turns", function, place, tuple(order), seconds, seconds / whole_s, text, more, window)
            )
            continue
        for rank in order[:2]:
            if waited_s[rank] < SECOND_RANK_SHARE * seconds:
                break
            own = by_rank[rank]
            times = sum(cause.instances for cause in own)
            each = sum(cause.late_s for cause in own) / max(1, times)
            how = "wait" if function.startswith("MPI_Sendrecv") else waits.kinds[own[0].function]
            text = f"{function} at {place}: {_how_late(how, rank, times, each)}"
            text += f"; waiting for it takes {waited_s[rank] / whole_s:.0%} of all ranks' time"
            found.append(
                Finding(
                    "late_rank", function, place, (rank,), waited_s[rank], waited_s[rank] / whole_s, text, more,
                    _longest(own, begin_ns),
                )
            )  # fmt: skip
    return found


def _longest(causes: Iterable[_core.WaitCause], begin_ns: int) -> tuple[float, float]:
    """Return when the longest single wait was."""
    longest = max(causes, key=lambda cause: cause.worst_end_ns - cause.worst_begin_ns)
    return (longest.worst_begin_ns - begin_ns) * 1e-9, (longest.worst_end_ns - begin_ns) * 1e-9


def _marked(finding: Finding, crowd: Crowd) -> Finding:
    """Return the finding, with a word where ranks that share processors may explain it."""
    if finding.kind not in ("taking_turns", "long_call"):
        return finding
    return replace(finding, sentence=f"{finding.sentence}; {crowd.mark}")


def _how_late(kind: str, rank: int, times: int, each_s: float) -> str:
    """Return what a rank that others wait for does; `kind` is that of the calls that wait, `each_s` by how much."""
    often = "once" if times == 1 else f"{times:,} times"
    late = _core.format_duration(each_s)
    if kind == "send":
        return f"rank {rank} begins to receive late, {often}, {late} after the send"
    if kind == "receive":
        return f"rank {rank} sends late, {often}, {late} after the receive has begun"
    if kind == "wait":
        return f"rank {rank} lets others wait {often}, {late} each"
    if kind == "one_to_all":
        return f"the root, rank {rank}, comes late {often}"
    return f"rank {rank} comes last {often}, {late} behind the one before it"


def _long(
    waits: _core.Waits, places: list[Place], whole_s: float, job: Job, *, has_whole_bounds: bool
) -> list[Finding]:
    """Return a finding for each place whose calls take long after all ranks have entered them."""
    kept = job.folder / KEPT_TOPOLOGY
    where = f" --topology {shlex.quote(str(kept))}" if kept.is_file() else ""
    found = []
    for (function, place), rows in by_place(waits, places, waits.rows).items():
        calls = sum(row.split.calls for row in rows)
        bound = sum(row.split.bound_s for row in rows)
        # Of a bound without the links nobody knows what is beyond it.
        beyond = 0.0 if has_whole_bounds else bound
        seconds = sum(row.split.excess_s + row.split.completion_s for row in rows) + beyond
        share = seconds / whole_s
        text = f"{function} at {place}: {calls:,} calls{_size(waits.kinds[rows[0].function], rows)} take "
        text += f"{_core.format_duration(seconds / calls)} each"
        if waits.judged[rows[0].function]:
            text += " besides waiting"
            if bound and has_whole_bounds:
                text += f" and the {_core.format_duration(bound / calls)} that physics needs"
            elif bound:
                text += f" (at least {_core.format_duration(bound / calls)} are needed, links not counted)"
            text += f", {share:.0%} of all ranks' time"
        else:
            text += f", {share:.0%} of all ranks' time; for whom they wait isn't found"
        more = f"palmette top {shlex.quote(str(job.folder))} --calls"
        if (collective := plain_collective(function)) and len(waits.ranks) > 1:
            more = f"palmette explain {collective}{where} --ranks {len(waits.ranks)}"
            if mean := mean_block(function, mean_bytes(job, function), len(waits.ranks)):
                more = f"palmette explain {collective} {mean}{where} --ranks {len(waits.ranks)}"
        found.append(Finding("long_call", function, place, (), seconds, share, text, more))
    return found


def _size(kind: str, rows: Sequence[_core.WaitRow]) -> str:
    """Return ` of 8 bytes`: of each call, or on average."""
    calls, size = sum(row.split.calls for row in rows), sum(row.split.bytes for row in rows)
    if not size:
        return ""
    of = " for up to" if kind == "receive" else " of"
    unit = "B" if size >= 1024 * calls else " bytes"
    alike = all(row.split.bytes * calls == size * row.split.calls for row in rows) and size % calls == 0
    return f"{of} {bytes_text(size / calls)}{unit}{'' if alike else ' on average'}"


def mean_bytes(job: Job, function: str) -> int:
    """Return the bytes of a call of a function, on average over all of the job."""
    sums = [one for process in job.processes for one in process.recorded.aggregates if one.function == function]
    calls = sum(one.calls for one in sums if not one.is_request)
    return sum(one.bytes for one in sums if not one.is_request) // calls if calls else 0


def _notes(waits: _core.Waits, job: Job, *, has_whole_bounds: bool) -> list[str]:
    notes = []
    whole_s = whole_time_s(waits)
    bound_s = sum(row.split.bound_s for row in waits.rows)
    if has_whole_bounds and bound_s > BOUND_SHARE * whole_s > 0:
        notes.append(
            f"{bound_s / whole_s:.0%} of all ranks' time is what links and memory need at least: only fewer bytes, "
            "another placement of the ranks or faster links take less"
        )
    if missing := job.missing_ranks():
        notes.append(f"{len(missing):,} of {job.size:,} ranks aren't recorded here: what waits for them isn't seen")
    if waits.dropped:
        notes.append(
            f"of {waits.dropped:,} calls only sums remain (PALMETTE_TRACE_BYTES gives the rings more memory): waits "
            "are those of the last calls"
        )
    if waits.incomplete_collectives:
        notes.append(f"{waits.incomplete_collectives:,} collectives aren't recorded on all of their ranks")
    if waits.unmatched_messages:
        notes.append(f"{waits.unmatched_messages:,} receives have no recorded send")
    if waits.clock_violations:
        notes.append(
            f"{waits.clock_violations:,} messages were received before they were sent, by clocks that are wrong by up "
            f"to {_core.format_duration(waits.clock_error_s)}"
        )
    recordings = [process.recorded for process in job.processes]
    notes += limits_of(recordings, sums=False, communicators=True)
    notes += job.notes()
    if not clocks_compared(job):
        notes.append("clocks of the nodes weren't compared: waits between nodes may be wrong")
    return notes


def clocks_compared(job: Job) -> bool:
    """Whether all nodes' clocks were compared, or are one."""
    hosts = {process.host for process in job.processes}
    return len(hosts) < 2 or all(process.synced or process.simulated for process in job.processes)
