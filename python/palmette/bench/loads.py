"""Load of each link by background traffic, and a topology.json that has it as `load`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from palmette.bench.results import EdgeLoad, Run

_MAX_LOAD = 0.99
"""A topology takes loads below 1."""


@dataclass(frozen=True)
class MeanLoad:
    """The load of an edge, mean over the loaded jobs, and the number of these jobs."""

    edge: EdgeLoad
    jobs: int

    def to_json(self) -> dict[str, Any]:
        """Return the load as JSON values."""
        edge = self.edge
        return {
            "name": edge.name, "level": edge.level, "up": edge.up, "down": edge.down,
            "traffic_up": edge.traffic_up, "traffic_down": edge.traffic_down, "load": edge.share, "jobs": self.jobs,
        }  # fmt: skip


def mean_loads(run: Run) -> list[MeanLoad]:
    """Return the mean load of each edge over the loaded jobs; empty without any."""
    by_edge: dict[tuple[str, str], list[EdgeLoad]] = {}
    for job in run.jobs:
        for edge in job.load:
            by_edge.setdefault((edge.name, edge.level), []).append(edge)
    result = []
    for (name, level), loads in by_edge.items():
        values = np.mean([(one.up, one.down, one.traffic_up, one.traffic_down) for one in loads], axis=0)
        result.append(MeanLoad(EdgeLoad(name, level, *(float(value) for value in values)), len(loads)))
    return result


def with_loads(topology: dict[str, Any], loads: Iterable[EdgeLoad]) -> dict[str, Any]:
    """Return a topology.json whose tree nodes have, as `load`, the share that other traffic takes of their uplink."""
    shares = {load.name: round(min(load.share, _MAX_LOAD), 4) for load in loads}

    def copy(node: dict[str, Any]) -> dict[str, Any]:
        made = {key: value for key, value in node.items() if key not in ("children", "load")}
        if node.get("name") in shares:
            made["load"] = shares[node["name"]]
        if "children" in node:
            made["children"] = [copy(child) for child in node["children"]]
        return made

    machine = topology["machine"]
    return {**topology, "machine": {**machine, "tree": copy(machine["tree"])}}
