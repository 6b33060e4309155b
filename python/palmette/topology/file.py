"""topology.json, version 1: typed access, reading with checks, writing.

The format is described in docs/reference/topology-json.md and schemas/topology.schema.json.
Rates are bytes per second and direction, latencies are seconds.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from palmette.files import parse_json, read_text
from palmette.topology.model import (
    FORMAT,
    VERSION,
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
from palmette.topology.parts import read_topology
from palmette.topology.reader import Reader, TopologyError

__all__ = [
    "Fabric", "FabricHost", "FabricLink", "FabricSwitch", "HostCosts", "InsideGroup", "LeftOut", "Level",
    "Machine", "Memory", "Note", "Source", "Topology", "TopologyError", "TreeNode", "load", "parse",
]  # fmt: skip


def load(path: str | Path) -> Topology:
    """Reads and checks a topology.json.

    Raises TopologyError naming the file, the JSON path and what to do; also for a file that can't be read.
    """
    name = str(path)
    try:
        text = read_text(path)
    except FileNotFoundError:
        written = f"`palmette discover --from hwloc -o {shlex.quote(name)}`"
        raise TopologyError(f"{name}: no such file; {written} writes this node's, --from slurm a cluster's") from None
    except UnicodeDecodeError:
        raise TopologyError(another_kind(name)) from None
    except OSError as error:
        raise TopologyError(f"{name}: can't be read: {error.strerror}") from None
    if text.strip()[:1] != "{":
        raise TopologyError(another_kind(name))
    return parse(text, name)


def another_kind(name: str) -> str:
    """Return what is told of a file that holds no JSON object."""
    return f"{name} is no topology.json (a program, a listing?); `palmette discover --from KIND` writes one"


def parse(text: str, name: str = "topology.json") -> Topology:
    """Reads topology.json from text; `name` stands for the file in errors."""
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        raise TopologyError(
            f"{name}:{error.lineno}: not JSON ({error.msg}); write it again with `palmette discover`"
        ) from None
    reader = Reader(name)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise reader.error("$.format", f'expected "{FORMAT}"; is this a topology.json?')
    if document.get("version") != VERSION:
        raise reader.error(
            "$.version", f"expected {VERSION}, found {document.get('version')!r}; this palmette reads version 1"
        )
    return read_topology(reader, document)
