"""The link that limits a recorded job: how full it is, which calls fill it, and whether another order helps."""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass

from palmette import _core
from palmette.map.errors import MapError
from palmette.record.causes import LEAST_SHARE, MOST_CALLS
from palmette.record.findings import MAX_FINDINGS, Finding, Findings, trace_files
from palmette.record.links import Link, Links
from palmette.record.machine import Limits, Seats
from palmette.record.reading import Job, RecordError
from palmette.record.sums import place_of
from palmette.record.symbols import Place, Resolver, frames_of
from palmette.record.what_if import Alternative, auto_placement, with_changes

FULL_SHARE = 0.8
"""Share of a link's rate: a link that carries more in a bin of time is full there."""
LEAST_FULL = 0.1
"""Share of the run time that a link must be full for to be told."""


@dataclass(frozen=True)
class FullLink:
    """A link that is full for a part of the run."""

    link: Link
    outwards: bool
    seconds: float
    """How long it is."""
    fill: float
    """Mean of its rate in that time."""

    @property
    def name(self) -> str:
        """As sentences have it."""
        return f"the link {'out of' if self.outwards else 'into'} {self.link.group.name}"


def fullest_link(links: Links) -> FullLink | None:
    """Return the link that is full for longest. What doesn't fit into a bin of time is carried in the next ones."""
    if links.span_s <= 0:
        return None
    width_s = links.span_s / links.bins
    found: list[FullLink] = []
    for link in links.links:
        if link.group.rate <= 0:
            continue
        for outwards, loaded in zip((True, False), link.carried(links.span_s), strict=True):
            fill = loaded / (link.group.rate * width_s)
            full = fill[fill >= FULL_SHARE]
            if len(full):
                found.append(FullLink(link, outwards, len(full) * width_s, float(full.mean())))
    return max(found, key=lambda one: (one.seconds, one.fill), default=None)


def main_user(job: Job, seats: Seats, full: FullLink) -> tuple[str, Place, float]:
    """Return function and place of the calls that send most over a link, and their share of its bytes.

    Of collectives that the MPI itself did the least that must cross counts. Raises RecordError. Cost: O(calls).
    """
    group = seats.groups.index(full.link.group)
    depth = full.link.group.level
    number = group - sum(one.count for one in seats.job.levels[:depth])
    try:
        use = _core.link_use(trace_files(job), seats.groups_of_ranks[depth], number)
    except _core.Error as error:
        raise RecordError(str(error)) from None
    resolver = Resolver()
    paths = {path: frames_of(path) for path in [one[1] for one in use.users] + [one[1] for one in use.unserved]}
    resolver.add(frame for frames in paths.values() for frame in frames)
    sums: dict[tuple[str, Place], float] = defaultdict(float)
    for function, path, out, into in use.users:
        sums[function, place_of(paths[path], resolver)] += out if full.outwards else into
    limits = Limits(seats)
    for function, path, ranks, root, size, calls in use.unserved:
        for crossed, out, into in limits.crossing(function, ranks, root, size):
            if crossed == group:
                sums[function, place_of(paths[path], resolver)] += calls * (out if full.outwards else into)
    whole = sum(sums.values())
    if whole <= 0:
        return "", Place("unknown"), 0.0
    (function, place), most = max(sums.items(), key=lambda one: one[1])
    return function, place, most / whole


def with_full_link(findings: Findings, job: Job, seats: Seats | None, links: Links | None) -> list[Finding]:
    """Return findings with the link that is full for long, where there is one: before what gains less.

    Cost: O(calls), a search for a placement, and a replay with it.
    """
    full = fullest_link(links) if links else None
    time_s = findings.efficiencies.time_s
    if seats is None or full is None or full.seconds < LEAST_FULL * time_s or findings.calls > MOST_CALLS:
        return findings.found
    try:
        function, place, share = main_user(job, seats, full)
    except RecordError:
        return findings.found
    if not function:
        return findings.found
    gain = _gain_of_order(job, seats)
    by = f"{'' if share > 0.995 else f'{share:.0%} '}by {function} at {place}"
    text = f"{full.name} is {full.fill:.0%} full for {_core.format_duration(full.seconds)}, {by}"
    folder = shlex.quote(str(job.folder))
    if gain >= LEAST_SHARE:
        text += f"; in another order of the ranks the run is expected to take {gain:.0%} less"
        text += f" ({_core.format_duration(gain * time_s)})"
        more = f"palmette what-if {folder} --placement auto"
    else:
        text += "; no other order of the ranks is known to help: fewer bytes or a faster link would"
        more = f"palmette report {folder} -o report.html"
    one = Finding(
        "full_link", function, place, (), full.seconds * findings.ranks, full.seconds / time_s, text, more,
        gain=gain if gain >= LEAST_SHARE else None,
    )  # fmt: skip
    told = findings.found
    at = next((at for at, other in enumerate(told) if (one.gain or 0.0) > (other.gain or 0.0)), len(told))
    at = min(at, MAX_FINDINGS - 1)
    return [*told[:at], one, *told[at:]][:MAX_FINDINGS]


def _gain_of_order(job: Job, seats: Seats) -> float:
    """Return by which share the run would be shorter with the best order of ranks that is found; 0: none is."""
    try:
        placed = seats.job.restricted_to(list(auto_placement(job, seats).order))
        return max(0.0, with_changes(job, seats, Alternative(job=placed), (1.0,)).gain)
    except (_core.Error, RecordError, MapError):
        return 0.0
