"""One-screen summary of a discovery: sources, levels, fabric, what was left out, warnings."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import PurePath
from typing import Any

from palmette.present.words import clipped, wrapped
from palmette.topology.model import Topology, TreeNode
from palmette.units import plural, rate_text

MOST_WARNING_LINES = 20


def level_table(topology: Topology) -> list[dict[str, Any]]:
    """For each level of the tree: name, number of groups, fewest and most children, least and most capacity upwards."""
    groups: dict[str, list[TreeNode]] = {}
    for node in topology.machine.tree.walk():
        if node.level is not None:
            groups.setdefault(node.level, []).append(node)
    table = []
    for level in topology.machine.levels:
        nodes = groups.get(level.name)
        if not nodes:
            continue
        rates = [node.up_bytes_per_s for node in nodes if node.up_bytes_per_s is not None]
        sizes = [len(node.children) for node in nodes]
        table.append(
            {
                "level": level.name,
                "groups": len(nodes),
                "fewest_children": min(sizes),
                "most_children": max(sizes),
                "least_up_bytes_per_s": min(rates) if rates else None,
                "most_up_bytes_per_s": max(rates) if rates else None,
                "unknown_capacity": len(nodes) - len(rates),
                "can_reduce": sum(node.can_reduce for node in nodes),
            }
        )
    return table


def summary(topology: Topology, output: str | None) -> list[str]:
    """Lines of at most 80 columns."""
    lines = []
    for source in topology.sources:
        where = source.path or ""
        if PurePath(where).is_absolute():
            where = PurePath(where).name
        lines += wrapped(f"from {source.kind} {where}: {source.detail or ''}".rstrip(": "), rest="    ")
    lines += ["", "found"]
    hosts = sum(1 for _ in topology.machine.tree.hosts())
    lines.append(f"  {plural(hosts, 'host')} in {plural(len(topology.machine.levels), 'level')}: " + _levels(topology))
    for row in level_table(topology):
        lines.append(clipped("  " + _level_line(row), 80))
    insides = Counter(host.inside for host in topology.machine.tree.hosts() if host.inside)
    for name, count in insides.most_common(4):
        lines.append(clipped(f"  inside of {plural(count, 'host')}: {name}", 80))
    if insides_missing(topology):
        lines += wrapped("inside of hosts: unknown, so a host is one place", "  ", "    ")
    if topology.fabric is not None:
        lines += wrapped(_fabric_line(topology), "  ", "    ")
    if topology.left_out:
        lines += ["", "left out"]
        width = max(len(f"{item.count:,}") for item in topology.left_out)
        for item in topology.left_out:
            lines += wrapped(f"{item.what}: {item.reason}", f"  {item.count:>{width},} ", " " * (width + 3))
    if topology.warnings:
        lines += ["", f"{plural(len(topology.warnings), 'warning')}"]
        lines += _warning_lines(topology)
    if output:
        lines += ["", f"wrote {output}; `palmette show {shlex.quote(str(output))}` draws it"]
        if insides_missing(topology):
            lines += wrapped("no insides of nodes: add --from hwloc, or give `palmette plan` and the others --ppn N")
    return lines


def insides_missing(topology: Topology) -> bool:
    """Whether no host has an inside or a number of slots: a fabric alone was read."""
    hosts = list(topology.machine.tree.hosts())
    return bool(hosts) and not any(host.inside or host.slots for host in hosts)


def _warning_lines(topology: Topology) -> list[str]:
    """The warnings, in at most MOST_WARNING_LINES lines."""
    lines: list[str] = []
    for number, note in enumerate(topology.warnings):
        place = f"line {note.line}: " if note.line is not None else ""
        more = wrapped(f"{place}{note.message}", "  ", "    ")
        last = number == len(topology.warnings) - 1
        if len(lines) + len(more) > MOST_WARNING_LINES - (not last):
            return [*lines, f"  and {len(topology.warnings) - number} more; --json lists all"]
        lines += more
    return lines


def _levels(topology: Topology) -> str:
    return ", ".join(level.name for level in topology.machine.levels)


def _level_line(row: dict[str, Any]) -> str:
    parts = [f"{row['level']:<8} {row['groups']:>7,}"]
    if row["most_children"]:
        few, many = row["fewest_children"], row["most_children"]
        parts.append(f"of {few}" if few == many else f"of {few} to {many}")
    low, high = row["least_up_bytes_per_s"], row["most_up_bytes_per_s"]
    if low is None:
        parts.append("capacity unknown")
    else:
        text = rate_text(low) if low == high else f"{rate_text(low)} to {rate_text(high)}"
        parts.append(f"up {text} each" + (f", {row['unknown_capacity']} unknown" if row["unknown_capacity"] else ""))
    if row["can_reduce"]:
        parts.append(f"{row['can_reduce']} can reduce")
    return "  ".join(parts)


def _fabric_line(topology: Topology) -> str:
    fabric = topology.fabric
    assert fabric is not None
    tiers = Counter(switch.tier for switch in fabric.switches)
    text = ", ".join(
        f"{count} of tier {tier}" for tier, count in sorted(tiers.items(), key=lambda t: t[0] or 99) if tier
    )
    cables = plural(sum(link.count for link in fabric.links), "cable")
    return f"fabric: {plural(len(fabric.switches), 'switch')}{f' ({text})' if text else ''}, {cables}"
