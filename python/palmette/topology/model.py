"""The parts of topology.json, version 1, as classes, and how they are written.

The format is described in docs/reference/topology-json.md and schemas/topology.schema.json.
Rates are bytes per second and direction, latencies are seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from palmette.files import replaced
from palmette.topology.calibration import Calibration

FORMAT = "palmette-topology"
VERSION = 1
MOST_LEVELS = 64
"""Deeper trees are refused, as by the core's readers: no cluster has them, and every walk down stays short."""


@dataclass(slots=True)
class Source:
    """Where a part of the file came from."""

    kind: str
    path: str | None = None
    detail: str | None = None


@dataclass(slots=True)
class Note:
    """A warning, with the input and the 1-based line that it is about."""

    message: str
    source: str | None = None
    line: int | None = None


@dataclass(slots=True)
class LeftOut:
    """Things that the input holds and the machine doesn't: how many, what, and why."""

    count: int
    what: str
    reason: str


@dataclass(slots=True)
class FabricSwitch:
    """A switch; tier 1 serves hosts, None reaches no host."""

    id: str
    name: str
    ports: int | None = None
    tier: int | None = None
    can_reduce: bool = False


@dataclass(slots=True)
class FabricHost:
    """A host and the adapters that it is known by."""

    name: str
    adapters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FabricLink:
    """All `count` parallel cables of one width and speed between a and b; the rate is their sum."""

    a: str
    b: str
    count: int = 1
    width: int | None = None
    speed: str | None = None
    bytes_per_s: float | None = None


@dataclass(slots=True)
class Fabric:
    """What was found, for people and tools; a link ends at switch ids, host names or unnamed adapters."""

    switches: list[FabricSwitch] = field(default_factory=list)
    hosts: list[FabricHost] = field(default_factory=list)
    links: list[FabricLink] = field(default_factory=list)
    unnamed_adapters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Level:
    """A level of the machine and the costs of messages between its groups inside of one parent group.

    latency_s is one way, of a tiny message, end to end; overhead_s is the part of it that one end is busy for;
    stream_bytes_per_s is the rate of one pair alone; together_bytes_per_s, inside of hosts, the aggregate rate of one
    host's concurrent messages; receive_overhead_s that of the receiver, where it differs from the sender's and
    overhead_s is the mean of both. `source` is "calibrated", or where else they come from.
    """

    name: str
    latency_s: float | None = None
    overhead_s: float | None = None
    stream_bytes_per_s: float | None = None
    together_bytes_per_s: float | None = None
    source: str | None = None
    receive_overhead_s: float | None = None


@dataclass(slots=True)
class HostCosts:
    """Costs between two ranks of one host that no level separates."""

    latency_s: float | None = None
    overhead_s: float | None = None
    stream_bytes_per_s: float | None = None
    together_bytes_per_s: float | None = None
    source: str | None = None
    receive_overhead_s: float | None = None


@dataclass(slots=True)
class Memory:
    """Local memory rates of a single rank: bytes copied, bytes of result reduced."""

    copy_bytes_per_s: float | None = None
    reduce_bytes_per_s: float | None = None
    source: str | None = None


@dataclass(slots=True)
class InsideGroup:
    """`count` equal groups of one level inside a host."""

    level: str
    count: int = 1
    children: list[InsideGroup] = field(default_factory=list)
    up_bytes_per_s: float | None = None

    def leaves(self) -> int:
        """Innermost places under all `count` groups."""
        return self.count * (sum(child.leaves() for child in self.children) or 1)


@dataclass(slots=True)
class AggregatorLimits:
    """The most contributions to one result, and bytes of contributions that wait; None: no limit."""

    children: int | None = None
    bytes: int | None = None


@dataclass(slots=True)
class Aggregator:
    """What combines contributions on their way, at a switch; a link without a rate is no limit.

    `kind`: a "daemon", whose HOST:PORT is `address`, or "sharp", the switches themselves.
    """

    name: str
    up_bytes_per_s: float | None = None
    address: str | None = None
    limits: AggregatorLimits | None = None
    kind: str = "daemon"


@dataclass(slots=True)
class TreeNode:
    """A group of the machine tree; the root has no level, a host has level "node".

    `load` is the measured share of its edge that other traffic takes, 0 to below 1.
    """

    name: str
    level: str | None = None
    up_bytes_per_s: float | None = None
    can_reduce: bool = False
    inside: str | None = None
    slots: int | None = None
    switches: list[str] = field(default_factory=list)
    children: list[TreeNode] = field(default_factory=list)
    load: float | None = None
    aggregators: list[Aggregator] = field(default_factory=list)

    def walk(self) -> Iterator[TreeNode]:
        """This node and all below it, parents first, without recursion."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def hosts(self) -> Iterator[TreeNode]:
        """Hosts at or below this node, in topology order."""
        return (node for node in self.walk() if node.level == "node")


@dataclass(slots=True)
class Machine:
    """The tree that planning needs."""

    levels: list[Level]
    tree: TreeNode
    insides: dict[str, list[InsideGroup]] = field(default_factory=dict)
    memory: Memory | None = None
    same_host: HostCosts | None = None
    calibration: Calibration | None = None


@dataclass(slots=True)
class Topology:
    """A whole topology.json."""

    name: str
    machine: Machine
    fabric: Fabric | None = None
    created: str | None = None
    sources: list[Source] = field(default_factory=list)
    warnings: list[Note] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The file as a dictionary; absent and default values are left out."""
        document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": self.name}
        if self.created:
            document["created"] = self.created
        document["sources"] = [_present(source) for source in self.sources]
        document["warnings"] = [_present(note) for note in self.warnings]
        document["left_out"] = [_present(item) for item in self.left_out]
        if self.fabric is not None:
            document["fabric"] = {
                "switches": [_present(switch, keep=("can_reduce",)) for switch in self.fabric.switches],
                "hosts": [_present(host, keep=("adapters",)) for host in self.fabric.hosts],
                "links": [_present(link) for link in self.fabric.links],
                "unnamed_adapters": list(self.fabric.unnamed_adapters),
            }
        machine = self.machine
        written: dict[str, Any] = {"levels": [_present(level) for level in machine.levels]}
        for key, costs in (("memory", machine.memory), ("same_host", machine.same_host)):
            if costs is not None:
                written[key] = _present(costs)
        if machine.calibration is not None:
            written["calibration"] = machine.calibration.to_json()
        written["insides"] = {name: [_inside(g) for g in groups] for name, groups in machine.insides.items()}
        document["machine"] = {**written, "tree": _tree(machine.tree)}
        return document

    def write(self, stream: TextIO) -> None:
        """Writes the file with one switch, host, link or group a line.

        json.dump with an indent would use the slow pure Python encoder and ten lines a link.
        """
        document = self.to_json()
        tree = document["machine"].pop("tree")
        fabric = document.pop("fabric", None)
        machine = document.pop("machine")
        stream.write("{\n")
        for key, value in document.items():
            stream.write(f"  {json.dumps(key)}: {_lines(value, '  ')},\n")
        if fabric is not None:
            parts = (f"    {json.dumps(key)}: {_lines(value, '    ')}" for key, value in fabric.items())
            stream.write('  "fabric": {\n' + ",\n".join(parts) + "\n  },\n")
        stream.write('  "machine": {\n')
        for key, value in machine.items():
            stream.write(f"    {json.dumps(key)}: {_lines(value, '    ')},\n")
        stream.write('    "tree": ')
        _write_tree(stream, tree, "    ")
        stream.write("\n  }\n}\n")

    def save(self, path: str | Path) -> None:
        """Writes the file in one step (files.replaced); OSError when that can't be done: the old one is intact then."""
        with replaced(path) as stream:
            self.write(stream)


def _present(item: Any, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    values = ((name, getattr(item, name)) for name in type(item).__slots__)
    return {
        name: value for name, value in values if name in keep or not (value is None or value is False or value == [])
    }


def _aggregator(aggregator: Aggregator) -> dict[str, Any]:
    entry = _present(aggregator)
    if aggregator.kind == "daemon":
        del entry["kind"]
    if aggregator.limits is not None:
        entry["limits"] = _present(aggregator.limits)
    return entry


def _inside(group: InsideGroup) -> dict[str, Any]:
    entry: dict[str, Any] = {"level": group.level, "count": group.count}
    if group.up_bytes_per_s is not None:
        entry["up_bytes_per_s"] = group.up_bytes_per_s
    if group.children:
        entry["children"] = [_inside(child) for child in group.children]
    return entry


def _tree(node: TreeNode) -> dict[str, Any]:
    entry = _present(node)
    if node.aggregators:
        entry["aggregators"] = [_aggregator(one) for one in node.aggregators]
    if node.children:
        del entry["children"]  # the longest comes last
        entry["children"] = [_tree(child) for child in node.children]
    return entry


def _lines(value: Any, indent: str) -> str:
    """A list with one element a line; anything else in one line."""
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    body = f",\n{indent}  ".join(json.dumps(element) for element in value)
    return f"[\n{indent}  {body}\n{indent}]"


def _write_tree(stream: TextIO, node: dict[str, Any], indent: str) -> None:
    children = node.get("children")
    if not children:
        stream.write(json.dumps(node))
        return
    head = json.dumps({key: value for key, value in node.items() if key != "children"})
    stream.write(head[:-1] + ', "children": [\n')
    for index, child in enumerate(children):
        stream.write(indent + "  ")
        _write_tree(stream, child, indent + "  ")
        stream.write(",\n" if index + 1 < len(children) else "\n")
    stream.write(indent + "]}")
