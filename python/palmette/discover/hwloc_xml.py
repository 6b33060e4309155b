"""Parser of hwloc's XML, versions 1 to 3: the cpusets of sockets, NUMA nodes, L3 caches and cores."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import defaultdict

from palmette.topology.cpus import inside_name, nested_groups
from palmette.topology.found import DiscoverError, Found, Inside

_LEVELS = {"Package": "socket", "Socket": "socket", "NUMANode": "numa", "L3Cache": "l3", "L3": "l3", "Core": "core"}


def read_hwloc_xml(text: str, found: Found) -> None:
    """Stores the intra-node topology that `text` describes in `found`; DiscoverError when it is no hwloc XML."""
    name = found.source.path or "hwloc"
    try:
        # DTDs with entities can blow up a parser; hwloc's has none.
        if "<!ENTITY" in text:
            raise DiscoverError(f"{name} defines entities, which hwloc's XML never does; export it again with lstopo")
        root = ElementTree.fromstring(text.encode())  # noqa: S314 (no entities, checked above)
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise DiscoverError(f"not XML ({error}), {name}:{line}; make it with `lstopo --of xml FILE`") from None
    if root.tag != "topology" or root.find("object") is None:
        raise DiscoverError(f"XML, but no hwloc topology, {name}; make it with `lstopo --of xml FILE`")
    sets: dict[str, list[int]] = defaultdict(list)
    threads = 0
    allowed = _allowed(root)
    outer = 0
    for element in root.iter("object"):
        kind = element.get("type", "")
        if kind == "Cache" and element.get("depth") == "3":
            kind = "L3Cache"
        mask = _mask(element.get("cpuset", ""))
        if allowed and kind == "PU" and not mask & allowed:
            continue
        threads += kind == "PU"
        # A group of packages: a drawer or a board. Groups inside of a package are hwloc's dies and clusters.
        outer += kind == "Group" and any(child.get("type") in ("Package", "Socket") for child in element.iter("object"))
        mask = mask & allowed if allowed else mask
        level = _LEVELS.get(kind)
        if level is not None:
            sets[level].append(mask)
        elif kind == "PU" and "Core" not in sets:
            sets["pu"].append(mask)
    if not sets.get("core"):
        # Some virtual machines report no cores.
        sets["core"] = sets["pu"]
    if not any(sets["core"]):
        raise DiscoverError(
            f"no core and no processing unit in it, {name}; export it again with `lstopo --of xml FILE`"
        )
    groups, crossing = nested_groups(sets)
    numa = sets.get("numa", [])
    lone = len(numa) - len({mask for mask in numa if mask})
    found.leave_out(lone, "NUMA nodes", "memory of another kind: they have no processors of their own")
    host = next((e.get("value") for e in root.iter("info") if e.get("name") == "HostName"), None)
    found.inside = Inside(groups, host)
    cores = len(set(sets["core"]))
    found.source.detail = f"{inside_name(groups)}, {cores} cores, {threads} hardware threads"
    if outer:
        found.leave_out(outer, "groups of sockets", "the tree has no level between a node and its sockets")
    hidden = _mask(root.find("object").get("cpuset", "")) & ~allowed if allowed else 0  # type: ignore[union-attr]
    if hidden:
        found.leave_out(hidden.bit_count(), "hardware threads", "the system doesn't let jobs run there")
    for level in crossing:
        found.leave_out(len(set(sets[level])), f"{level} groups", "they overlap or cut across a level outside them")


def _allowed(root: ElementTree.Element) -> int:
    """The mask of allowed processors; 0 where the XML has none."""
    machine = root.find("object")
    return _mask(machine.get("allowed_cpuset", "")) if machine is not None else 0


def _mask(text: str) -> int:
    """`0x000000ff,0x0000ffff` as a number; 32 bits per part, the highest first. An infinite set counts as empty."""
    mask = 0
    for part in text.split(","):
        try:
            mask = mask << 32 | int(part or "0", 16)
        except ValueError:
            return 0
    return mask
