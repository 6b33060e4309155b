"""The topology.json of a lab."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palmette.lab.spec import PAYLOAD_SHARE, Group, Spec


def topology_document(name: str, text: str, spec: Spec, rates: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the topology of the lab called `name`, made from `text`, with links of `rates` bits a second by group.

    Capacities are payload: what TCP can carry of a link whose frames are counted. So bounds made from this file can be
    reached.
    """
    levels: list[dict[str, Any]] = [{"name": level} for level in spec.levels]
    if spec.spine_delay_s > 0:
        levels[0] |= {"latency_s": spec.spine_delay_s, "source": "delay of the lab's top switch"}
    return {
        "format": "palmette-topology",
        "version": 1,
        "name": f"lab-{name}",
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "sources": [
            {
                "kind": "lab",
                "detail": f"{text}; capacities are TCP payload, {PAYLOAD_SHARE:.4f} of the link rates",
            }
        ],
        "warnings": [],
        "machine": {"levels": levels, "insides": dict(spec.insides), "tree": _node(spec.root, rates)},
    }


def write_topology(path: Path, document: Mapping[str, Any]) -> None:
    """Write `document`, all or nothing."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def _node(group: Group, rates: Mapping[str, float | None]) -> dict[str, Any]:
    node: dict[str, Any] = {"name": group.name}
    if group.level != "fabric":
        node["level"] = group.level
    rate = rates.get(group.name)
    if rate:
        node["up_bytes_per_s"] = rate / 8 * PAYLOAD_SHARE
    if group.is_host:
        if group.inside is not None:
            node["inside"] = group.inside
        elif group.slots != 1:
            node["slots"] = group.slots
    else:
        node["children"] = [_node(child, rates) for child in group.children]
    return node
