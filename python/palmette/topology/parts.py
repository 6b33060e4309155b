"""Reads the parts of topology.json into the classes of palmette.topology.model."""

from __future__ import annotations

import re
from typing import Any

from palmette.topology.calibration import read_calibration
from palmette.topology.model import (
    MOST_LEVELS,
    Aggregator,
    AggregatorLimits,
    Fabric,
    FabricHost,
    FabricLink,
    FabricSwitch,
    HostCosts,
    InsideGroup,
    LeftOut,
    Level,
    Machine,
    Memory,
    Note,
    Source,
    Topology,
    TreeNode,
)
from palmette.topology.reader import Reader

MOST_CHILDREN, MOST_BYTES = 2**31 - 1, 2**63 - 1


def read_topology(reader: Reader, document: dict[str, Any]) -> Topology:
    """The whole file; `format` and `version` are checked already."""
    if "machine" not in document:
        raise reader.error("$.machine", "missing; planning needs it: write the file with `palmette discover`")
    fabric = None
    if document.get("fabric") is not None:
        fabric = _fabric(reader, reader.object(document["fabric"], "$.fabric"))
    sources = []
    for entry, path in _objects(reader, document, "sources", "$"):
        kind = reader.text(entry, "kind", path)
        source_path = reader.optional_text(entry, "path", path)
        sources.append(Source(kind, source_path, reader.optional_text(entry, "detail", path)))
    warnings = []
    for entry, path in _objects(reader, document, "warnings", "$"):
        message = reader.text(entry, "message", path)
        source_name = reader.optional_text(entry, "source", path)
        warnings.append(Note(message, source_name, reader.whole(entry, "line", path, 1)))
    left_out = []
    for entry, path in _objects(reader, document, "left_out", "$"):
        count = reader.whole(entry, "count", path, 0) or 0
        what = reader.text(entry, "what", path)
        left_out.append(LeftOut(count, what, reader.text(entry, "reason", path)))
    return Topology(
        name=reader.optional_text(document, "name", "$") or "machine",
        machine=_machine(reader, reader.object(document["machine"], "$.machine")),
        fabric=fabric,
        created=reader.optional_text(document, "created", "$"),
        sources=sources,
        warnings=warnings,
        left_out=left_out,
    )


def _objects(reader: Reader, holder: dict[str, Any], key: str, path: str) -> list[tuple[dict[str, Any], str]]:
    entries = []
    for index, value in enumerate(reader.items(holder, key, path)):
        place = f"{path}.{key}[{index}]"
        entries.append((reader.object(value, place), place))
    return entries


def _fabric(reader: Reader, fabric: dict[str, Any]) -> Fabric:
    result = Fabric(unnamed_adapters=reader.strings(fabric, "unnamed_adapters", "$.fabric"))
    for entry, path in _objects(reader, fabric, "switches", "$.fabric"):
        result.switches.append(
            FabricSwitch(
                id=reader.text(entry, "id", path),
                name=reader.optional_text(entry, "name", path) or "",
                ports=reader.whole(entry, "ports", path, 0),
                tier=reader.whole(entry, "tier", path, 1),
                can_reduce=reader.flag(entry, "can_reduce", path),
            )
        )
    for entry, path in _objects(reader, fabric, "hosts", "$.fabric"):
        result.hosts.append(FabricHost(reader.text(entry, "name", path), reader.strings(entry, "adapters", path)))
    known = {switch.id for switch in result.switches} | {host.name for host in result.hosts}
    known |= set(result.unnamed_adapters)
    for entry, path in _objects(reader, fabric, "links", "$.fabric"):
        link = FabricLink(
            a=reader.text(entry, "a", path),
            b=reader.text(entry, "b", path),
            count=reader.whole(entry, "count", path, 1) or 1,
            width=reader.whole(entry, "width", path, 1),
            speed=reader.optional_text(entry, "speed", path),
            bytes_per_s=reader.rate(entry, "bytes_per_s", path),
        )
        for key, end in (("a", link.a), ("b", link.b)):
            if end not in known:
                raise reader.error(f"{path}.{key}", f'"{end}" is no switch id, host name or unnamed adapter')
        result.links.append(link)
    return result


def _machine(reader: Reader, machine: dict[str, Any]) -> Machine:
    levels: list[Level] = []
    for entry, path in _objects(reader, machine, "levels", "$.machine"):
        name = reader.text(entry, "name", path)
        if any(level.name == name for level in levels):
            raise reader.error(f"{path}.name", f'level "{name}" is listed twice')
        levels.append(Level(name, *_costs(reader, entry, path)))
    if len(levels) > MOST_LEVELS:
        raise reader.error("$.machine.levels", f"{len(levels)} levels; leave out all but {MOST_LEVELS}")
    rank = {level.name: index for index, level in enumerate(levels)}
    if "node" not in rank:
        raise reader.error("$.machine.levels", 'no level is called "node", the level of hosts; add it')
    insides: dict[str, list[InsideGroup]] = {}
    listed = reader.object(machine.get("insides", {}), "$.machine.insides")
    for name in listed:
        path = f'$.machine.insides["{name}"]'
        groups = enumerate(reader.items(listed, name, "$.machine.insides"))
        insides[name] = [_inside(reader, group, f"{path}[{i}]", rank, rank["node"]) for i, group in groups]
    if "tree" not in machine:
        raise reader.error("$.machine.tree", "missing; expected the root of the machine")
    hosts: dict[str, str] = {}
    tree = _tree(reader, machine["tree"], "$.machine.tree", rank, -1, insides, hosts)
    made = Machine(levels, tree, insides)
    _measured(reader, machine, made)
    return made


def _measured(reader: Reader, machine: dict[str, Any], made: Machine) -> None:
    """Costs that belong to no level, and where all of them come from."""
    if machine.get("memory") is not None:
        path = "$.machine.memory"
        entry = reader.object(machine["memory"], path)
        copied, reduced = (reader.rate(entry, key, path) for key in ("copy_bytes_per_s", "reduce_bytes_per_s"))
        made.memory = Memory(copied, reduced, reader.optional_text(entry, "source", path))
    if machine.get("same_host") is not None:
        path = "$.machine.same_host"
        made.same_host = HostCosts(*_costs(reader, reader.object(machine["same_host"], path), path))
    if machine.get("calibration") is not None:
        path = "$.machine.calibration"
        made.calibration = read_calibration(reader, reader.object(machine["calibration"], path), path)


def _costs(
    reader: Reader, entry: dict[str, Any], path: str
) -> tuple[float | None, float | None, float | None, float | None, str | None, float | None]:
    """Latency, overhead, stream rate, rate together, their source, the receiver's overhead."""
    return (
        reader.seconds(entry, "latency_s", path),
        reader.seconds(entry, "overhead_s", path),
        reader.rate(entry, "stream_bytes_per_s", path),
        reader.rate(entry, "together_bytes_per_s", path),
        reader.optional_text(entry, "source", path),
        reader.seconds(entry, "receive_overhead_s", path),
    )


def _level(reader: Reader, name: str, path: str, rank: dict[str, int], outer: int) -> int:
    if name not in rank:
        raise reader.error(f"{path}.level", f'"{name}" is not in machine.levels')
    if rank[name] <= outer:
        raise reader.error(f"{path}.level", f'"{name}" must stand after its parent\'s level in machine.levels')
    return rank[name]


def _inside(reader: Reader, value: Any, path: str, rank: dict[str, int], outer: int) -> InsideGroup:
    entry = reader.object(value, path)
    name = reader.text(entry, "level", path)
    own = _level(reader, name, path, rank, outer)
    group = InsideGroup(name, reader.whole(entry, "count", path, 1) or 1)
    group.up_bytes_per_s = reader.rate(entry, "up_bytes_per_s", path)
    for index, child in enumerate(reader.items(entry, "children", path)):
        group.children.append(_inside(reader, child, f"{path}.children[{index}]", rank, own))
    return group


def _aggregator(reader: Reader, entry: dict[str, Any], path: str) -> Aggregator:
    made = Aggregator(reader.text(entry, "name", path), reader.rate(entry, "up_bytes_per_s", path))
    made.kind = reader.optional_text(entry, "kind", path) or "daemon"
    if made.kind not in ("daemon", "sharp"):
        raise reader.error(f"{path}.kind", f'"{made.kind}" of {made.name}: expected daemon or sharp')
    if made.kind == "sharp":
        for key in ("up_bytes_per_s", "address"):
            if entry.get(key) is not None:
                raise reader.error(f"{path}.{key}", "switches that reduce have none; leave it out")
    made.address = reader.optional_text(entry, "address", path)
    if made.address is not None:
        port = re.fullmatch(r".+:([0-9]{1,5})", made.address)
        if port is None or not 1 <= int(port[1]) <= 65535:
            raise reader.error(
                f"{path}.address", f'"{made.address}" of {made.name}: expected HOST:PORT, with a port from 1 to 65535'
            )
    if entry.get("limits") is not None:
        at = f"{path}.limits"
        limits = reader.object(entry["limits"], at)
        made.limits = AggregatorLimits(
            reader.whole(limits, "children", at, 1, MOST_CHILDREN), reader.whole(limits, "bytes", at, 1, MOST_BYTES)
        )
    return made


def _tree(
    reader: Reader,
    value: Any,
    path: str,
    rank: dict[str, int],
    outer: int,
    insides: dict[str, list[InsideGroup]],
    hosts: dict[str, str],
) -> TreeNode:
    entry = reader.object(value, path)
    node = TreeNode(
        name=reader.text(entry, "name", path),
        level=reader.optional_text(entry, "level", path),
        up_bytes_per_s=reader.rate(entry, "up_bytes_per_s", path),
        load=reader.share(entry, "load", path, 1),
        can_reduce=reader.flag(entry, "can_reduce", path),
        inside=reader.optional_text(entry, "inside", path),
        slots=reader.whole(entry, "slots", path, 1),
        switches=reader.strings(entry, "switches", path),
    )
    node.aggregators = [_aggregator(reader, one, at) for one, at in _objects(reader, entry, "aggregators", path)]
    if node.aggregators and node.level == "node":
        raise reader.error(f"{path}.aggregators", "a host has none; list them at its switch")
    own = outer
    if node.level is not None:
        own = _level(reader, node.level, path, rank, outer)
    elif outer >= 0 or path != "$.machine.tree":
        raise reader.error(f"{path}.level", "missing; only the root has no level")
    if node.inside is not None and node.inside not in insides:
        raise reader.error(f"{path}.inside", f'"{node.inside}" is not in machine.insides')
    if node.level == "node":
        if node.name in hosts:
            raise reader.error(f"{path}.name", f'host "{node.name}" is already at {hosts[node.name]}')
        hosts[node.name] = path
    for index, child in enumerate(reader.items(entry, "children", path)):
        node.children.append(_tree(reader, child, f"{path}.children[{index}]", rank, own, insides, hosts))
    return node
