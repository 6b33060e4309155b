"""The topology.json of a lab."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from palmette.topology.model import Level, Machine, Source, Topology, TreeNode
from palmette.units import PAYLOAD_SHARE
from palmette_lab.lab.aggregators import PORT
from palmette_lab.lab.network import Network, plan_network
from palmette_lab.lab.spec import Spec


def lab_topology(name: str, text: str, spec: Spec, rates: Mapping[str, float | None]) -> Topology:
    """Return the topology of the lab called `name`, made from `text`, with links of `rates` bits per second by group.

    Aggregators have the addresses of the lab's daemons. Capacities are TCP payload, i.e. link rates without frame
    headers, so that bounds from this file are attainable.
    """
    levels = [Level(level.name) for level in spec.machine.levels]
    if spec.spine_delay_s > 0:
        levels[0] = Level(levels[0].name, spec.spine_delay_s, source="delay of the lab's top switch")
    detail = f"{text}; capacities are TCP payload, {PAYLOAD_SHARE:.4f} of the link rates"
    return Topology(
        name=f"lab-{name}",
        machine=Machine(levels, _as_built(spec.machine.tree, rates, plan_network(spec)), spec.machine.insides),
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        sources=[Source("lab", None, detail)],
    )


def save_topology(path: Path, topology: Topology) -> None:
    """Write `topology` atomically."""
    topology.save(path)


def _as_built(group: TreeNode, rates: Mapping[str, float | None], network: Network) -> TreeNode:
    def payload(name: str) -> float | None:
        rate = rates.get(name)
        return rate / 8 * PAYLOAD_SHARE if rate else None

    return replace(
        group,
        up_bytes_per_s=payload(group.name),
        children=[_as_built(child, rates, network) for child in group.children],
        aggregators=[
            replace(one, up_bytes_per_s=payload(one.name), address=f"{network.addresses[one.name]}:{PORT}")
            for one in group.aggregators
        ],
    )
