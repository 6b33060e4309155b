"""Parser of Slurm's topology.yaml: a list of topologies, each tree, block, flat, ring or torus3d."""

from __future__ import annotations

from typing import Any

import yaml

from palmette.discover.grouping import Group, machine_of_groups
from palmette.discover.hostlist import expand
from palmette.discover.slurm_block import Block, machine_of_blocks
from palmette.topology.found import DiscoverError, SourceResult
from palmette.units import plural


def read_yaml(text: str, found: SourceResult) -> None:
    """Stores the machine of topology.yaml in `found`: the topology with cluster_default, else the first tree or block.

    Raises DiscoverError when it can't be read or has neither tree nor block.
    """
    place = found.source.path or "topology.yaml"
    try:
        document = yaml.safe_load(text)
    except RecursionError:
        raise DiscoverError(f"nested too deeply, {place}; give Slurm's topology.yaml") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "bad syntax"
        raise DiscoverError(f"not YAML ({problem}), {place}{line}; mend that line") from None
    entries = [entry for entry in document if isinstance(entry, dict)] if isinstance(document, list) else []
    if not entries:
        raise DiscoverError(f"no list of topologies in it, {place}; give Slurm's topology.yaml")
    shaped = [entry for entry in entries if isinstance(entry.get("tree"), dict) or isinstance(entry.get("block"), dict)]
    if not shaped:
        kinds = sorted({str(key) for entry in entries for key in entry} - {"topology", "cluster_default"})
        if rings := [kind for kind in kinds if kind.startswith(("ring", "torus"))]:
            raise DiscoverError(
                f"only {' and '.join(rings)} in it, {place}: palmette plans along trees of switches; measure which"
                " hosts are near each other: palmette discover --from measurement -- srun"
            )
        raise DiscoverError(
            f"no tree and no block in it, only {', '.join(kinds) or 'names'}, {place}; nothing to discover"
        )
    chosen = next((entry for entry in shaped if entry.get("cluster_default")), shaped[0])
    name = str(chosen.get("topology", "unnamed"))
    others = [_described(entry) for entry in entries if entry is not chosen]
    found.leave_out(len(others), "other topologies of the file", f'"{name}" is used; not {", ".join(others[:3])}')
    if isinstance(chosen.get("tree"), dict):
        _tree(chosen["tree"], name, found)
    else:
        _block(chosen["block"], name, found)


def _described(entry: dict[str, Any]) -> str:
    """A topology's name, and its kind where palmette can't use it."""
    name = str(entry.get("topology", "unnamed"))
    other = next((str(kind) for kind in entry if str(kind).startswith(("ring", "torus"))), "")
    return f"{name} (a {other})" if other else name


def _tree(tree: dict[str, Any], name: str, found: SourceResult) -> None:
    groups: dict[str, Group] = {}
    for index, entry in enumerate(tree.get("switches") or []):
        place = f"{found.source.path}: {name}.tree.switches[{index}]"
        if not isinstance(entry, dict) or not entry.get("switch"):
            raise DiscoverError(f"expected an entry with `switch`, {place}; mend it")
        group = groups.setdefault(str(entry["switch"]), Group(str(entry["switch"])))
        group.hosts.extend(expand(_text(entry.get("nodes")), place))
        group.below.extend(expand(_text(entry.get("children")), place))
    if not groups:
        raise DiscoverError(f'the tree "{name}" has no switches, {found.source.path}; nothing to discover')
    found.machine = machine_of_groups(groups, found)
    found.source.detail = f'tree "{name}", {plural(len(groups), "switch")}'


def _block(block: dict[str, Any], name: str, found: SourceResult) -> None:
    blocks = []
    for index, entry in enumerate(block.get("blocks") or []):
        place = f"{found.source.path}: {name}.block.blocks[{index}]"
        if not isinstance(entry, dict) or not entry.get("block"):
            raise DiscoverError(f"expected an entry with `block`, {place}; mend it")
        blocks.append(Block(str(entry["block"]), expand(_text(entry.get("nodes")), place)))
    sizes = block.get("block_sizes") or []
    try:
        numbers = [int(size) for size in (sizes if isinstance(sizes, list) else str(sizes).split(","))]
    except (TypeError, ValueError):
        raise DiscoverError(f'block_sizes of "{name}" are no numbers, {found.source.path}; mend them') from None
    found.machine = machine_of_blocks(blocks, numbers, found)
    found.source.detail = f'block "{name}", {len(blocks)} blocks'


def _text(value: Any) -> str:
    """A host list; YAML may also give a list of them."""
    if isinstance(value, list):
        return ",".join(str(part) for part in value)
    return "" if value is None else str(value)
