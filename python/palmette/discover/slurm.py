"""The source `slurm`: topology.conf of the tree and block plugins, `scontrol show topology`, topology.yaml."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from palmette.discover.grouping import Group, machine_of_groups
from palmette.discover.hostlist import expand
from palmette.discover.slurm_block import Block, machine_of_blocks
from palmette.discover.slurm_yaml import read_yaml
from palmette.discover.text import exists, read_text
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Source
from palmette.units import plural

_PAIR = re.compile(r"(\w+)\s*=\s*(\"[^\"]*\"|\S+)")
_KNOWN = {"switchname", "blockname", "blocksizes", "aggregatedblock"}


def discover_slurm(argument: str | None) -> SourceResult:
    """The machine of a Slurm topology. argument: a file or `-`; None for the file of this cluster or scontrol.

    Raises DiscoverError when there is no topology in it.
    """
    path, text = (argument, read_text(argument)) if argument is not None else _of_this_cluster()
    found = SourceResult(Source("slurm", "standard input" if path == "-" else path))
    if path.endswith((".yaml", ".yml")) or re.match(r"\s*(---|-\s+topology\s*:)", text):
        read_yaml(text, found)
        return found
    _read_conf(text, found)
    return found


def _of_this_cluster() -> tuple[str, str]:
    folders = [Path(os.environ["SLURM_CONF"]).parent] if os.environ.get("SLURM_CONF") else []
    for folder in [*folders, Path("/etc/slurm"), Path("/etc/slurm-llnl")]:
        for name in ("topology.yaml", "topology.conf"):
            if exists(folder / name):
                return str(folder / name), read_text(str(folder / name))
    tool = shutil.which("scontrol")
    if tool is not None:
        run = subprocess.run([tool, "show", "topology"], capture_output=True, text=True, check=False)
        if run.returncode == 0 and "=" in run.stdout:
            return "output of scontrol show topology", run.stdout
    raise DiscoverError("no topology.conf, topology.yaml or scontrol on this machine; give the file: --from slurm FILE")


def _read_conf(text: str, found: SourceResult) -> None:
    switches: dict[str, Group] = {}
    blocks: list[Block] = []
    of_all: list[str] = []
    refused: DiscoverError | None = None
    sizes: list[int] = []
    for number, line in _logical_lines(text.splitlines()):
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
        place = f"{found.source.path}:{number}"
        if not pairs.keys() & _KNOWN:
            if line.split()[0].lower() == "include":
                found.warn("include is not followed; give the included file with a --from of its own", number)
            else:
                found.warn(f"not understood and skipped: {line[:40]}", number)
        elif "switchname" in pairs:
            try:
                of_all_nodes = pairs.get("nodes", "").lower() == "all"
                hosts = [] if of_all_nodes else expand(pairs.get("nodes", ""), place)
                below = expand(pairs.get("switches", ""), place)
                names = expand(pairs["switchname"], place)
            except DiscoverError as error:
                refused = refused or error
                found.warn(f"skipped: {error}", number)
                continue
            of_all += names if of_all_nodes else []
            for name in names:
                group = switches.setdefault(name, Group(name, line=number))
                group.hosts.extend(hosts)
                group.below.extend(child for child in below if child not in group.below)
        elif "blockname" in pairs:
            try:
                blocks.append(Block(pairs["blockname"], expand(pairs.get("nodes", ""), place)))
            except DiscoverError as error:
                refused = refused or error
                found.warn(f"skipped: {error}", number)
        elif "blocksizes" in pairs:
            sizes = _sizes(pairs["blocksizes"], found, number)
    if switches and blocks:
        raise DiscoverError(f"it has both SwitchName and BlockName lines, {found.source.path}; give one kind at a time")
    if blocks:
        found.machine = machine_of_blocks(blocks, sizes, found)
        found.source.detail = f"block plugin, {len(blocks)} blocks"
    elif switches:
        _give_all(switches, of_all, found)
        found.machine = machine_of_groups(switches, found)
        found.source.detail = f"tree plugin, {plural(len(switches), 'switch')}"
    else:
        raise refused or DiscoverError(
            f"no SwitchName= or BlockName= line in it, {found.source.path}; give a topology.conf or topology.yaml"
        )


def _give_all(switches: dict[str, Group], of_all: list[str], found: SourceResult) -> None:
    """Nodes=ALL: every node of the cluster, as named by the other lines, or else by sinfo."""
    if not of_all:
        return
    hosts = list(dict.fromkeys(host for group in switches.values() for host in group.hosts)) or _hosts_of_this_cluster()
    if not hosts:
        raise DiscoverError(
            f'switch "{of_all[0]}" has Nodes=ALL, all nodes of the cluster, which nothing in it names, '
            f"{found.source.path}; put the list there that `sinfo -h -o %N` prints"
        )
    for name in of_all:
        switches[name].hosts.extend(hosts)


def _hosts_of_this_cluster() -> list[str]:
    tool = shutil.which("sinfo")
    if tool is None:
        return []
    try:
        run = subprocess.run([tool, "-h", "-o", "%N"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return expand(run.stdout.strip(), "output of sinfo") if run.returncode == 0 else []


def _sizes(text: str, found: SourceResult, line: int) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        found.warn(f"BlockSizes={text[:30]} is no list of numbers; taken as not given", line)
        return []


def _logical_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank ones, continued over a backslash, with the number of their first line."""
    held, start = "", 0
    for number, raw in enumerate(lines, 1):
        line = raw.split("#", 1)[0].rstrip()
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        line = (held + line).strip()
        if line:
            yield start, line
        held, start = "", 0
    if held.strip():
        yield start, held.strip()
