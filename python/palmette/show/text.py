"""A topology as a tree in text, as wide as the terminal, 60 to 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from palmette.present.words import clipped
from palmette.show.fold import Folder, SiblingGroup
from palmette.topology.model import Aggregator, Topology
from palmette.units import plural, rate_text, text_width

_RATE_WIDTH = 20
_HOSTS_WIDTH = 15
MAX_CHILDREN = 16
"""Different children of one parent that are listed one by one."""


def tree_text(topology: Topology, everything: bool = False) -> list[str]:
    """Lines of the tree. everything: one line for each group and host, nothing folded."""
    folder = Folder(topology.machine.tree)
    tree = topology.machine.tree
    hosts = folder.hosts(tree)
    levels = ", ".join(level.name for level in topology.machine.levels)
    lines = [clipped(f"{topology.name}: {plural(hosts, 'host')}; levels {levels}", text_width()), ""]
    lines.append(
        f"{'':<{text_width() - _RATE_WIDTH - _HOSTS_WIDTH}}{'hosts':>{_HOSTS_WIDTH}}{'capacity up':>{_RATE_WIDTH}}"
    )
    if everything:
        _write_all(folder, lines)
    else:
        folded = folder.fold(by_level_above=MAX_CHILDREN)
        lines.append(_row(tree.name + aggregators_text(tree.aggregators), f"{hosts:,}", ""))
        for index, child in enumerate(folded.children):
            _write(child, lines, "", index + 1 == len(folded.children))
    notes = []
    if topology.fabric is not None and topology.fabric.unnamed_adapters:
        notes.append(f"{plural(len(topology.fabric.unnamed_adapters), 'adapter')} without a host's name")
    if topology.warnings:
        notes.append(plural(len(topology.warnings), "warning"))
    if notes:
        lines += ["", f"{'; '.join(notes)}: see the file, or discover again"]
    return lines


def aggregators_text(aggregators: Sequence[Aggregator]) -> str:
    """`, aggregator at 400 Mbit/s`, `, 2 aggregators`; nothing without any."""
    if not aggregators:
        return ""
    rates = {one.up_bytes_per_s for one in aggregators}
    rate = next(iter(rates)) if len(rates) == 1 else None
    what = "aggregator" if len(aggregators) == 1 else plural(len(aggregators), "aggregator")
    return f", {what}" + (f" at {rate_text(rate)}" if rate else "")


def _write(folded: SiblingGroup, lines: list[str], lead: str, last: bool) -> None:
    label = f"{folded.count_text} x {folded.level}" if folded.count > 1 else f"{folded.level}"
    if folded.level != "node" and folded.switches_each[1] > 1:
        low, high = folded.switches_each
        label += f" ({low} switches)" if low == high else f" ({low} to {high} switches)"
    if folded.level == "node" and folded.inside():
        label += f" ({folded.inside()})"
    label += f"  {folded.names}{aggregators_text(folded.aggregators)}"
    few, many = folded.hosts_each
    hosts = ""
    if folded.level != "node":
        hosts = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        hosts += " each" if folded.count > 1 else ""
    lines.append(_row(f"{lead}{'└─' if last else '├─'} {label}", hosts, _rates(folded)))
    inner = lead + ("   " if last else "│  ")
    for index, child in enumerate(folded.children):
        _write(child, lines, inner, index + 1 == len(folded.children))


def _write_all(folder: Folder, lines: list[str]) -> None:
    stack = [(folder.root, "", "")]
    while stack:
        node, lead, inner = stack.pop()
        label = f"{node.level}  {node.name}" if node.level else node.name
        if node.level == "node" and node.inside:
            label += f"  {node.inside}"
        label += aggregators_text(node.aggregators)
        hosts = f"{folder.hosts(node):,}" if node.level != "node" else ""
        rate = rate_text(node.up_bytes_per_s) if node.up_bytes_per_s is not None else ""
        lines.append(_row(lead + label, hosts, rate))
        for index, child in reversed(list(enumerate(node.children))):
            last = index + 1 == len(node.children)
            stack.append((child, inner + ("└─ " if last else "├─ "), inner + ("   " if last else "│  ")))


def _rates(folded: SiblingGroup) -> str:
    low, high = folded.rates
    if low is None or high is None:
        return ""
    if rate_text(low) == rate_text(high):
        return rate_text(low)
    return f"{rate_text(low)} - {rate_text(high)}"


def _row(label: str, hosts: str, rate: str) -> str:
    # A long label may use the columns that are empty in its line.
    right = f"{hosts:>{_HOSTS_WIDTH}}{rate:>{_RATE_WIDTH}}"
    if not hosts:
        right = f"{rate:>{_RATE_WIDTH}}"
        if not rate:
            right = ""
    space = text_width() - len(right)
    return f"{clipped(label, space - (1 if right.strip() else 0)):<{space}}{right}".rstrip()
