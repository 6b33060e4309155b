"""The topology.json of a lab."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from palmette.lab.spec import PAYLOAD_SHARE, Spec
from palmette.topology.model import Level, Machine, Source, Topology, TreeNode


def lab_topology(name: str, text: str, spec: Spec, rates: Mapping[str, float | None]) -> Topology:
    """Return the topology of the lab called `name`, made from `text`, with links of `rates` bits per second by group.

    Capacities are TCP payload, i.e. link rates without frame headers, so that bounds from this file are attainable.
    """
    levels = [Level(level.name) for level in spec.machine.levels]
    if spec.spine_delay_s > 0:
        levels[0] = Level(levels[0].name, spec.spine_delay_s, source="delay of the lab's top switch")
    detail = f"{text}; capacities are TCP payload, {PAYLOAD_SHARE:.4f} of the link rates"
    return Topology(
        name=f"lab-{name}",
        machine=Machine(levels, _with_rates(spec.machine.tree, rates), spec.machine.insides),
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sources=[Source("lab", None, detail)],
    )


def save_topology(path: Path, topology: Topology) -> None:
    """Write `topology` atomically."""
    topology.save(path)


def _with_rates(group: TreeNode, rates: Mapping[str, float | None]) -> TreeNode:
    rate = rates.get(group.name)
    payload = rate / 8 * PAYLOAD_SHARE if rate else None
    return replace(group, up_bytes_per_s=payload, children=[_with_rates(child, rates) for child in group.children])
