"""OTF2 archives, for Vampir, Scalasca and everything else that reads Score-P's traces. Written by the `otf2` package.

A location group for each rank, a location for each of its threads, a system tree node for each host. Messages and
collectives are on communicators that are known as a whole: OTF2 names a communicator by its members.

Events of calling contexts exclude those of regions. So a sample outside of MPI is a value of the metric `processor
time`, of threads that make calls, whose attribute `stack` names its calling context.
"""

from __future__ import annotations

import errno
from collections import defaultdict, deque
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from palmette.record.formats import messages
from palmette.record.formats.counts import Counts
from palmette.record.formats.functions import is_collective
from palmette.record.formats.samples import Sample, samples_of
from palmette.record.formats.selection import WORLD, Call, Communicator, Selection
from palmette.record.formats.threads import Step, threads_of
from palmette.record.functions import only_starts, operation
from palmette.record.reading import RecordError

ONE_TO_ALL = ("bcast", "scatter", "scatterv")


def write(path: Path, selection: Selection) -> Counts:
    """Write an archive into the new folder `path`. Raises RecordError where the package isn't there.

    Cost: O(calls log calls), some 40 us each; those of one process are in memory.
    """
    try:
        otf2 = import_module("otf2")
    except ModuleNotFoundError:
        raise RecordError("OTF2 needs the package otf2, which isn't installed: pip install otf2") from None
    found = messages.match(selection)
    archive = otf2.writer.Writer(str(path), timer_resolution=1_000_000_000)
    try:
        archive.creator = "palmette"
        writer = _Writer(otf2, archive, selection)
        for index in selection.chosen:
            writer.process(index, found)
        # The package takes the time of the conversion; the first event was at this time.
        archive._realtime_timestamp = (selection.begin_real_ns + (archive._first_timestamp or 0)) * 1e-9
        archive.close()
    except BaseException as error:
        # When it is forgotten, the package would close it once more, and print what comes of that.
        archive._handle = None
        if type(error).__module__.startswith("_otf2"):  # the disk is full, mostly; the library has printed it
            raise OSError(errno.EIO, f"the OTF2 library failed with {error}", str(path)) from None
        raise
    return writer.counts


class _SampleQueue:
    """Samples of a thread, taken off as time goes on."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._left = deque(samples)

    def until(self, time_ns: int) -> list[Sample]:
        """Return those before a time that weren't taken yet."""
        found = []
        while self._left and self._left[0].at_ns < time_ns:
            found.append(self._left.popleft())
        return found


class _Writer:
    """Definitions, each made when it is first needed, and events."""

    def __init__(self, otf2: Any, archive: Any, selection: Selection) -> None:
        self._otf2, self._archive, self._selection = otf2, archive, selection
        self.counts = Counts()
        made = archive.definitions
        mpi = otf2.Paradigm.MPI
        made.paradigm(mpi, name="MPI", paradigm_class=otf2.ParadigmClass.PROCESS)
        machine = made.system_tree_node("machine", class_name="machine")
        self._groups: list[Any] = []
        self._masters: list[Any] = []
        for index, process in enumerate(selection.everyone):
            host = made.system_tree_node(process.host, class_name="node", parent=machine)
            group = made.location_group(
                selection.name(index), location_group_type=otf2.LocationGroupType.PROCESS,
                system_tree_parent=host,
            )  # fmt: skip
            self._groups.append(group)
            self._masters.append(made.location("thread 1", otf2.LocationType.CPU_THREAD, group=group))
        for host in list(made.system_tree_nodes)[1:]:
            made.system_tree_node_domain(host, otf2.SystemTreeDomain.SHARED_MEMORY)
        made.group("", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=mpi, members=tuple(self._masters))
        self._alone = made.group("", group_type=otf2.GroupType.COMM_SELF, paradigm=mpi, members=())
        self._called_at = made.attribute(
            "called at", description="Where the program calls MPI", type=otf2.Type.SOURCE_CODE_LOCATION
        )
        self._started: set[int] = set()
        """Call.number of the nonblocking collectives of the process being written."""
        self._regions: dict[str, Any] = {}
        self._comms: dict[int, Any] = {}
        self._places: dict[int, dict[Any, Any] | None] = {}
        self._metric: Any = None
        self._stack: Any = None
        self._contexts: dict[int, Any] = {}
        """Handle of the calling context of each site."""
        self._samples = samples_of(selection)

    def process(self, index: int, found: messages.Messages) -> None:
        """Write the events of a process."""
        threads = threads_of(self._selection, index)
        program = self._program(self._selection.everyone[index].recorded.executable)
        # Before any thread is written: one may complete what a later one starts.
        self._started = {
            request.number
            for steps in threads.steps.values()
            for step in steps
            for request in step.starts
            if self._is_nonblocking_collective(request, index, found)
        }
        sampled: dict[int, list[Sample]] = defaultdict(list)
        for one in self._samples.of(index) if self._samples else ():
            sampled[one.thread].append(one)
        for thread, steps in threads.steps.items():
            made = self._archive.definitions
            location = self._masters[index]
            if thread != 1:
                kind = self._otf2.LocationType.CPU_THREAD
                location = made.location(f"thread {thread}", kind, group=self._groups[index])
            events = self._archive.event_writer_from_location(location)
            events.enter(steps[0].call.begin_ns, program)
            taken = _SampleQueue(sampled[thread])
            taken.until(steps[0].call.begin_ns)
            for step in steps:
                for one in taken.until(step.call.begin_ns):
                    self._sample(events, one)
                self._step(events, index, step, found)
                # What lies in a call by the clock is the call's.
                taken.until(step.call.end_ns + 1)
            events.leave(steps[-1].call.end_ns, program)
        self.counts.requests += len(threads.requests)

    def _sample(self, events: Any, one: Sample) -> None:
        made = self._archive.definitions
        if self._metric is None:
            kinds, modes = self._otf2.MetricType.OTHER, self._otf2.MetricMode.ABSOLUTE_LAST
            member = made.metric_member(
                "processor time", "Since the thread's sample before", kinds, modes, self._otf2.Type.UINT64,
                self._otf2.Base.DECIMAL, -9, "s",
            )  # fmt: skip
            self._metric = made.metric_class((member,), self._otf2.MetricOccurrence.ASYNCHRONOUS)
            self._stack = made.attribute("stack", description="What was sampled", type=self._otf2.Type.CALLING_CONTEXT)
        events.metric(one.at_ns, self._metric, [one.cpu_ns], attributes={self._stack: self._context(one.site)})

    def _context(self, site: int) -> Any:
        """Return the definition of a calling context, callers' first."""
        if self._samples is None:
            return None
        tree = self._samples.contexts
        missing = [one for one in tree.callers(site) if one not in self._contexts]
        made = self._archive.definitions
        for one in reversed(missing):
            above = self._contexts.get(tree.parents[one])
            for what in tree.sites[one].frames:
                roles = self._otf2.RegionRole
                region = made.region(what.function, canonical_name=what.function, source_file=what.file,
                                     region_role=roles.LOOP if what.kind == "loop" else roles.FUNCTION,
                                     paradigm=self._otf2.Paradigm.SAMPLING)  # fmt: skip
                place = made.source_code_location(what.file, what.line) if what.line else None
                above = made.calling_context(region, place, above)
            self._contexts[one] = above
        return self._contexts[site]

    def _step(self, events: Any, index: int, step: Step, found: messages.Messages) -> None:
        call = step.call
        region = self._region(call.function)
        events.enter(call.begin_ns, region, attributes=self._place(call.path))
        sent, received = found.sent[index], found.received[index]
        if call.number in sent:
            self._send(events.mpi_send, call.begin_ns, call, sent[call.number])
        for request in step.starts:
            if request.number in sent:
                self._send(events.mpi_isend, call.begin_ns, request, sent[request.number], request.number)
            elif request.number in received and self._comm(request) and only_starts(request.function):
                events.mpi_irecv_request(call.begin_ns, request.number)
            elif request.number in self._started:
                events.non_blocking_collective_request(call.begin_ns, request.number)
        whole = is_collective(call) and self._comm(call)
        if whole:
            events.mpi_collective_begin(call.begin_ns)
        for request in step.completes:
            self._complete(events, call.end_ns, request, found, index)
        if whole:
            events.mpi_collective_end(call.end_ns, *self._collective(call, index))
        if call.number in received:
            self._receive(events.mpi_recv, call.end_ns, call, received[call.number])
        events.leave(call.end_ns, region)
        self.counts.add(call)

    def _is_nonblocking_collective(self, request: Call, index: int, found: messages.Messages) -> bool:
        """Whether the start of a request is written as that of a nonblocking collective."""
        is_message = request.number in found.sent[index] or request.number in found.received[index]
        held = self._selection.holds(request)
        return held and not is_message and is_collective(request) and self._comm(request) is not None

    def _complete(self, events: Any, end_ns: int, request: Call, found: messages.Messages, index: int) -> None:
        """Write the end of a request; that of an MPI_Sendrecv is its receive."""
        if request.number in found.sent[index]:
            if self._comm(request):
                events.mpi_isend_complete(end_ns, request.number)
        elif message := found.received[index].get(request.number):
            if only_starts(request.function):
                self._receive(events.mpi_irecv, end_ns, request, message, request.number)
            else:
                self._receive(events.mpi_recv, end_ns, request, message)
        elif request.number in self._started:
            events.non_blocking_collective_complete(end_ns, *self._collective(request, index), request.number)

    def _send(self, write: Any, time_ns: int, call: Call, message: messages.Message, *request: int) -> None:
        if comm := self._comm(call):
            write(time_ns, call.peer, comm, call.tag, message.bytes, *request)
            self.counts.messages += 1

    def _receive(self, write: Any, time_ns: int, call: Call, message: messages.Message, *request: int) -> None:
        if comm := self._comm(call):
            write(time_ns, call.peer, comm, call.tag, message.bytes, *request)

    def _collective(self, call: Call, index: int) -> tuple[Any, Any, int, int, int]:
        """Return operation, communicator, root, bytes sent and received, as far as these are recorded."""
        name = operation(call.function)
        root = call.peer if call.peer >= 0 else self._otf2.CollectiveRoot.NONE
        receives = name in ONE_TO_ALL and not self._selection.is_rank(index, call.peer, call.communicator)
        sizes = (0, call.bytes) if receives else (call.bytes, 0)
        return (getattr(self._otf2.CollectiveOp, name.upper()), self._comm(call), root, *sizes)

    def _comm(self, call: Call) -> Any:
        """Return the definition of a call's communicator; None where not all of its ranks are known."""
        if call.communicator not in self._comms:
            self._comms[call.communicator] = self._made_comm(self._selection.communicators[call.communicator])
        return self._comms[call.communicator]

    def _made_comm(self, communicator: Communicator) -> Any:
        made = self._archive.definitions
        if communicator.size == 1 and communicator.id != WORLD:  # each rank has some
            return made.comm("one rank", self._alone)
        if not communicator.is_known:
            return None
        members = tuple(self._masters[communicator.members[rank]] for rank in range(communicator.size))
        kind = self._otf2.GroupType.COMM_GROUP
        group = made.group(communicator.name, group_type=kind, paradigm=self._otf2.Paradigm.MPI, members=members)
        return made.comm(communicator.name, group)

    def _region(self, function: str) -> Any:
        if function not in self._regions:
            roles = self._otf2.RegionRole
            name = operation(function)
            role = roles.COLL_OTHER if hasattr(self._otf2.CollectiveOp, name.upper()) else roles.FUNCTION
            role = roles.BARRIER if name == "barrier" else role
            role = roles.POINT2POINT if name.endswith(("send", "recv", "sendrecv_replace")) else role
            self._regions[function] = self._archive.definitions.region(
                function, canonical_name=function, region_role=role, paradigm=self._otf2.Paradigm.MPI
            )
        return self._regions[function]

    def _program(self, executable: str) -> Any:
        """Return the region that stands around the calls: time in it and in no call is the program's own."""
        name = Path(executable).name or "program"
        return self._archive.definitions.region(
            name, canonical_name=name, source_file=executable, region_role=self._otf2.RegionRole.FUNCTION,
            paradigm=self._otf2.Paradigm.USER,
        )  # fmt: skip

    def _place(self, path: int) -> dict[Any, Any] | None:
        if path not in self._places:
            place = self._selection.place(path)
            at = None
            if place.file:
                at = {self._called_at: self._archive.definitions.source_code_location(place.file, place.line)}
            self._places[path] = at
        return self._places[path]
