"""Background traffic on a lab: an all-to-all of extra processes concurrent with the job, and its load of the links.

As in the gather paper's second experiment (Kandalla et al., 2010), half of the processes of every switch run an endless
all-to-all while the collectives are measured. Here they are additional single-threaded processes that block in poll(),
so that they load the links and not the cores.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette import _core
from palmette.bench.results import EdgeLoad
from palmette.measure.errors import BenchError
from palmette.mpi import helpers
from palmette.topology.model import TreeNode
from palmette_lab.lab import Lab
from palmette_lab.lab.helpers import helper

DEFAULT_BYTES = 64 << 10
_PORT = 34000
_BEGIN_S = 30.0
_LONGEST_S = 7200.0
"""Lifetime of the processes, even where their parent dies."""

_SETTLE_S = 0.5


@dataclass(frozen=True)
class Traffic:
    """`alltoall[:half|:all][:SIZE]`: processes for half of the slots (or all), SIZE bytes for each other in a round."""

    half: bool
    size_bytes: int

    @staticmethod
    def parse(text: str) -> Traffic:
        """Parse the text; the defaults are half and 64K. Raises BenchError."""
        words = text.split(":")
        half, size = True, DEFAULT_BYTES
        rest = words[1:]
        if rest and rest[0] in ("half", "all"):
            half = rest.pop(0) == "half"
        try:
            if rest:
                size = _core.parse_size(rest.pop(0))
        except _core.Error as error:
            raise BenchError(f"traffic '{text}': {error}") from None
        if words[0] != "alltoall" or rest or not 1 <= size <= 1 << 30:
            raise BenchError(f"traffic '{text}' is not alltoall[:half|:all][:SIZE], as in alltoall:half:64K")
        return Traffic(half, size)

    @property
    def text(self) -> str:
        """The traffic in full: `alltoall:half:64K`."""
        return f"alltoall:{'half' if self.half else 'all'}:{_core.format_size(self.size_bytes)}"


def hosts_of_processes(tree: TreeNode, slots: dict[str, int], traffic: Traffic) -> list[str]:
    """Return the host of each background process: half of the slots below every switch, rounded up, round-robin over
    its hosts.
    """
    found: list[str] = []
    for switch in tree.walk():
        hosts = [child.name for child in switch.children if child.level == "node"]
        places = sum(slots[host] for host in hosts)
        wanted = (places + 1) // 2 if traffic.half else places
        found += [hosts[index % len(hosts)] for index in range(wanted)]
    return found


@dataclass(frozen=True)
class Snapshot:
    """Counters at one time: bytes over each edge, out and in, and bytes sent by each process to each other."""

    time_s: float
    edges: dict[str, tuple[int, int]]
    sent: list[list[int]]


class Background:
    """The processes while they run."""

    def __init__(
        self, lab: Lab, hosts: Sequence[str], counters: Sequence[Path], processes: Sequence[subprocess.Popen[str]]
    ) -> None:
        self._lab = lab
        self._processes = list(processes)
        self._hosts = list(hosts)
        self._counters = list(counters)

    def is_alive(self) -> bool:
        """Whether all processes run; they end together."""
        return all(process.poll() is None for process in self._processes)

    def snapshot(self) -> Snapshot:
        """Read all counters. Raises LabError."""
        sent = []
        for path in self._counters:
            data = path.read_bytes()
            sent.append(list(struct.unpack(f"={len(data) // 8}Q", data)))
        return Snapshot(time.monotonic(), self._lab.link_bytes(), sent)

    def load(self, before: Snapshot, after: Snapshot) -> list[EdgeLoad]:
        """Return the utilisation of each link with a capacity between two snapshots, outermost first."""
        seconds = after.time_s - before.time_s
        loads = []
        for group in list(self._lab.tree.walk())[1:]:
            if not group.up_bytes_per_s or seconds <= 0:
                continue
            below = {host.name for host in group.hosts()}
            # Bytes that the link can carry in that time.
            full = seconds * group.up_bytes_per_s
            up, down = (now - then for now, then in zip(after.edges[group.name], before.edges[group.name], strict=True))
            traffic_up = traffic_down = 0
            for source, row in enumerate(after.sent):
                for target, count in enumerate(row):
                    bytes_sent = count - before.sent[source][target]
                    inside = (self._hosts[source] in below, self._hosts[target] in below)
                    traffic_up += bytes_sent if inside == (True, False) else 0
                    traffic_down += bytes_sent if inside == (False, True) else 0
            loads.append(
                EdgeLoad(group.name, group.level or "", up / full, down / full, traffic_up / full, traffic_down / full)
            )
        return loads


@contextlib.contextmanager
def background(lab: Lab, traffic: Traffic) -> Iterator[Background]:
    """Start the traffic, wait until it flows, end it afterwards. Raises LabError; BenchError if it doesn't start."""
    slots = {host.name: host.slots for host in lab.state.hosts}
    hosts = hosts_of_processes(lab.tree, slots, traffic)
    if len(hosts) < 2:
        raise BenchError(
            f"traffic {traffic.text} needs two processes, and the lab has slots for {len(hosts)}; take :all"
        )
    addresses = {host.name: host.address for host in lab.state.hosts}
    program = str(helper("palmette-lab-traffic"))
    with tempfile.TemporaryDirectory(prefix="palmette-traffic-") as folder, contextlib.ExitStack() as stack:
        counters = [Path(folder) / f"sent-{number}" for number in range(len(hosts))]
        processes = []
        for number, host in enumerate(hosts):
            words = [f"{_LONGEST_S:g}", str(traffic.size_bytes), str(number), str(_PORT), str(counters[number])]
            command = lab.exec_command(host, [program, *words, *(addresses[one] for one in hosts)])
            process = helpers.start(command)
            stack.callback(helpers.end, process)
            processes.append(process)
        _wait_until_ready(processes, traffic)
        time.sleep(_SETTLE_S)
        yield Background(lab, hosts, counters, processes)


def _wait_until_ready(processes: Sequence[subprocess.Popen[str]], traffic: Traffic) -> None:
    """Each prints one line once its connections are established, or exits; their own timeout is shorter than ours."""
    for process in processes:
        if (error := helpers.wait_until_ready(process)) is not None:
            raise BenchError(f"traffic {traffic.text} doesn't start: {error}; look at `palmette-lab status`")
