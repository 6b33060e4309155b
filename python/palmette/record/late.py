"""What a late rank did, by samples of its stack: which line made it late.

Of each wait that is charged to a late rank, the interval from when both last met until the late rank came is known
(palmette/record/causes.py). Samples outside of MPI in all these intervals, less those of the ranks that waited in their
own, are what the late rank did more: what both do isn't blamed.

Time in an interval outside of MPI that no sample stands for, the rank wasn't on a processor: samples are taken by
processor time. On a busy machine ranks that compute are put aside as well. So as much of it counts as computing as the
ranks that wait are off the processor when they compute; what is beyond, the late rank slept, or stood in I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.contexts import ROOT, Contexts, Site, summed
from palmette.record.symbols import Place

MAJORITY_SHARE = 0.5
"""The share of what a late rank does more from which on a function is named, else what calls several."""
MINOR_SHARE = 0.1
"""The share of the late rank's time below which others count as not doing the same."""
IDLE_SHARE = 0.05
"""The share of the late rank's processor time up to which others count as having nothing to do meanwhile."""
ENOUGH_S = 0.1
"""Seconds of samples from which on they say how much ranks that compute are put aside, and what is computed at all."""
OFF_SHARE = 0.4
"""The share of its lateness from which on being off the processor is told beside what it computes longer."""
SECOND_FUNCTION_SHARE = 0.25
"""The share of what a late rank does more from which on a second function is named."""


@dataclass(frozen=True)
class Culprit:
    """A function in which a late rank spends more than those that wait for it."""

    site: Site
    """The function at the line with most of it."""
    caller: Site | None
    """What mostly calls it."""
    share: float
    """The function's part of what the late rank does more, 0 to 1."""
    late_s: float
    """Seconds of the late rank in the function, each time that it is late."""
    other_s: float
    """Seconds in the function of those that wait, in the same intervals: mean weighted by how long they wait."""
    with_callees: bool = False
    """What it calls is counted: no function by itself has most of it."""

    @property
    def where(self) -> str:
        """The function and line."""
        text = f"in {self.site.name}"
        if self.site.line:
            text += f" at {self.site.place}"
        if self.with_callees:
            text += " and what it calls"
        if self.caller is not None:
            text += f", called from {self.caller.name}"
            text += f" at {self.caller.place}" if self.caller.line else ""
        return text


STATES = {
    "put_aside_s": "waiting for a processor", "io_s": "in I/O or page faults", "asleep_s": "asleep",
}  # fmt: skip
"""What the kernel tells of a thread that is off the processor; asleep are those that wait for a lock or for other
processes, too."""


@dataclass(frozen=True)
class LateCause:
    """What made a rank late, of all its late calls at one place."""

    rank: int
    times: int
    late_s: float
    """Seconds outside of MPI each time, since it last met those that wait."""
    other_s: float
    """Seconds outside of MPI of those that wait, in the same intervals."""
    off_s: float
    """Seconds that it was off the processor longer than they, each time, beyond what more computing explains."""
    off_between: tuple[Place, Place] | None
    """Calls between which it was mostly off the processor."""
    off_by_state: tuple[tuple[str, float], ...] = ()
    """Seconds off the processor by state, most first, as the kernel accounts for it; empty: it doesn't tell."""
    blamed: tuple[Culprit, ...] = ()
    """Functions, the costliest first."""
    beside: Culprit | None = None
    """What other threads of the rank do meanwhile, where it is off the processor."""
    waiter: int | None = None
    """The rank that waits, where it is always the same."""
    is_serial: bool = False
    """All others wait, and have nothing to do meanwhile."""

    @property
    def is_off(self) -> bool:
        """Whether being off the processor is most of what makes it late."""
        return self.off_s > MAJORITY_SHARE * (self.late_s - self.other_s) > 0

    @property
    def sentence(self) -> str:
        """A part of a sentence: most of it first."""
        parts = [self._off, self._computing] if self.is_off or not self.blamed else [self._computing, self._off]
        return "; ".join(part for part in parts if part)

    @property
    def _off(self) -> str:
        if self.off_s < OFF_SHARE * (self.late_s - self.other_s) or self.off_s <= 0:
            return ""
        text = f"before, it is off the processor {_core.format_duration(self.off_s)} longer each time"
        told = [(name, seconds) for name, seconds in self.off_by_state if seconds >= MINOR_SHARE * self.off_s]
        for number, (name, seconds) in enumerate(told):
            text += f", {_core.format_duration(seconds)}{'' if number else ' of it'} {STATES[name]}"
        if not told:
            text += " (asleep, in I/O or put aside)"
        if self.off_between:
            before, after = self.off_between
            text += f", between {before} and {after}" if str(before) != str(after) else f", between calls at {after}"
            if before.line and (before.function, before.file) == (after.function, after.file):
                text += f" in {before.function.partition('(')[0]}()"
        if self.beside:
            text += f", while another of its threads is {self.beside.where}"
        return text

    @property
    def _computing(self) -> str:
        if not self.blamed:
            return ""
        first = self.blamed[0]
        text = f"before, it computes longer: {first.share:.0%} of that {first.where}"
        if first.other_s > MINOR_SHARE * first.late_s:
            text += f"; {self._others} {_core.format_duration(first.other_s)} there, it "
            text += _core.format_duration(first.late_s)
        if len(self.blamed) > 1:
            second = self.blamed[1]
            text += f"; {second.share:.0%} {second.where}"
        if self.is_serial:
            text += "; a serial part: the others have nothing to do meanwhile"
        return text

    @property
    def _others(self) -> str:
        return f"rank {self.waiter} spends" if self.waiter is not None else "the others spend"


def late_of(
    works: Iterable[_core.LateWork],
    contexts: Contexts,
    places: Sequence[Place],
    ranks: Sequence[int],
    on_processor: float = 1.0,
    *,
    is_crowded: bool = False,
) -> LateCause | None:
    """Return what made one rank late, of its late calls at one place: `works` has them by call path. `places` is by
    path, `ranks` by process; `on_processor` is the share of computing time that ranks of the job are on a processor,
    for intervals in which those that wait have nothing to compute, and at most that where there are more ranks than
    processors (`is_crowded`): who always computes is put aside more. None where there are no samples of it.

    Cost: O(contexts).
    """
    chosen = list(works)
    times = sum(one.instances for one in chosen)
    if not times:
        return None
    late_s = sum(gap.late_s for one in chosen for gap in one.gaps)
    other_s = sum(gap.other_s for one in chosen for gap in one.gaps)
    other_cpu_s = sum(gap.other_cpu_s for one in chosen for gap in one.gaps)
    if other_cpu_s > ENOUGH_S:
        on_processor = min(on_processor if is_crowded else 1.0, other_cpu_s / other_s)
    off_by: dict[tuple[Place, Place], float] = defaultdict(float)
    for one in chosen:
        for gap in one.gaps:
            more_s, more_cpu_s = gap.late_s - gap.other_s, gap.late_cpu_s - gap.other_cpu_s
            off_by[places[gap.before_path], places[gap.after_path]] += more_s - more_cpu_s / on_processor
    off_s = max(0.0, sum(off_by.values()))
    waiters = {process for one in chosen for process in one.waiters}
    late, other = _by_site(((one.context, one.context_late_s, one.context_other_s) for one in chosen), contexts)
    blamed = _blamed(late, other, off_s * on_processor, times, contexts)
    found_off = max(off_by, key=lambda key: off_by[key]) if off_s > 0 else None
    late_beside, other_beside = _by_site(
        ((one.beside, one.beside_late_s, one.beside_other_s) for one in chosen), contexts
    )
    beside = _blamed(late_beside, other_beside, 0.0, times, contexts)
    return LateCause(
        ranks[chosen[0].process], times, late_s / times, other_s / times, off_s / times, found_off,
        _by_state(chosen, off_s, times), tuple(blamed), beside[0] if beside else None,
        ranks[next(iter(waiters))] if len(waiters) == 1 else None,
        is_serial=1 < len(waiters) == len(ranks) - 1 and _is_alone(
            float(late[~contexts.in_mpi].sum()), float(other[~contexts.in_mpi].sum())
        ),
    )  # fmt: skip


def _by_state(works: Sequence[_core.LateWork], off_s: float, times: int) -> tuple[tuple[str, float], ...]:
    """Return by how much longer a late rank was in each state than those that waited, each time; at most `off_s` in
    all. Empty where the kernel accounts for less than half of that.
    """
    more = {
        name: sum(getattr(gap.late_off, name) - getattr(gap.other_off, name) for one in works for gap in one.gaps)
        for name in STATES
    }
    states = sorted(((name, seconds) for name, seconds in more.items() if seconds > 0), key=lambda one: -one[1])
    whole_s = sum(seconds for _, seconds in states)
    if off_s <= 0 or whole_s < MAJORITY_SHARE * off_s:
        return ()
    return tuple((name, seconds * min(1.0, off_s / whole_s) / times) for name, seconds in states)


def _is_alone(late_cpu_s: float, other_cpu_s: float) -> bool:
    """Return whether others have nothing to compute while a late rank does.

    By processor time: on a busy machine, who computes longer is put aside more often, and all others' time seems short
    beside its own.
    """
    return late_cpu_s >= ENOUGH_S and other_cpu_s <= IDLE_SHARE * late_cpu_s


Columns = tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]


def _by_site(rows: Iterable[Columns], contexts: Contexts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return seconds by site, of the late rank and of those that wait."""
    late, other = np.zeros(len(contexts.sites)), np.zeros(len(contexts.sites))
    for context, late_s, other_s in rows:
        site = contexts.site_of[context]
        np.add.at(late, site, late_s)
        np.add.at(other, site, other_s)
    return late, other


def _blamed(
    late: NDArray[np.float64], other: NDArray[np.float64], off_s: float, times: int, contexts: Contexts
) -> list[Culprit]:
    """Return the functions that explain most of the difference."""
    more = late - other
    # A call of MPI's in an interval is accounted for by itself.
    more[contexts.in_mpi] = 0
    by_function: dict[tuple[str, str], list[int]] = defaultdict(list)
    homes = contexts.homes
    for site in np.flatnonzero(late + other).tolist():
        if not contexts.in_mpi[site]:
            home = contexts.sites[homes[site]]
            by_function[home.function, home.file].append(site)
    sums = {key: float(more[sites].sum()) for key, sites in by_function.items()}
    whole = sum(seconds for seconds in sums.values() if seconds > 0) + off_s
    if whole <= 0:
        return []
    order = sorted((key for key in sums if sums[key] > 0), key=lambda key: -sums[key])
    if order and sums[order[0]] < MAJORITY_SHARE * (whole - off_s):
        above = _above(more, whole - off_s, contexts)
        if above:
            late_s, other_s = (
                float(contexts.with_callees(_by_node(one, contexts))[above].sum()) for one in (late, other)
            )
            return [_whole_of(above, more, (late_s, other_s), whole, times, contexts)]
    found: list[Culprit] = []
    for key in order[:2]:
        if found and sums[key] < SECOND_FUNCTION_SHARE * whole:
            break
        sites = by_function[key]
        site = _most([int(homes[one]) for one in sites], more[sites], contexts)
        found.append(
            Culprit(
                contexts.sites[site], _caller(sites, more, contexts), min(1.0, sums[key] / whole),
                float(late[sites].sum()) / times, float(other[sites].sum()) / times,
            )
        )  # fmt: skip
    return found


def _most(homes: Sequence[int], more: NDArray[np.float64], contexts: Contexts) -> int:
    """Return the site with the line that has most of the difference."""
    by_line: dict[int, list[float]] = defaultdict(list)
    for home, seconds in zip(homes, more.tolist(), strict=True):
        by_line[contexts.sites[home].line].append(seconds)
    line = max(by_line, key=lambda one: sum(by_line[one]))
    return next(home for home in homes if contexts.sites[home].line == line)


def _caller(sites: Sequence[int], more: NDArray[np.float64], contexts: Contexts) -> Site | None:
    """Return what mostly calls the function that these sites are in: the next one of the program's own."""
    by_caller: dict[Site, float] = defaultdict(float)
    for site in sites:
        home = contexts.sites[contexts.homes[site]]
        above = (contexts.sites[one] for one in contexts.callers(site))
        callers = [one for one in above if one.is_own and (one.function, one.file) != (home.function, home.file)]
        if callers:
            by_caller[callers[0]] += float(more[site])
    return max(by_caller, key=lambda one: by_caller[one]) if by_caller else None


def _by_node(by_site: NDArray[np.float64], contexts: Contexts) -> NDArray[np.float64]:
    return summed(np.asarray(contexts.node_of_site), by_site, len(contexts.node_parents))


def _above(more: NDArray[np.float64], whole: float, contexts: Contexts) -> list[int]:
    """Return the innermost function of the program's own that has most of the difference with what it calls: nodes,
    several where it is called in several loops; none where there is no such function.
    """
    inside = contexts.with_callees(_by_node(more, contexts))
    children: dict[int, list[int]] = defaultdict(list)
    for node in range(1, len(contexts.node_parents)):
        children[contexts.node_parents[node]].append(node)
    nodes, own = [ROOT], []
    while called := _called(nodes, children, contexts):
        nodes = max(called, key=lambda one: inside[one].sum())
        if inside[nodes].sum() < MAJORITY_SHARE * whole:
            break
        if contexts.site_of_node[nodes[0]].is_own:
            own = nodes
    return own


def _called(nodes: Sequence[int], children: dict[int, list[int]], contexts: Contexts) -> list[list[int]]:
    """Return the functions that some nodes call, in loops or not, each as its nodes."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    left = [child for node in nodes for child in children[node]]
    while left:
        node = left.pop()
        one = contexts.site_of_node[node]
        if one.kind == "loop":
            left += children[node]
        else:
            found[one.function, one.file].append(node)
    return list(found.values())


def _whole_of(
    nodes: Sequence[int],
    more: NDArray[np.float64],
    seconds: tuple[float, float],
    whole: float,
    times: int,
    contexts: Contexts,
) -> Culprit:
    """Return a function with what it calls."""
    inside = more.copy()
    for site in range(len(inside) - 1, 0, -1):
        inside[contexts.parents[site]] += inside[site]
    sites = [one for one in range(len(inside)) if contexts.function_of_node[contexts.node_of_site[one]] in nodes]
    site = max(sites, key=lambda one: inside[one])
    late_s, other_s = seconds
    return Culprit(
        contexts.sites[site], _caller([site], inside, contexts), min(1.0, (late_s - other_s) / whole), late_s / times,
        other_s / times, with_callees=True,
    )  # fmt: skip


def late_to_json(late: LateCause) -> dict[str, Any]:
    """Return it as a document; times are seconds, each time that the rank was late."""
    return {
        "rank": late.rank, "times": late.times, "late_s": late.late_s, "other_s": late.other_s,
        "off_processor_s": late.off_s, "off_by_state": dict(late.off_by_state),
        "off_between": [str(one) for one in late.off_between or ()],
        "is_serial": late.is_serial,
        "blamed": [
            {
                "function": one.site.function, "file": one.site.file or None, "line": one.site.line or None,
                "caller": one.caller.function if one.caller else None,
                "caller_file": (one.caller.file or None) if one.caller else None,
                "caller_line": (one.caller.line or None) if one.caller else None,
                "share": one.share, "late_s": one.late_s, "other_s": one.other_s, "with_callees": one.with_callees,
            }
            for one in late.blamed
        ],
    }  # fmt: skip
