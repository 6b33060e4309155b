"""The source `env`: the switch path of a task's host in SLURM_TOPOLOGY_ADDR and SLURM_TOPOLOGY_ADDR_PATTERN.

Each task sees only its own host's path. A file with one `ADDR PATTERN` line per host covers the whole job:

    srun --ntasks-per-node=1 sh -c 'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN' > addr.txt
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from palmette.discover.hostlist import expand
from palmette.discover.text import read_text
from palmette.discover.tree import tier_name
from palmette.topology.found import DiscoverError, SourceResult, some_names
from palmette.topology.model import Level, Machine, Source, TreeNode
from palmette.topology.names import natural_key
from palmette.units import plural

_EVERYBODY = (
    "srun --ntasks-per-node=1 sh -c 'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN' > addr.txt "
    "and --from env addr.txt give all"
)
# A period between names; those inside brackets belong to a host list.
_KIND = re.compile(r"[A-Za-z_][\w-]{0,31}")
_PERIOD = re.compile(r"\.(?![^\[]*\])")


def discover_env(argument: str | None, environment: Mapping[str, str] | None = None) -> SourceResult:
    """The hosts of a job and the switches above them.

    argument: a file of `ADDR PATTERN` lines, `-`, or None for the environment. Raises DiscoverError when neither has
    a topology.
    """
    if argument is not None:
        found = SourceResult(Source("env", "standard input" if argument == "-" else argument))
        paths = {}
        for number, line in enumerate(read_text(argument).splitlines(), 1):
            words = line.split()
            if not words or line.lstrip().startswith("#"):
                continue
            path = _path(words[0], words[1]) if len(words) == 2 else None
            if path is None:
                found.warn(f"expected `ADDR PATTERN`, skipped: {line[:40]}", number)
            else:
                paths[path[-1][1]] = path[:-1]
        if not paths:
            raise DiscoverError(f"no `ADDR PATTERN` line in it, {argument}; make it with {_EVERYBODY}")
        found.machine = _machine(paths, [])
        found.source.detail = f"{plural(len(paths), 'host')}"
        return found
    env = os.environ if environment is None else environment
    found = SourceResult(Source("env", "SLURM_TOPOLOGY_ADDR"))
    address, pattern = env.get("SLURM_TOPOLOGY_ADDR", ""), env.get("SLURM_TOPOLOGY_ADDR_PATTERN", "")
    if not address:
        raise DiscoverError(
            "SLURM_TOPOLOGY_ADDR is not set; run this inside a step of a Slurm job (srun), or give another source"
        )
    path = _path(address, pattern)
    if path is None:
        raise DiscoverError(
            f"SLURM_TOPOLOGY_ADDR={address} doesn't fit SLURM_TOPOLOGY_ADDR_PATTERN={pattern}; are both set?"
        )
    own = path[-1][1]
    others = [host for host in expand(env.get("SLURM_JOB_NODELIST", ""), "SLURM_JOB_NODELIST") if host != own]
    if others:
        found.warn(
            f"{len(others)} host(s) of the job are put below the root ({some_names(others)}): "
            f"only {own}'s switches are known; {_EVERYBODY}"
        )
    found.machine = _machine({own: path[:-1]}, others)
    found.source.detail = f"{own} at {address}"
    return found


def _path(address: str, pattern: str) -> list[tuple[str, str]] | None:
    """(kind, name) of the parts of an address, outermost first and the host last; None when they don't match.

    Host names may contain periods: the remainder belongs to the last part.
    """
    kinds = pattern.split(".") if pattern else ["node"]
    names = _PERIOD.split(address, maxsplit=len(kinds) - 1)
    if len(names) != len(kinds) or kinds[-1] != "node" or not all(names) or not all(map(_KIND.fullmatch, kinds)):
        return None
    levels = [_level(kind, len(kinds) - 1 - depth) for depth, kind in enumerate(kinds)]
    return list(zip(kinds, names, strict=True)) if len(set(levels)) == len(levels) else None


def _level(kind: str, height: int) -> str:
    """The level of a part of an address, `height` parts above the host."""
    return tier_name(height) if kind == "switch" else kind


def _machine(paths: Mapping[str, list[tuple[str, str]]], rootless: list[str]) -> Machine:
    root = TreeNode("fabric")
    groups: dict[tuple[tuple[str, str], ...], TreeNode] = {(): root}
    used: dict[str, int] = {}
    for host in sorted(paths, key=natural_key):
        path = tuple(paths[host])
        parent = root
        for depth in range(1, len(path) + 1):
            height = len(path) - depth + 1
            level = _level(path[depth - 1][0], height)
            used[level] = max(used.get(level, 0), height)
            key = path[:depth]
            if key not in groups:
                groups[key] = TreeNode(path[depth - 1][1], level)
                parent.children.append(groups[key])
            parent = groups[key]
        parent.children.append(TreeNode(host, "node"))
    root.children.extend(TreeNode(host, "node") for host in sorted(rootless, key=natural_key))
    if len(root.children) == 1 and root.children[0].level not in ("leaf", "node"):
        # All paths start at one switch: that is the root.
        root = root.children[0]
        used.pop(root.level or "", None)
        root.level = None
    levels = [Level(name) for name in sorted(used, key=lambda name: -used[name])]
    return Machine([*levels, Level("node")], root)
