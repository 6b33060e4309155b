"""The links of a host now: counters of its adapters beside what a recorded job sends over them itself."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from palmette.record.reading import Job
from palmette.record.sent import Pairs, of_world, own_blocks, own_messages, served_messages

WORD_BYTES = 4
"""Unit of an InfiniBand port's data counters."""
ERRORS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards")
"""Error counters of an InfiniBand port that ibqueryerrors shows."""
NOT_PHYSICAL = "lo"


@dataclass(frozen=True)
class Port:
    """One adapter's port at one instant; counters since its start, in bytes of frames."""

    name: str
    kind: str
    """`ethernet` or `infiniband`."""
    rate: float | None
    """Bytes a second in each direction; None: the system doesn't tell."""
    sent: int
    received: int
    errors: int
    """Frames dropped or damaged, retrained links."""
    waited: int | None
    """Ticks in which data couldn't be sent for lack of credits (InfiniBand's PortXmitWait); None: not counted."""


@dataclass(frozen=True)
class Flow:
    """A port between two instants: bytes a second."""

    port: Port
    out: float
    into: float
    errors: int
    waited: int | None


@dataclass
class Links:
    """What went over the links of a host in some seconds, and how much of it one job sent and received.

    The job's bytes are those that its program handed to MPI for other hosts; frames have headers besides, and an MPI
    may retry, so that links carry more. Through which port of several they went isn't known.
    """

    host: str
    seconds: float
    flows: list[Flow]
    job_out: float | None
    """Bytes a second; None: no recording, or none of its ranks is on this host."""
    job_into: float | None
    notes: list[str] = field(default_factory=list)


def ports(sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> list[Port]:
    """Return the ports of this host, or of this network namespace. Cost: a read of some small files for each.

    Ports whose counters can't be read are left out.
    """
    return [*_ethernet(sys, proc), *_infiniband(sys)]


def _ethernet(sys: Path, proc: Path) -> Iterator[Port]:
    try:
        lines = (proc / "self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    except OSError:
        return
    for line in lines:
        name, _, numbers = line.partition(":")
        name = name.strip()
        counted = [int(one) for one in numbers.split()]
        if name == NOT_PHYSICAL or len(counted) < 12:
            continue
        received, receive_errors, receive_drops = counted[0], counted[2], counted[3]
        sent, send_errors, send_drops = counted[8], counted[10], counted[11]
        yield Port(
            name, "ethernet", _megabits(sys / "class/net" / name / "speed"), sent, received,
            receive_errors + receive_drops + send_errors + send_drops, None,
        )  # fmt: skip


def _megabits(file: Path) -> float | None:
    speed = _number(file)
    return speed * 1e6 / 8 if speed is not None and speed > 0 else None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _infiniband(sys: Path) -> Iterator[Port]:
    for port in sorted(sys.glob("class/infiniband/*/ports/*")):
        counters = port / "counters"
        sent, received = (_number(counters / f"port_{way}_data") for way in ("xmit", "rcv"))
        if sent is None or received is None:
            continue
        try:
            rate = re.match(r"([\d.]+) Gb/sec", (port / "rate").read_text(encoding="ascii"))
        except OSError:
            rate = None
        yield Port(
            f"{port.parents[1].name}/{port.name}", "infiniband", float(rate[1]) * 1e9 / 8 if rate else None,
            sent * WORD_BYTES, received * WORD_BYTES, sum(_number(counters / name) or 0 for name in ERRORS),
            _number(counters / "port_xmit_wait"),
        )  # fmt: skip


def flows(before: Sequence[Port], after: Sequence[Port], seconds: float) -> list[Flow]:
    """Return what went over each port that is in both, busiest first. A counter that began anew counts from 0."""
    known: Mapping[str, Port] = {port.name: port for port in before}
    found = []
    for port in after:
        if (old := known.get(port.name)) is None:
            continue
        waited = None if port.waited is None or old.waited is None else _grown(old.waited, port.waited)
        found.append(
            Flow(
                port, _grown(old.sent, port.sent) / seconds, _grown(old.received, port.received) / seconds,
                _grown(old.errors, port.errors), waited,
            )
        )  # fmt: skip
    return sorted(found, key=lambda flow: -max(flow.out, flow.into))


def _grown(before: int, after: int) -> int:
    return after - before if after >= before else after


def job_bytes(job: Job, host: str) -> tuple[float, float] | None:
    """Return the bytes that ranks of a job on `host` have sent to, and received from, ranks on other hosts so far.

    The program's own messages, blocks of collectives whose counts say to whom, and what collectives that palmette
    served sent; collectives of the MPI itself aren't in it. None: no rank is on the host. Cost: O(pairs).
    """
    here = np.zeros(job.size, bool)
    for process in of_world(job):
        if process.host == host and process.recorded.rank < job.size:
            here[process.recorded.rank] = True
    if not here.any():
        return None
    out = into = 0.0
    kinds: tuple[Pairs, ...] = own_messages(job), own_blocks(job), served_messages(job)
    for pairs in kinds:
        out += float(pairs.bytes[here[pairs.source] & ~here[pairs.target]].sum())
        into += float(pairs.bytes[~here[pairs.source] & here[pairs.target]].sum())
    return out, into


class Watch:
    """The links of this host, looked at again and again."""

    def __init__(self, sys: Path = Path("/sys"), proc: Path = Path("/proc"), host: str = "") -> None:
        self._sys, self._proc = sys, proc
        self._host = host or socket.gethostname()
        self._at, self._ports = time.monotonic(), ports(sys, proc)
        self._job: tuple[float, float] | None = None

    def begin(self, job: Job | None) -> None:
        """Take the counters from which the next `links` counts."""
        self._at, self._ports = time.monotonic(), ports(self._sys, self._proc)
        self._job = job_bytes(job, self._host) if job else None

    def links(self, job: Job | None) -> Links:
        """Return what went over the links since the last time, and begin anew."""
        at, now = time.monotonic(), ports(self._sys, self._proc)
        seconds = max(at - self._at, 1e-9)
        sums = job_bytes(job, self._host) if job else None
        known = sums and self._job
        found = Links(
            self._host, seconds, flows(self._ports, now, seconds),
            max(0.0, sums[0] - self._job[0]) / seconds if sums and self._job else None,
            max(0.0, sums[1] - self._job[1]) / seconds if sums and self._job else None,
        )  # fmt: skip
        if not now:
            found.notes.append("this host has no adapter whose counters can be read")
        if job and not known:
            found.notes.append(f"no rank of the recording is on {self._host}")
        self._at, self._ports, self._job = at, now, sums
        return found


def document(links: Links) -> dict[str, object]:
    """Return it as JSON, bytes a second."""
    return {
        "host": links.host,
        "seconds": links.seconds,
        "job_out": links.job_out,
        "job_into": links.job_into,
        "links": [
            {
                "name": flow.port.name, "kind": flow.port.kind, "rate": flow.port.rate, "out": flow.out,
                "into": flow.into, "errors": flow.errors, "waited": flow.waited,
            }
            for flow in links.flows
        ],
        "notes": links.notes,
    }  # fmt: skip
