"""What the network adapters of a job's hosts carried, beside what its messages and plans account for.

The counters are the kernel's: they count whatever goes over an adapter. What is more than this job's own is others':
another job, storage, or collectives of the MPI itself whose bytes nobody tells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from palmette import _core
from palmette.record.functions import COLLECTIVES, operation
from palmette.record.reading import Job, Process
from palmette.record.sent import of_world, own_blocks, own_messages, served_messages
from palmette.units import bytes_text, plural

HEADER_BYTES = {"interface": 66, "infiniband": 26}
"""Bytes of a packet that aren't payload: headers of Ethernet, IP and TCP with time stamps; of the local route and the
transport, and checksums.
"""
LEAST_BYTES, LEAST_SHARE = 1e6, 0.1
"""What others send is told from there on, and from that share of all that an adapter carries."""


@dataclass(frozen=True)
class Adapter:
    """An adapter, from the first reading of its counters to the last."""

    host: str
    name: str
    kind: str
    """interface, or infiniband: a port."""
    received_bytes: int
    sent_bytes: int
    received_packets: int
    sent_packets: int
    waited: int
    """Ticks of a port's own clock in which it had data to send and wasn't let (port_xmit_wait)."""
    span_s: float
    most_bytes_per_s: float
    """Bytes in the fullest second, in the fuller direction."""


@dataclass(frozen=True)
class Host:
    """Payload out of and into a host."""

    host: str
    sent_bytes: float
    received_bytes: float
    own_sent_bytes: float
    """Part of sent_bytes that the job's messages, blocks and plans account for."""
    own_received_bytes: float

    @property
    def others_sent_bytes(self) -> float:
        """What else left the host."""
        return max(0.0, self.sent_bytes - self.own_sent_bytes)

    @property
    def others_received_bytes(self) -> float:
        """What else came to it."""
        return max(0.0, self.received_bytes - self.own_received_bytes)


def adapters_of(job: Job) -> list[Adapter]:
    """Return the adapters that carried anything, by host. Cost: O(readings)."""
    found = []
    for process in job.processes:
        found += [one for recorded in process.recorded.adapters if (one := _adapter(process, recorded)) is not None]
    return sorted(found, key=lambda one: (one.host, -one.received_bytes - one.sent_bytes))


def _adapter(process: Process, recorded: _core.RecordedAdapter) -> Adapter | None:
    if len(recorded.real_ns) < 2:
        return None

    def grown(counter: Sequence[int]) -> int:
        # A counter that was set back, or ran over, tells nothing of that step.
        return sum(later - earlier for earlier, later in pairwise(counter) if later >= earlier)

    received, sent = grown(recorded.received_bytes), grown(recorded.sent_bytes)
    if not received and not sent:
        return None
    spans = np.diff(np.asarray(recorded.real_ns, np.float64)) * 1e-9
    most = 0.0
    for counter in (recorded.received_bytes, recorded.sent_bytes):
        # Readings at the start and the end may be less than a second apart from the next one.
        most = max(most, float((np.diff(np.asarray(counter, np.float64)) / np.maximum(spans, 0.5)).max()))
    return Adapter(
        process.host, recorded.name, "infiniband" if recorded.is_infiniband else "interface",
        received, sent, grown(recorded.received_packets), grown(recorded.sent_packets), grown(recorded.waited),
        (recorded.real_ns[-1] - recorded.real_ns[0]) * 1e-9, most,
    )  # fmt: skip


def hosts_of(job: Job, adapters: Sequence[Adapter]) -> list[Host]:
    """Return hosts with what their adapters carried, without the packets' headers, and what the job accounts for.

    Of a host's interfaces the fullest counts, since bonds and bridges show the same bytes again; of its ports all do.
    Cost: O(pairs + what plans send).
    """
    own = _own(job)
    found = []
    for host in dict.fromkeys(one.host for one in adapters):
        here = [one for one in adapters if one.host == host]
        ports = [one for one in here if one.kind == "infiniband"]
        fullest = [one for one in here if one.kind == "interface"][:1]
        used = max((ports, fullest), key=lambda some: sum(one.sent_bytes + one.received_bytes for one in some))
        sent = sum(one.sent_bytes - HEADER_BYTES[one.kind] * one.sent_packets for one in used)
        received = sum(one.received_bytes - HEADER_BYTES[one.kind] * one.received_packets for one in used)
        found.append(Host(host, max(0, sent), max(0, received), *own[host]))
    return found


def _own(job: Job) -> dict[str, list[float]]:
    """Return by host the bytes that the job has sent from it to others, and from others to it."""
    host_of = {process.recorded.rank: process.host for process in of_world(job)}
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for pairs in (own_messages(job), own_blocks(job), served_messages(job)):
        columns = (pairs.source.tolist(), pairs.target.tolist(), pairs.bytes.tolist())
        for source, target, sent in zip(*columns, strict=True):
            outer, inner = host_of.get(source, ""), host_of.get(target, "")
            if outer != inner:
                found[outer][0] += sent
                found[inner][1] += sent
    return found


def own_collectives(job: Job) -> int:
    """Return how many collectives with bytes the MPI itself did, whose messages nobody tells; over all ranks."""
    done = served = 0
    for process in of_world(job):
        done += sum(
            one.calls for one in process.recorded.aggregates
            if not one.is_request and one.bytes and operation(one.function) in COLLECTIVES
        )  # fmt: skip
        served += sum(plan.calls for plan in process.recorded.plans[1:])
    return max(0, done - served)


def notes(job: Job) -> list[str]:
    """Return what else than this job used its hosts' adapters; of one on a single host, which uses none, nothing."""
    if len({process.host for process in job.processes}) < 2:
        return []
    told = []
    for host in hosts_of(job, adapters_of(job)):
        ways = []
        for what, whole, others in (
            ("out", host.sent_bytes, host.others_sent_bytes), ("in", host.received_bytes, host.others_received_bytes),
        ):  # fmt: skip
            if others > max(LEAST_BYTES, LEAST_SHARE * whole):
                ways.append(f"{bytes_text(others)} of {bytes_text(whole)} {what}")
        if ways:
            told.append(f"{host.host} {' and '.join(ways)}")
    if not told:
        return []
    more = f" and {plural(len(told) - 3, 'more host')}" if len(told) > 3 else ""
    calls = own_collectives(job)
    cause = f", or {calls:,} collectives that the MPI itself did" if calls else ""
    return [
        "adapters carried more than this job's messages and plans account for: "
        f"{'; '.join(told[:3])}{more}: others' traffic{cause}"
    ]


def document(job: Job) -> dict[str, Any] | None:
    """Return adapters and hosts as a document; None where no counters were read."""
    adapters = adapters_of(job)
    if not adapters:
        return None
    return {
        "adapters": [{**vars(one)} for one in adapters],
        "hosts": [
            {**vars(one), "others_sent_bytes": one.others_sent_bytes,
             "others_received_bytes": one.others_received_bytes}
            for one in hosts_of(job, adapters)
        ],
        "unaccounted_collectives": own_collectives(job),
    }  # fmt: skip
