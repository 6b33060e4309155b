"""Parser of hwloc's XML, versions 1 to 3: the cpusets of boards, sockets, dies, NUMA nodes, caches and cores."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

from palmette.discover.inside_order import tell_left_out
from palmette.topology.cpus import inside_name, nested_groups
from palmette.topology.found import DiscoverError, HostInside, SourceResult

_LEVELS = {"Package": "socket", "Socket": "socket", "NUMANode": "numa", "Die": "die", "Core": "core"}
_CACHE = re.compile(r"L([1-9])(?:Cache)?$")
"""Name of a data or unified cache; instruction caches are left out, since those who share one share the data cache."""
_WITHOUT_PROCESSORS = {"Machine", "System", "PU", "MemCache", "Bridge", "PCIDev", "OSDev", "Misc", ""}


def read_hwloc_xml(text: str, found: SourceResult) -> None:
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
    allowed = _allowed(root)
    sets, threads, unknown = _sets(root, allowed)
    if not sets.get("core"):
        # Some virtual machines report no cores.
        sets["core"] = sets["pu"]
    del sets["pu"]
    if not any(sets["core"]):
        raise DiscoverError(
            f"no core and no processing unit in it, {name}; export it again with `lstopo --of xml FILE`"
        )
    nested = nested_groups(sets)
    groups = nested.groups
    numa = sets.get("numa", [])
    lone = len(numa) - len({mask for mask in numa if mask})
    found.leave_out(lone, "NUMA nodes", "memory of another kind: they have no processors of their own")
    host = next((e.get("value") for e in root.iter("info") if e.get("name") == "HostName"), None)
    found.inside = HostInside(groups, host)
    cores = len(set(sets["core"]))
    found.source.detail = f"{inside_name(groups)}, {cores} cores, {threads} hardware threads"
    hidden = _mask(root.find("object").get("cpuset", "")) & ~allowed if allowed else 0  # type: ignore[union-attr]
    if hidden:
        found.leave_out(hidden.bit_count(), "hardware threads", "the system doesn't let jobs run there")
    for kind, count in unknown.items():
        found.leave_out(count, f"objects {kind}", "this version knows no such level of hwloc's")
    tell_left_out(nested, sets, found)


def _sets(root: ElementTree.Element, allowed: int) -> tuple[dict[str, list[int]], int, dict[str, int]]:
    """Return the processors of the objects of each level, the number of hardware threads, and unknown kinds of objects.

    A Group outside of sockets is a board (hwloc also says drawer or book), one inside of them a cluster of cores.
    """
    sets: dict[str, list[int]] = defaultdict(list, pu=[])
    threads = 0
    unknown: dict[str, int] = defaultdict(int)
    waiting = [(root, False, 0)]
    while waiting:
        element, in_socket, groups = waiting.pop()
        kind = element.get("type", "")
        if kind == "Cache":
            kind = f"L{element.get('depth', '')}"
        mask = _mask(element.get("cpuset", ""))
        shown = mask & allowed if allowed else mask
        level = _LEVELS.get(kind)
        if cache := _CACHE.match(kind):
            level = f"l{cache[1]}"
        elif kind == "Group":
            # Groups in groups are levels of their own.
            level = ("cluster" if in_socket else "board") + (str(groups + 1) if groups else "")
            groups += 1
        elif kind in ("Package", "Socket"):
            in_socket, groups = True, 0
        if level is not None:
            sets[level].append(shown)
        elif kind == "PU" and (shown or not allowed):
            threads += 1
            sets["pu"].append(shown)
        elif mask and kind not in _WITHOUT_PROCESSORS and not kind.endswith("iCache"):
            unknown[kind] += 1
        waiting += [(child, in_socket, groups) for child in reversed(element) if child.tag == "object"]
    return sets, threads, unknown


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
