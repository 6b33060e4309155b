"""Trace Event Format in JSON, which chrome://tracing, ui.perfetto.dev and many others read: a process for each rank.

Calls are complete events, requests asynchronous ones, messages flow events. Times are microseconds with three digits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palmette.record.formats import messages
from palmette.record.formats.counts import Counts
from palmette.record.formats.functions import category
from palmette.record.formats.messages import Message
from palmette.record.formats.selection import Call, Selection
from palmette.record.formats.threads import Step, threads_of

Event = dict[str, Any]


def write(path: Path, selection: Selection) -> Counts:
    """Write the calls of a selection. Cost: O(calls log calls), some 20 us each; those of one process are in memory."""
    found = messages.match(selection)
    counts = Counts(messages=len(found.all))
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        before = ""
        for index in selection.chosen:
            for event in _events(selection, index, found, counts):
                file.write(before + json.dumps(event))
                before = ",\n"
        file.write("\n]}\n")
    return counts


def _events(selection: Selection, index: int, found: messages.Messages, counts: Counts) -> Iterator[Event]:
    process = selection.everyone[index]
    pid = index + 1
    name = f"{selection.name(index)} on {process.host}"
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": index}}
    threads = threads_of(selection, index)
    for thread, steps in threads.steps.items():
        yield {"ph": "M", "pid": pid, "tid": thread, "name": "thread_name", "args": {"name": f"thread {thread}"}}
        on: Event = {"pid": pid, "tid": thread}
        for step in steps:
            call = step.call
            yield {
                "ph": "X", "name": call.function, "cat": category(call), "ts": _us(call.begin_ns),
                "dur": _us(call.end_ns - call.begin_ns), **on, "args": _arguments(selection, call),
            }  # fmt: skip
            counts.add(call)
            yield from _flows(selection, step, found.sent[index], found.received[index], on)
    for request in threads.requests:
        on = {"pid": pid, "tid": request.thread, "cat": "request", "id2": {"local": request.number}}
        arguments = _arguments(selection, request)
        yield {"ph": "b", "name": request.function, "ts": _us(request.begin_ns), **on, "args": arguments}
        yield {"ph": "e", "name": request.function, "ts": _us(request.end_ns), **on}
        counts.add(request)


def _flows(
    selection: Selection, step: Step, sent: dict[int, Message], received: dict[int, Message], on: Event
) -> Iterator[Event]:
    """Arrows from the call that sends or starts to, to an event of no length at the end of the one that receives or
    completes it: readers bind an arrow to what has begun at that time, and take what began first for its origin.
    """
    flow = {"name": "message", "cat": "message", **on}
    for one in (step.call, *step.starts):
        if one.number in sent:
            yield {"ph": "s", "id": sent[one.number].number, "ts": _us(step.call.begin_ns), **flow}
    for one in (step.call, *step.completes):
        if one.number in received:
            message = received[one.number]
            at = {"ts": _us(max(step.call.begin_ns, step.call.end_ns - 1)), **on}
            arguments = {"bytes": message.bytes, "from rank": selection.everyone[message.sender].recorded.rank}
            yield {"ph": "X", "name": "received", "cat": "received", "dur": 0, **at, "args": arguments}
            yield {"ph": "f", "bp": "e", "id": message.number, "name": "message", "cat": "message", **at}


def _us(time_ns: int) -> float:
    return time_ns / 1000


def _arguments(selection: Selection, call: Call) -> Event:
    found: Event = {"bytes": call.bytes, "called at": str(selection.place(call.path))}
    if call.communicator:
        found["communicator"] = selection.communicators[call.communicator].name
    if call.peer >= 0:
        found["peer"] = call.peer
    if call.instance:
        found["instance"] = call.instance
    elif call.peer != -1:
        found["tag"] = call.tag
    if call.algorithm:
        found["algorithm"] = call.algorithm
    return found
