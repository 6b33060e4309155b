"""Inputs that are right but deep: chains of switches, levels in levels, lists in lists, for every reader."""

from __future__ import annotations

import json
import random
from typing import Any

import mutate  # type: ignore[import-not-found]

DEPTHS = (10, 40, 60, 64, 66, 95, 100, 101, 190, 201, 330, 480, 600, 990, 1010, 3000)
"""Around what the readers take, Python's stack of 1000 calls, and beyond."""


def form(depth: int) -> str:
    """A synthetic machine of so many levels."""
    return ":".join([*(f"1l{number}" for number in range(depth - 1)), "2node"])


def forms(draw: random.Random) -> str:
    """Return a word of a command line that is deep: a machine, a list of hosts, an algorithm, a path."""
    depth = draw.choice(DEPTHS)
    return draw.choice((
        form(depth), "1node:" + form(depth).replace("node", "core"), "n[" * depth + "1" + "]" * depth,
        "tree:" * depth + "ring", ",".join(["inside=binomial"] * depth), "leaders:" + "between=" * depth + "bruck",
        "tree.2/" * depth, "../" * depth + "x", "hosts=" + "(" * depth,
    ))  # fmt: skip


def data(draw: random.Random, name: str, value: bytes) -> bytes:
    """Return a deep file in the place of `value`, of the kind that `name` is."""
    depth = draw.choice(DEPTHS)
    made = _BY_NAME.get(name)
    if made is not None and draw.random() < 0.7:
        return made(draw, depth).encode()
    try:
        document = json.loads(value)
        json.dumps(document)
    except (ValueError, RecursionError):
        return draw.choice((b"[", b'{"a":', b"(", b"- ", b"<a>", b"a: {b: ")) * depth + value
    return _wrapped(draw, document, depth)


def _wrapped(draw: random.Random, document: Any, depth: int) -> bytes:
    """One value of a document in a list of a list of a list, or below itself."""
    places = mutate.places_of(document)
    if not places:
        return b"[" * depth + b"]" * depth
    node, key = draw.choice(places)
    inner = json.dumps(node[key])
    node[key] = "@hole@"
    around = json.dumps(document)
    before, after = draw.choice((("[", "]"), ('{"a": ', "}"), (f"{{{json.dumps(str(key))}: [", "]}")))
    return around.replace('"@hole@"', before * depth + inner + after * depth).encode()


def _topology(draw: random.Random, depth: int) -> str:
    """A chain of switches, as `palmette discover` would write it; or one host with levels in levels."""
    names = [f"l{number}" for number in range(depth)]
    levels = [*names, "node"]
    if draw.random() < 0.5:
        tree = "".join(f'{{"name": "{name}", "level": "{name}", "children": [' for name in names)
        tree = f'{tree}{{"name": "n1", "level": "node"}}' + "]}" * depth
        insides = "{}"
    else:
        levels = ["node", *names]
        tree = '{"name": "n1", "level": "node", "inside": "deep"}'
        inside = "".join(f'{{"level": "{name}", "children": [' for name in names)
        insides = f'{{"deep": [{inside}' + "]}" * depth + "]}"
    listed = json.dumps([{"name": level} for level in levels])
    return (
        f'{{"format": "palmette-topology", "version": 1, "machine": {{"levels": {listed}, "insides": {insides}, '
        f'"tree": {{"name": "fabric", "children": [{tree}]}}}}}}'
    )


def _conf(draw: random.Random, depth: int) -> str:
    """Switches below each other, each with a host of its own or none."""
    hosts = draw.random() < 0.5
    lines = ["SwitchName=s0 Nodes=n0"]
    lines += [f"SwitchName=s{n} Switches=s{n - 1}" + (f" Nodes=n{n}" if hosts else "") for n in range(1, depth)]
    if draw.random() < 0.5:
        lines.reverse()
    return "\n".join(lines) + "\n"


def _yaml(draw: random.Random, depth: int) -> str:
    if draw.random() < 0.3:
        return "- topology: main\n  tree: " + "{a: " * depth + "b" + "}" * depth + "\n"
    lines = ["- topology: main", "  tree:", "    switches:", "      - switch: s0", "        nodes: n[1-2]"]
    for number in range(1, depth):
        lines += [f"      - switch: s{number}", f"        children: s{number - 1}"]
    return "\n".join(lines) + "\n"


def _blocks(_draw: random.Random, depth: int) -> str:
    sizes = ",".join(str(4 << n) for n in range(depth))
    return f"BlockName=b1 Nodes=n[01-04]\nBlockName=b2 Nodes=n[05-08]\nBlockSizes={sizes}\n"


def _addresses(draw: random.Random, depth: int) -> str:
    kinds = draw.choice((["switch"] * depth, [f"k{n}" for n in range(depth)], ["rack"] * depth, ["a", "b"] * depth))
    names = [f"s{n}" for n in range(len(kinds))]
    return f"{'.'.join([*names, 'n1'])} {'.'.join([*kinds, 'node'])}\n"


def _hwloc(draw: random.Random, depth: int) -> str:
    kind = draw.choice(("Group", "Package", "NUMANode", "L3Cache", "Die", "Core", "Misc"))
    inner = "".join(f'<object type="Core" cpuset="0x{1 << n:x}"/>' for n in range(4))
    nested = f'<object type="{kind}" cpuset="0xf">' * depth + inner + "</object>" * depth
    return f'<topology version="2.0"><object type="Machine" cpuset="0xf">{nested}</object></topology>'


_BY_NAME = {
    "topology.json": _topology,
    "topology.conf": _conf,
    "topology.yaml": _yaml,
    "blocks.conf": _blocks,
    "addr.txt": _addresses,
    "node.xml": _hwloc,
}
KINDS = set(_BY_NAME)
"""Files for which there is a deep one of their own kind."""
