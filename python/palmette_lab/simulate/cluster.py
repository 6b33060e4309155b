"""The simulated cluster: a topology with a latency at each level, from a specification, a file or a stored platform."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from palmette import _core
from palmette.discover.run import discover
from palmette.files import read_bytes
from palmette.topology import file as topology_file
from palmette.topology.file import TopologyError
from palmette.topology.found import DiscoverError
from palmette.topology.model import HostCosts, InsideGroup, Level, Machine, Memory, Topology, TreeNode
from palmette.topology.synthetic import discover_synthetic
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.parameters import Parameters

MOST_HOSTS = 20_000
FREE = Memory(1e12, 1e12, "simulation")
"""Local copies and reductions take no time in SimGrid."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The simulated machine and its name."""

    name: str
    topology: Topology
    places: int = 1
    """Places of a host for which the topology has none."""
    mesh: Mapping[str, float] = field(default_factory=dict)
    """Bytes per second between any two groups, by the name of the level whose groups are joined pairwise."""

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Name and places of each host, in topology order."""
        machine = self.topology.machine
        return [(host.name, _slots(host, machine) or self.places) for host in machine.tree.hosts()]


def _slots(host: TreeNode, machine: Machine) -> int:
    groups: list[InsideGroup] | None = machine.insides.get(host.inside) if host.inside else None
    return sum(group.leaves() for group in groups) if groups else host.slots or 0


def from_spec(spec: str, name: str = "", places: int = 1) -> Cluster:
    """Return the cluster of a synthetic specification, whose hosts have `places` ranks each where it ends at them.

    Raises SimulateError.
    """
    try:
        machine = discover_synthetic(spec).machine
    except DiscoverError as error:
        raise SimulateError(str(error)) from None
    if machine is None:
        raise SimulateError(f"{spec}: describes no machine; write levels, as in 2leaf:4node:8core")
    return Cluster(name or spec, Topology(name or spec, machine), places)


def from_file(path: str, places: int = 1) -> Cluster:
    """Return the cluster of a topology.json, or of what ibnetdiscover wrote, whose hosts have `places` ranks each.

    Raises SimulateError.
    """
    try:
        data = read_bytes(path)
        is_json = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        topology = (
            topology_file.parse(data.decode("utf-8-sig"), path) if is_json else discover([("ibnetdiscover", path)])
        )
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "no text in UTF-8"
        raise SimulateError(f"can't read {path}: {reason.lower()}; give another --topology") from None
    except (TopologyError, DiscoverError) as error:
        raise SimulateError(str(error)) from None
    return Cluster(topology.name or path, topology, places)


def stored() -> dict[str, dict[str, Any]]:
    """Return the platforms that palmette brings: by name a sentence, a source and a machine in the synthetic form."""
    text = (resources.files("palmette_lab.simulate") / "platforms.json").read_text(encoding="utf-8")
    platforms: dict[str, dict[str, Any]] = json.loads(text)["platforms"]
    return platforms


def from_stored(name: str) -> Cluster:
    """Return a platform that palmette brings. Raises SimulateError naming those that there are."""
    platforms = stored()
    if name not in platforms:
        raise SimulateError(f"'{name}' is no platform; there are {', '.join(platforms)}")
    found = from_spec(platforms[name]["machine"], name)
    mesh = platforms[name].get("pairwise", {})
    return replace(found, mesh={level: _core.parse_rate(rate) for level, rate in mesh.items()})


def prepared(cluster: Cluster, parameters: Parameters, uplink_share: float = 1.0) -> Cluster:
    """Return the cluster with a latency at each level and the given share of every switch's uplink.

    Palmette reads this topology in the simulation, so both assume the same costs: intra-node messages, overheads and
    local copies have the parameters' values instead of those measured on a real machine. Loads of links are dropped:
    the simulation has no such traffic. Raises SimulateError.
    """
    machine = cluster.topology.machine
    names = [level.name for level in machine.levels]
    hosts = sum(1 for _ in machine.tree.hosts())
    if not 1 <= hosts <= MOST_HOSTS:
        raise SimulateError(f"{cluster.name}: {hosts:,} hosts can't be simulated; take 1 to {MOST_HOSTS:,}")
    node_at = names.index("node") if "node" in names else len(names)
    levels = []
    for index, level in enumerate(machine.levels):
        latency_s = level.latency_s or parameters.node_latency_s + parameters.tier_latency_s * (node_at - index)
        if index > node_at:
            levels.append(Level(level.name, **_inside(parameters)))
        else:
            overhead_s = min(parameters.ends_between_s, latency_s) / 2
            costs = Level(level.name, latency_s, overhead_s, source=level.source or "simulation")
            if overhead_s:
                receiver = parameters.receive_between_message_s / parameters.ends_between_s
                costs.receive_overhead_s = 2 * overhead_s * receiver
            levels.append(costs)
    tree = _shared(machine.tree, uplink_share)
    mesh = {level: rate * uplink_share for level, rate in cluster.mesh.items()}
    memory = FREE
    if parameters.share_memory:
        memory = Memory(parameters.core_bytes_per_s, FREE.reduce_bytes_per_s, "simulation")
    simulated = Machine(levels, tree, machine.insides, same_host=HostCosts(**_inside(parameters)), memory=memory)
    return replace(cluster, mesh=mesh, topology=replace(cluster.topology, machine=simulated))


def _inside(parameters: Parameters) -> dict[str, Any]:
    """Costs of intra-node messages, all of which share the host's memory bandwidth."""
    slower_end_s = max(parameters.send_inside_byte_s, parameters.receive_inside_byte_s)
    stream = 1 / slower_end_s if slower_end_s else None
    if parameters.share_memory:
        stream = parameters.single_copy_bytes_per_s
    return {
        "latency_s": parameters.inside_latency_s,
        "overhead_s": (parameters.send_inside_message_s + parameters.receive_inside_message_s) / 2,
        "stream_bytes_per_s": stream,
        "together_bytes_per_s": parameters.memory_bytes_per_s,
        "source": "simulation",
    }


def notes_on(cluster: Cluster) -> list[str]:
    """Return the warnings of reading the fabric, and values that are missing in it and needed by the simulation."""
    notes = [(f"line {note.line}: " if note.line else "") + note.message for note in cluster.topology.warnings]
    root = cluster.topology.machine.tree
    edges = [node for node in root.walk() if node is not root]
    unknown = sum(node.up_bytes_per_s is None for node in edges)
    if unknown:
        notes.append(f"{unknown} of {len(edges)} links have no known capacity: simulated as unlimited")
    loaded = sum(bool(node.load) for node in edges)
    if loaded:
        notes.append(f"the loads that {loaded} of {len(edges)} links have aren't simulated; --traffic generates some")
    return notes


def _shared(node: TreeNode, share: float) -> TreeNode:
    up = node.up_bytes_per_s
    if up is not None and node.level != "node":
        up *= share
    return replace(node, up_bytes_per_s=up, load=None, children=[_shared(child, share) for child in node.children])
