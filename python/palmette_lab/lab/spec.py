"""The machine that a lab emulates, with its link rates: from the synthetic form or a topology.json."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from palmette.topology import file as topology_file
from palmette.topology.found import DiscoverError
from palmette.topology.model import Aggregator, InsideGroup, Level, Machine, TreeNode
from palmette.topology.synthetic import discover_synthetic
from palmette.units import PAYLOAD_SHARE
from palmette_lab.lab.errors import LabError

MAX_HOSTS = 250
"""Aggregators included."""


@dataclass(frozen=True)
class Spec:
    """A machine with the rates of its links.

    `line_bits_per_s` is by child group or aggregator, frame headers included; None: unlimited. `spine_delay_s` is one
    way.
    """

    machine: Machine
    line_bits_per_s: dict[str, float | None]
    spine_delay_s: float

    @property
    def hosts(self) -> list[TreeNode]:
        """The hosts in topology order."""
        return list(self.machine.tree.hosts())

    @property
    def aggregators(self) -> list[tuple[TreeNode, Aggregator]]:
        """The aggregators, each with its switch, in topology order of these."""
        return [(group, one) for group in self.machine.tree.walk() for one in group.aggregators]

    def slots(self, host: TreeNode) -> int:
        """Slots for ranks on `host`."""
        return host.slots or count_slots(self.machine.insides.get(host.inside or "", []))


def count_slots(groups: list[InsideGroup]) -> int:
    """Return the number of innermost slots of a host's inside, 1 for an empty one."""
    return sum(group.leaves() for group in groups) or 1


def read_spec(text: str) -> Spec:
    """Read a synthetic machine, or the topology.json at the path `text`.

    The rates of the first are link rates; the capacities of the second are payload, so link rates add the headers.
    Raises LabError.
    """
    is_file = text.endswith(".json") or Path(text).is_file()
    try:
        machine = topology_file.load(text).machine if is_file else discover_synthetic(text).machine
    except (DiscoverError, topology_file.TopologyError) as error:
        raise LabError(str(error)) from error
    if machine is None:
        raise LabError(f"'{text}' describes no machine; write it like 3leaf@50Mbit/s:3node@100Mbit/s:2core")
    factor = 8 / PAYLOAD_SHARE if is_file else 8
    groups = list(machine.tree.walk())
    links = {group.name: group.up_bytes_per_s for group in groups[1:]}
    links |= {one.name: one.up_bytes_per_s for group in groups for one in group.aggregators}
    rates = {name: bytes_per_s * factor if bytes_per_s else None for name, bytes_per_s in links.items()}
    spec = Spec(machine, rates, _typed_latency_s(machine.levels[0]) or 0.0)
    _check(text, spec)
    return spec


def _typed_latency_s(level: Level) -> float | None:
    """Return a requested latency; a calibrated one includes the MPI's overhead, which the lab's MPI adds by itself."""
    return None if level.source == "calibrated" else level.latency_s


def _check(text: str, spec: Spec) -> None:
    """Raise LabError for a machine that can't be emulated."""
    for level in spec.machine.levels[1:]:
        if _typed_latency_s(level):
            raise LabError(f"machine '{text}': a lab delays the top switch only; drop the latency of '{level.name}'")
    aggregators = [one for _, one in spec.aggregators]
    names = Counter([group.name for group in spec.machine.tree.walk()] + [one.name for one in aggregators])
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        raise LabError(
            f"machine '{text}': two switches, hosts or aggregators are called {repeated[0]}; give each its own name"
        )
    placed = [host.name for host in spec.hosts] + [one.name for one in aggregators]
    if not spec.hosts or len(placed) > MAX_HOSTS:
        what = f"{len(placed)} hosts and aggregators" if aggregators else f"{len(placed)} hosts"
        raise LabError(f"machine '{text}' has {what}; a lab takes 1 to {MAX_HOSTS}")
    for name in placed:
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?", name):
            raise LabError(f"'{name}' can't be a host name; use letters, digits, dots and hyphens, 63 at most")
        if name == "login":
            raise LabError("'login' is the name of the host that launchers run on; call the other one differently")
