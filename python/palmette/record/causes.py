"""Why a recorded job took as long: efficiencies, the critical path, and who made others wait.

By replays of the trace: `_core.causes_of`. They hold only where the replay with measured costs gives the measured time
again; otherwise a dependency between ranks isn't known, and what is missing is told instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from palmette import _core
from palmette.record.contexts import Contexts
from palmette.record.findings import MAJORITY_SHARE, MAX_FINDINGS, Finding, Findings, trace_files, whole_time_s
from palmette.record.late import LateCause, late_of
from palmette.record.links import busiest_s
from palmette.record.machine import Limits, Seats, is_bounded, plain_collective
from palmette.record.processors import crowd_of
from palmette.record.reading import Job, RecordError
from palmette.record.symbols import Place

MAX_DEVIATION = 0.01
"""Share of the measured time: if the replay with measured costs is off by more, nothing is said."""
MOST_UNBOUNDED = 0.1
"""Share of calls' time besides waiting: with more in collectives of unknown bound, the network's part isn't told."""
MOST_STEPS = 20_000_000
"""Steps of all plans that are simulated to tell plans and their execution apart, which takes seconds."""
LEAST_STEPS = 5000
"""Steps that a plan counts as, however few it has."""
MOST_ROOTS = 3
MOST_PASSED_ON = 0.1
"""The share of the waiting for a rank that it must do more: with less, it only passes on what it waited for."""
LEAST_SHARE = 0.01
MOST_CALLS = 20_000_000
"""Calls of a trace for which gains are found: each gain is a replay."""


@dataclass(frozen=True)
class Root:
    """What made other ranks wait: calls of one rank at one place, or its computation before them."""

    rank: int
    function: str
    place: Place
    in_call: bool
    seconds: float
    """Waiting of all ranks that it caused, what that waiting caused in turn included."""
    direct_s: float
    """Part of `seconds` that ranks waited for this one directly."""
    share: float
    """Waiting that it caused, over all ranks' time."""
    gain: float
    """Share of the run time that the run would take less without it, 0 to 1."""
    follows: bool = False
    """A finding says it already."""

    @property
    def what(self) -> str:
        """What made others wait."""
        return f"{'' if self.in_call else 'computing before '}{self.function} at {self.place}"

    @property
    def sentence(self) -> str:
        """One line of text."""
        text = f"rank {self.rank}, {self.what}: others wait {_core.format_duration(self.seconds)} for it, "
        text += f"{self.share:.0%} of all ranks' time"
        if self.direct_s < 0.9 * self.seconds:
            text += f", {1 - self.direct_s / self.seconds:.0%} of that through ranks in between"
        return text + self.gain_text

    @property
    def gain_text(self) -> str:
        """How much shorter the run would be, where that is worth telling."""
        return f"; without that the run takes {self.gain:.0%} less" if self.gain >= LEAST_SHARE else ""


@dataclass
class Causes:
    """POP's serialisation and transfer efficiency, the latter split by the physical limits, and root causes."""

    serialisation: float | None = None
    """Longest time outside of MPI over the time with communication that takes no time."""
    transfer: float | None = None
    """Time with communication that takes no time over the measured time: network x software."""
    network: float | None = None
    """What the hardware takes of it at least: None where no collective's bound, or not all links' rates are known."""
    software: float | None = None
    """What algorithms, the MPI and contention take beyond that."""
    plans: float | None = None
    """Part of software: what plans of served calls take beyond the limit, by the model. None: no call was served."""
    execution: float | None = None
    """What these calls took beyond their plans."""
    others: float | None = None
    """What all other calls take: software is the product of the three."""
    unbounded: str = ""
    """Why network and software aren't told apart."""
    withheld: str = ""
    """Why nothing of this is known."""
    roots: list[Root] = field(default_factory=list)
    on_path_s: dict[int, float] = field(default_factory=dict)
    """Seconds of each rank on the critical path."""
    stretches: list[tuple[int, int, int]] = field(default_factory=list)
    """Process, begin and end (ns) of the path's stretches, in order of time."""
    shorter: list[tuple[str, float]] = field(default_factory=list)
    """What would make the run shorter, and by which share."""
    cpu_s: dict[int, float] = field(default_factory=dict)
    """Seconds of each rank on a processor outside of MPI, by samples of calling threads; empty without samples."""
    off: dict[int, _core.OffProcessor] = field(default_factory=dict)
    """Time of each rank off the processor between calls, as the kernel accounts for it; empty where it doesn't."""
    contexts: Contexts | None = None
    """What samples say of the late rank; None: there are no samples."""
    chains: dict[tuple[str, Place], list[_core.WaitChain]] = field(default_factory=lambda: defaultdict(list))
    """Ranks that wait for one another in a row, by function and place."""
    message_runs: dict[tuple[str, Place], list[_core.MessageRuns]] = field(default_factory=lambda: defaultdict(list))
    """Many small messages in a row, by function and place."""
    late: dict[Finding, LateCause] = field(default_factory=dict)
    """What made ranks late, by samples, for each finding of waiting."""


@dataclass(frozen=True)
class Replays:
    """A trace replayed, before anything is known of its findings."""

    found: _core.TraceCauses
    limits: Limits | None
    """None: not all links' rates are known."""
    predictions: _Predictions | None
    """Predicted times of served calls; None: none were asked for."""


def replays_of(job: Job, seats: Seats | None = None) -> Replays:
    """Replay a trace, without the interpreter's lock held. Raises RecordError. Cost: O(calls log calls)."""
    limits = Limits(seats) if seats and seats.has_rates else None
    few = sum(one.recorded.calls - one.recorded.dropped for one in job.processes) <= MOST_CALLS
    predictions = _Predictions(limits) if limits and few else None
    try:
        found = _core.causes_of(
            trace_files(job), limits.seconds if limits else None, MOST_ROOTS if few else 0, predictions
        )
    except _core.Error as error:
        raise RecordError(str(error)) from None
    return Replays(found, limits, predictions)


def causes_of(job: Job, findings: Findings, seats: Seats | None = None, replays: Replays | None = None) -> Causes:
    """Return why a trace took as long, of which `findings` are known. Raises RecordError. Cost: as `replays_of`, where
    `replays` aren't given.
    """
    replays = replays or replays_of(job, seats)
    found, limits, predictions = replays.found, replays.limits, replays.predictions
    causes = Causes(withheld=missing_dependency(found))
    places = dict(zip(findings.view.waits.paths, findings.places, strict=True))
    if len(found.contexts.parent) > 1:
        causes.contexts = Contexts(found.contexts, found.ranks)
        times = dict(zip(found.ranks, found.processor_times, strict=True))
        causes.cpu_s = {rank: one.computing_s for rank, one in times.items()}
        if any(one.off.put_aside_s + one.off.io_s + one.off.asleep_s > 0 for one in times.values()):
            causes.off = {rank: one.off for rank, one in times.items()}
        causes.late = _late(
            findings, found, causes.contexts, [places[path] for path in found.paths], sum(causes.cpu_s.values()),
            is_crowded=crowd_of(job) is not None,
        )  # fmt: skip
    for run in found.message_runs:
        causes.message_runs[found.functions[run.function], places[found.paths[run.path]]].append(run)
    if causes.withheld:
        return causes
    for chain in found.chains:
        causes.chains[found.functions[chain.function], places[found.paths[chain.path]]].append(chain)
    time_s, ideal_s = found.measured.time_s, found.ideal.time_s
    # A bound that a call has undercut is a bound of another machine.
    bound_s = min(time_s, max(ideal_s, found.bound.time_s, busiest_s(trace_files(job), seats)))
    if ideal_s > 0 and time_s > 0:
        causes.serialisation = min(1.0, findings.efficiencies.longest_useful_s / ideal_s)
        causes.transfer = min(1.0, ideal_s / time_s)
        causes.unbounded = _without_bounds(findings) if limits else ""
        # What served calls need at least was told as they ran: without the links' rates that is memory's part alone.
        if limits and bound_s > ideal_s and not causes.unbounded:
            causes.network, causes.software = ideal_s / bound_s, bound_s / time_s
            if (
                predictions
                and _share_of(findings, lambda row, function: function in predictions.unknown) <= MOST_UNBOUNDED
            ):
                _split_software(causes, found, bound_s)
    whole_s = max(time_s * len(found.ranks), whole_time_s(findings.view.waits))
    for delay, without_s in zip(found.delays[:MOST_ROOTS], [*found.without_s, *[time_s] * MOST_ROOTS], strict=False):
        seconds = delay.short_term_s + delay.long_term_s
        if whole_s <= 0 or seconds < LEAST_SHARE * whole_s:
            break
        causes.roots.append(
            Root(
                found.ranks[delay.process], found.functions[delay.function], places[found.paths[delay.path]],
                delay.in_call, seconds, delay.short_term_s, seconds / whole_s, max(0.0, 1 - without_s / time_s),
            )
        )  # fmt: skip
    on_path: dict[int, float] = defaultdict(float)
    for row in found.on_path:
        on_path[found.ranks[row.process]] += row.in_call_s + row.before_s
    causes.on_path_s = dict(on_path)
    causes.stretches = [(one.process, one.begin_ns, one.end_ns) for one in found.stretches]
    gains = [("communication that takes no time", ideal_s)]
    if causes.network is not None:
        gains.append(("communication that takes what links and memory need at least", bound_s))
    causes.shorter = [(what, max(0.0, 1 - seconds / time_s)) for what, seconds in gains if time_s > 0]
    causes.shorter += [
        (f"rank {one.rank} without its delay, {one.what}", one.gain) for one in causes.roots if one.gain >= LEAST_SHARE
    ]
    return causes


def _late(
    findings: Findings,
    causes: _core.TraceCauses,
    contexts: Contexts,
    places: Sequence[Place],
    cpu_s: float,
    *,
    is_crowded: bool,
) -> dict[Finding, LateCause]:
    """Return what made the ranks late whom findings name. `cpu_s`: computing of all ranks, on a processor."""
    told: dict[Finding, LateCause] = {}
    useful_s = sum(findings.view.waits.useful_s)
    on_processor = min(1.0, cpu_s / useful_s) if cpu_s > 0 and useful_s > 0 else 1.0
    for one in findings.found:
        if one.kind not in ("late_rank", "taking_turns"):
            continue
        works = [
            work
            for work in causes.late
            if (causes.functions[work.function], places[work.path]) == (one.function, one.place)
            and causes.ranks[work.process] in one.ranks
        ]
        late = late_of(works, contexts, places, causes.ranks, on_processor, is_crowded=is_crowded) if works else None
        # Who waited itself before isn't late for what it does.
        if late and (late.late_s - late.other_s) * late.times * len(causes.ranks) > MOST_PASSED_ON * one.seconds:
            told[one] = late
    return told


class _Predictions:
    """What the model says of served calls, as long as that takes seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._steps = 0.0
        self.unknown: set[str] = set()
        """Functions of calls of which it isn't known."""

    def __call__(self, function: str, ranks: Sequence[int], root: int, size: int, algorithm: str) -> float:
        """Return seconds; 0: not known."""
        seconds = 0.0
        if self._steps <= MOST_STEPS:
            steps, seconds = self._limits.predicted(function, ranks, root, size, algorithm)
            self._steps += max(steps, LEAST_STEPS)
        if seconds <= 0:
            self.unknown.add(function)
        return seconds


def _split_software(causes: Causes, found: _core.TraceCauses, bound_s: float) -> None:
    """Tell plans of served calls, their execution and all other calls apart, each as it changes the replay's time."""
    if found.planned is None or found.served is None or found.served.time_s <= found.bound.time_s:
        return
    time_s = found.measured.time_s
    planned_s = min(time_s, max(bound_s, found.planned.time_s))
    served_s = min(time_s, max(planned_s, found.served.time_s))
    causes.plans, causes.execution = bound_s / planned_s, planned_s / served_s
    causes.others = served_s / time_s


def _share_of(findings: Findings, wanted: Callable[[_core.WaitRow, str], bool]) -> float:
    """Return the share of calls by row and function in what calls take besides waiting."""
    waits = findings.view.waits
    whole_s = wanted_s = 0.0
    for row in waits.rows:
        seconds = row.split.excess_s + row.split.completion_s
        whole_s += seconds
        wanted_s += seconds if wanted(row, waits.functions[row.function]) else 0.0
    return wanted_s / whole_s if whole_s > 0 else 0.0


def _without_bounds(findings: Findings) -> str:
    """Return which collectives take much time of which nobody knows how much they need at least, in a sentence."""
    functions: dict[str, None] = {}

    def is_unbounded(row: _core.WaitRow, function: str) -> bool:
        found = bool(plain_collective(function)) and not is_bounded(function) and row.split.bound_s == 0
        if found and row.split.excess_s + row.split.completion_s > 0:
            functions[function] = None
        return found

    if _share_of(findings, is_unbounded) <= MOST_UNBOUNDED:
        return ""
    what = f"{', '.join(functions)} need{'s' if len(functions) == 1 else ''}"
    return f"what {what} at least isn't known: network and software aren't told apart"


def with_causes(findings: Findings, causes: Causes) -> list[Finding]:
    """Return findings that name what made a rank late, and the gain without it, roots of waiting first."""
    if not causes.roots:
        return [_with_late(one, causes) for one in findings.found]
    told = []
    roots = {root.rank: root for root in reversed(causes.roots)}
    named = set()
    for one in findings.found:
        if one.kind != "late_rank":
            told.append(_with_late(one, causes))
            continue
        root = roots.get(one.ranks[0])
        if root is None:
            text = f"{one.sentence}; it passes on the delay of rank {causes.roots[0].rank}"
            told.append(replace(one, sentence=text, cause=causes.roots[0]))
            continue
        where = "it computes longer before" if not root.in_call else f"{root.what} takes it longer"
        if not root.in_call and (root.function, root.place) != (one.function, one.place):
            where = f"it computes longer before {root.function} at {root.place}"
        late = causes.late.get(one)
        if late and late.sentence and not root.in_call:
            where = late.sentence
        first = root.rank not in named
        named.add(root.rank)
        text = f"{one.sentence}; {where}{root.gain_text if first else ''}"
        told.append(replace(one, sentence=text, cause=root, gain=root.gain if first else None, late=late))
    first_root = causes.roots[0]
    waits = [one for one in findings.found if one.kind in ("late_rank", "taking_turns")]
    is_main = first_root.seconds >= MAJORITY_SHARE * findings.waiting_s
    if waits and is_main and first_root.rank not in named:
        more = waits[0].next
        text = f"{first_root.sentence[0].upper()}{first_root.sentence[1:]}"
        told.insert(0, Finding(
            "root_cause", first_root.function, first_root.place, (first_root.rank,), first_root.seconds,
            first_root.share, text, more, None, first_root, first_root.gain,
        ))  # fmt: skip
        named.add(first_root.rank)
    # Who is late before who passes it on.
    own = next((one for one in told if one.kind == "late_rank" and one.ranks == (first_root.rank,)), None)
    if own is not None:
        kinds = ("late_rank", "taking_turns") if is_main else ("late_rank",)
        at = next(at for at, one in enumerate(told) if one.kind in kinds)
        told.remove(own)
        told.insert(at, own)
    causes.roots = [replace(root, follows=root is roots.get(root.rank) and root.rank in named) for root in causes.roots]
    return told[:MAX_FINDINGS]


def _with_late(one: Finding, causes: Causes) -> Finding:
    """Return the finding with what samples say."""
    late = causes.late.get(one)
    return replace(one, sentence=f"{one.sentence}; {late.sentence}", late=late) if late and late.sentence else one


def missing_dependency(found: _core.TraceCauses | _core.TraceWhatIf) -> str:
    """Return why the replay doesn't hold; nothing where it does."""
    measured_s, again_s = found.measured.measured_s, found.measured.time_s
    if measured_s <= 0:
        return "no time between MPI_Init and MPI_Finalize is recorded"
    if abs(again_s - measured_s) <= MAX_DEVIATION * measured_s:
        return ""
    text = f"replayed, the job takes {again_s / measured_s:.2f} of its time"
    if found.measured.forced:
        text += f"; {found.measured.forced:,} calls wait for what comes later by clocks that disagree"
    elif found.measured.unmodelled:
        worst = found.measured.unmodelled[0]
        text += f"; for whom {found.functions[worst.function]} waits isn't known"
    return text
