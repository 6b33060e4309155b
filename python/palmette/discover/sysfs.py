"""Intra-node topology of this node from /sys, for machines without hwloc."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from pathlib import Path

from palmette.discover.inside_order import tell_left_out
from palmette.topology.cpus import inside_name, nested_groups
from palmette.topology.found import DiscoverError, HostInside, SourceResult

_BY_LIST = (
    ("board", "topology/drawer_cpus_list"),
    ("board2", "topology/book_cpus_list"),
    ("die", "topology/die_cpus_list"),
    ("cluster", "topology/cluster_cpus_list"),
    ("l3", "cache/index3/shared_cpu_list"),
    ("l2", "cache/index2/shared_cpu_list"),
)
"""Files of a processor that list those which share something with it."""


def read_sysfs(root: Path, found: SourceResult) -> None:
    """Stores the intra-node topology in `found`. root: /sys/devices/system, or a copy of it.

    Raises DiscoverError when no processors are visible.
    """
    members: dict[tuple[str, str], int] = defaultdict(int)
    for cpu in root.glob("cpu/cpu[0-9]*"):
        bit = 1 << int(cpu.name[3:])
        package = _read(cpu / "topology/physical_package_id")
        core = _read(cpu / "topology/core_id")
        if package is None or core is None:
            continue  # offline
        members[("socket", package)] |= bit
        members[("core", f"{package}/{core}")] |= bit
        for level, file in _BY_LIST:
            shared = _read(cpu / file)
            if shared:
                members[(level, shared)] |= bit
    for node in root.glob("node/node[0-9]*"):
        cpus = _cpus(_read(node / "cpulist") or "")
        if cpus:
            members[("numa", node.name)] = cpus
    sets: dict[str, list[int]] = defaultdict(list)
    for (level, _), mask in members.items():
        sets[level].append(mask)
    if not sets["core"]:
        raise DiscoverError(f"no processors visible, {root}; give an hwloc XML file: --from hwloc FILE")
    nested = nested_groups(sets)
    found.inside = HostInside(nested.groups, platform.node())
    found.source.detail = f"{inside_name(nested.groups)}, {len(sets['core'])} cores"
    tell_left_out(nested, sets, found)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _cpus(text: str) -> int:
    mask = 0
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        for cpu in range(int(low), int(high or low) + 1):
            mask |= 1 << cpu
    return mask
