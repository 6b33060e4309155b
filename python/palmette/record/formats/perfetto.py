"""Perfetto's protobuf traces, for ui.perfetto.dev and trace_processor: a track for each thread of a rank, tracks for
outstanding requests, arrows from sends to receives. Samples are there as perf's are: with their stack, by thread.

Field numbers are those of the messages named beside them in Perfetto's public `perfetto_trace.proto`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from palmette.record.contexts import Site
from palmette.record.formats import messages
from palmette.record.formats.counts import Counts
from palmette.record.formats.functions import category
from palmette.record.formats.messages import Message
from palmette.record.formats.protobuf import data, fixed64, number, text
from palmette.record.formats.samples import Sample, Samples, samples_of
from palmette.record.formats.selection import Call, Selection
from palmette.record.formats.threads import Threads, threads_of

PACKET = 1  # Trace
TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED, SEQUENCE_FLAGS, TRACK = 8, 10, 11, 12, 13, 60  # TracePacket
STATE_CLEARED, NEEDS_STATE = 1, 2  # TracePacket.SequenceFlags
UUID, TRACK_NAME, PROCESS, THREAD, PARENT = 1, 2, 3, 4, 5  # TrackDescriptor
PID, SORT_INDEX, PROCESS_NAME, TID, THREAD_NAME = 1, 3, 6, 2, 5  # ProcessDescriptor, ThreadDescriptor
CATEGORY, ANNOTATION, TYPE, NAME, EVENT_TRACK, SOURCE, FLOWS, LAST_FLOWS = 3, 4, 9, 10, 11, 34, 47, 48  # TrackEvent
BEGIN, END, INSTANT = 1, 2, 3  # TrackEvent.Type
ANNOTATION_NAME, UNSIGNED, SIGNED, STRING = 1, 3, 4, 17  # DebugAnnotation
CATEGORIES, NAMES, ANNOTATION_NAMES, SOURCES, STRINGS = 1, 2, 3, 4, 29  # InternedData
FUNCTIONS, FRAMES, STACKS, MAPPING_PATHS, MAPPINGS = 5, 6, 7, 17, 19  # InternedData
FRAME_FUNCTION, FRAME_MAPPING, STACK_FRAMES, MAPPING_PATH = 2, 3, 2, 7  # Frame, Callstack, Mapping
PERF_SAMPLE = 66  # TracePacket
SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE, SAMPLE_COUNT, USER_MODE = 2, 3, 4, 5, 6, 2  # PerfSample
IID, INTERNED_TEXT, FUNCTION_NAME, LINE = 1, 2, 3, 4  # EventName and so on, SourceLocation

MOST_ANNOTATIONS = 1 << 16
"""Annotations that are kept for reuse: sizes, peers and tags repeat themselves."""
ONLY_SEQUENCE = number(SEQUENCE, 1)
END_EVENT = number(TYPE, END)


class _Writer:
    """Packets of one sequence; names and places are written once and then referred to by a number."""

    def __init__(self, file: BinaryIO, selection: Selection) -> None:
        self._file, self._selection = file, selection
        self._interned: dict[tuple[int, str], int] = {}
        self._new = b""
        self._annotations: dict[tuple[str, int], bytes] = {}
        self._constant: dict[tuple[str, bool, int, int, str, int], bytes] = {}
        self._frames: dict[Site, int] = {}
        self._mappings: set[int] = set()
        """Numbers of the paths that have a mapping."""
        self._stacks: dict[int, int] = {}
        self._uuid = 0
        self._packet(number(SEQUENCE_FLAGS, STATE_CLEARED))

    def process(self, index: int) -> int:
        """Write the track of a process and return its number; tracks of its threads belong to it."""
        process = self._selection.everyone[index]
        name = f"{self._selection.name(index)} on {process.host}"
        described = number(PID, index + 1) + number(SORT_INDEX, index) + text(PROCESS_NAME, name)
        return self._track(data(PROCESS, described))

    def thread(self, index: int, thread: int, tid: int) -> int:
        """Write the track of a thread and return its number; 0: one that makes no calls."""
        described = number(PID, index + 1) + number(TID, tid)
        described += text(THREAD_NAME, f"thread {thread}" if thread else "without MPI")
        return self._track(data(THREAD, described))

    def lane(self, process: int) -> int:
        """Write a track of requests; the viewer shows those of one name together."""
        return self._track(number(PARENT, process) + text(TRACK_NAME, "requests"))

    def slice(self, track: int, call: Call, sent: Iterable[Message] = (), received: Iterable[Message] = ()) -> None:
        """Write a call or request, with the messages that leave it and those that have come when it ends."""
        on = number(EVENT_TRACK, track)
        event = self._constant_part(call) + on + self._annotation("bytes", UNSIGNED, call.bytes)
        if call.peer >= 0:
            event += self._annotation("peer", SIGNED, call.peer)
        if call.instance:
            event += self._annotation("instance", UNSIGNED, call.instance)
        elif call.peer != -1:
            event += self._annotation("tag", SIGNED, call.tag)
        for message in sent:
            event += fixed64(FLOWS, message.number)
        self._event(call.begin_ns, event)
        for message in received:
            self._arrival(max(call.begin_ns, call.end_ns - 1), on, message)
        self._event(call.end_ns, END_EVENT + on)

    def _arrival(self, time_ns: int, on: bytes, message: Message) -> None:
        """Write an instant that an arrow leads to: one to the call itself would lead to its begin, where the message
        may not yet have been sent.
        """
        event = number(TYPE, INSTANT) + on + number(NAME, self._intern(NAMES, "received"))
        event += number(CATEGORY, self._intern(CATEGORIES, "received"))
        event += self._annotation("bytes", UNSIGNED, message.bytes)
        rank = self._selection.everyone[message.sender].recorded.rank
        event += self._annotation("from rank", SIGNED, rank)
        self._event(time_ns, event + fixed64(LAST_FLOWS, message.number))

    def _constant_part(self, call: Call) -> bytes:
        key = call.function, call.is_request, call.path, call.communicator, call.algorithm, call.instance and 1
        if key not in self._constant:
            place = self._selection.place(call.path)
            part = number(TYPE, BEGIN) + number(NAME, self._intern(NAMES, call.function))
            part += number(CATEGORY, self._intern(CATEGORIES, category(call)))
            part += self._annotation("called at", STRING, self._intern(STRINGS, str(place)))
            if call.communicator:
                name = self._selection.communicators[call.communicator].name
                part += self._annotation("communicator", STRING, self._intern(STRINGS, name))
            if call.algorithm:
                part += self._annotation("algorithm", STRING, self._intern(STRINGS, call.algorithm))
            if place.file:
                more = text(FUNCTION_NAME, place.function) + number(LINE, place.line)
                part += number(SOURCE, self._intern(SOURCES, place.file, more))
            self._constant[key] = part
        return self._constant[key]

    def _annotation(self, name: str, kind: int, value: int) -> bytes:
        key = name, value
        if key not in self._annotations:
            if len(self._annotations) > MOST_ANNOTATIONS:
                self._annotations.clear()
            part = number(ANNOTATION_NAME, self._intern(ANNOTATION_NAMES, name)) + number(kind, value)
            self._annotations[key] = data(ANNOTATION, part)
        return self._annotations[key]

    def _intern(self, kind: int, value: str, more: bytes = b"") -> int:
        key = kind, value + more.decode("utf-8", "replace")
        if key not in self._interned:
            self._interned[key] = len(self._interned) + 1
            self._new += data(kind, number(IID, self._interned[key]) + text(INTERNED_TEXT, value) + more)
        return self._interned[key]

    def sample(self, index: int, tid: int, one: Sample, samples: Samples) -> None:
        """Write a sample on a thread's track."""
        if one.site not in self._stacks:
            frames = b"".join(number(STACK_FRAMES, self._frame(site)) for site in samples.stack(one.site))
            self._stacks[one.site] = len(self._stacks) + 1
            self._new += data(STACKS, number(IID, self._stacks[one.site]) + frames)
        told = number(SAMPLE_PID, index + 1) + number(SAMPLE_TID, tid) + number(SAMPLE_STACK, self._stacks[one.site])
        told += number(SAMPLE_MODE, USER_MODE) + number(SAMPLE_COUNT, one.cpu_ns)
        self._timed(one.at_ns, data(PERF_SAMPLE, told))

    def _frame(self, site: Site) -> int:
        if site not in self._frames:
            name = f"{site.function} ({site.place})" if site.line else site.function
            path = self._intern(MAPPING_PATHS, site.file or "unknown")
            if path not in self._mappings:
                self._mappings.add(path)
                self._new += data(MAPPINGS, number(IID, path) + number(MAPPING_PATH, path))
            self._frames[site] = len(self._frames) + 1
            frame = number(FRAME_FUNCTION, self._intern(FUNCTIONS, name)) + number(FRAME_MAPPING, path)
            self._new += data(FRAMES, number(IID, self._frames[site]) + frame)
        return self._frames[site]

    def _track(self, described: bytes) -> int:
        self._uuid += 1
        self._packet(data(TRACK, number(UUID, self._uuid) + described))
        return self._uuid

    def _event(self, time_ns: int, event: bytes) -> None:
        self._timed(time_ns, data(TRACK_EVENT, event))

    def _timed(self, time_ns: int, what: bytes) -> None:
        packet = number(TIMESTAMP, time_ns) + what + number(SEQUENCE_FLAGS, NEEDS_STATE)
        if self._new:
            packet += data(INTERNED, self._new)
            self._new = b""
        self._packet(packet)

    def _packet(self, packet: bytes) -> None:
        self._file.write(data(PACKET, packet + ONLY_SEQUENCE))


def write(path: Path, selection: Selection) -> Counts:
    """Write the calls of a selection. Cost: O(calls log calls), some 20 us each; those of one process are in memory."""
    found = messages.match(selection)
    counts = Counts(messages=len(found.all))
    samples = samples_of(selection)
    with path.open("wb") as file:
        writer = _Writer(file, selection)
        tid = len(selection.everyone)
        for index in selection.chosen:
            threads = threads_of(selection, index)
            process = writer.process(index)
            tids: dict[int, int] = {1: index + 1}  # as the main thread has its process's number
            for thread, steps in threads.steps.items():
                if thread == 1:
                    track = writer.thread(index, thread, tids[1])
                else:
                    tid += 1
                    tids[thread] = tid
                    track = writer.thread(index, thread, tid)
                for step in steps:
                    sent, received = found.sent[index], found.received[index]
                    began = [step.call, *step.starts]
                    ended = [step.call, *step.completes]
                    writer.slice(
                        track, step.call, [sent[one.number] for one in began if one.number in sent],
                        [received[one.number] for one in ended if one.number in received],
                    )  # fmt: skip
                    counts.add(step.call)
            _requests(writer, process, threads, counts)
            others: dict[int, int] = {}
            if samples is None:
                continue
            for one in samples.of(index):
                if one.thread not in tids and one.thread_id not in others:
                    tid += 1
                    others[one.thread_id] = tid
                    writer.thread(index, 0, tid)
                writer.sample(index, tids.get(one.thread) or others[one.thread_id], one, samples)
    return counts


def _requests(writer: _Writer, process: int, threads: Threads, counts: Counts) -> None:
    """Write requests, each on the track that has been free for longest: slices of one track mustn't overlap."""
    free: list[tuple[int, int]] = []
    for request in threads.requests:
        if free and free[0][0] <= request.begin_ns:
            _, track = heapq.heappop(free)
        else:
            track = writer.lane(process)
        writer.slice(track, request)
        heapq.heappush(free, (request.end_ns, track))
        counts.add(request)
