"""The calls of each thread of a process, and in which of them requests were started and completed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from palmette.record.formats.selection import Call, Selection

ROUNDING_NS = 3
"""A request and the call that completed it end together, each rounded for itself."""
DURATION_BITS = 26
"""Upper bits of a duration that a record keeps: the end of a longer request is less exact accordingly."""


@dataclass
class Step:
    """A call of a thread."""

    call: Call
    starts: list[Call] = field(default_factory=list)
    """Requests."""
    completes: list[Call] = field(default_factory=list)


@dataclass
class Threads:
    """What a process did."""

    steps: dict[int, list[Step]]
    """Steps of each thread by begin; calls of one thread don't overlap."""
    requests: list[Call]
    """Requests by begin."""


def threads_of(selection: Selection, index: int) -> Threads:
    """Return what a process of a selection did in the window. Cost: O(calls log calls); all of them are in memory."""
    steps: dict[int, list[Step]] = defaultdict(list)
    requests: list[Call] = []
    began: dict[int, Step] = {}
    for call in selection.calls(index):
        if call.is_request:
            requests.append(call)
            continue
        before = steps[call.thread]
        if before and before[-1].call.end_ns > call.begin_ns:
            before[-1].call = before[-1].call._replace(end_ns=call.begin_ns)
        step = began[call.begin_ns] = Step(call)
        before.append(step)
    begins = {thread: [step.call.begin_ns for step in own] for thread, own in steps.items()}
    for request in requests:
        # Two threads may begin in one nanosecond; then it doesn't matter much which.
        if request.begin_ns in began:
            began[request.begin_ns].starts.append(request)
        own = steps.get(request.thread, [])
        inexact_ns = ROUNDING_NS + ((request.end_ns - request.begin_ns) >> DURATION_BITS)
        at = bisect_right(begins.get(request.thread, []), request.end_ns + inexact_ns) - 1
        while at >= 0 and own[at].call.end_ns > request.end_ns + inexact_ns:
            at -= 1
        if at >= 0 and own[at].call.end_ns >= request.end_ns - inexact_ns:
            own[at].completes.append(request)
    return Threads(dict(sorted(steps.items())), requests)
