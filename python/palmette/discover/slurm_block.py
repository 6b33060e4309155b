"""Slurm's block plugin: blocks of hosts, and aggregated blocks of 2, 4, 8, ... of them."""

from __future__ import annotations

from dataclasses import dataclass

from palmette.topology.found import DiscoverError, SourceResult, some_names
from palmette.topology.model import Level, Machine, TreeNode
from palmette.topology.names import natural_key


@dataclass(slots=True)
class Block:
    """A base block and its hosts."""

    name: str
    hosts: list[str]


def machine_of_blocks(blocks: list[Block], sizes: list[int], found: SourceResult) -> Machine:
    """The machine of blocks in file order.

    sizes: BlockSizes, the base size first; each further size aggregates size / base adjacent blocks to a level
    `block<size>`. A size that aggregates everything, or isn't a power of two times the base, gives no level.
    """
    seen: set[str] = set()
    repeated: set[str] = set()
    nodes: list[TreeNode] = []
    for block in blocks:
        fresh = [host for host in dict.fromkeys(block.hosts) if host not in seen]
        once: set[str] = set()
        for host in block.hosts:
            (repeated if host in once or host in seen else once).add(host)
        seen.update(fresh)
        if fresh:
            hosts = [TreeNode(host, "node") for host in sorted(fresh, key=natural_key)]
            nodes.append(TreeNode(block.name, "block", children=hosts))
    if repeated:
        found.warn(f"{len(repeated)} host(s) are listed several times; the first one counts: {some_names(repeated)}")
    found.leave_out(len(blocks) - len(nodes), "blocks", "no host is in them")
    if not nodes:
        raise DiscoverError(f"no host in any block, {found.source.path}; it needs BlockName= lines with Nodes=")
    levels = [Level("block"), Level("node")]
    base = sizes[0] if sizes else 0
    done = 1
    for size in sorted(set(sizes[1:])):
        factor = size // base if base > 0 and size % base == 0 else 0
        if factor < 2 or factor & (factor - 1):
            found.warn(
                f"BlockSizes has {size}, which is no power of two times the base size {base}; no level made of it"
            )
            continue
        if factor <= done or -(-len(blocks) // factor) < 2:
            continue
        step = factor // done
        groups = [nodes[start : start + step] for start in range(0, len(nodes), step)]
        name = f"block{size}"
        nodes = [TreeNode(f"{name}-{index}", name, children=group) for index, group in enumerate(groups, 1)]
        levels.insert(0, Level(name))
        done = factor
    return Machine(levels, TreeNode("fabric", children=nodes))
