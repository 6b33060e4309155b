"""`palmette discover --refresh`: read a file's sources again, and keep what they don't tell."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from palmette.discover.run import KINDS, discover
from palmette.topology.file import TopologyError, load
from palmette.topology.found import DiscoverError, some_names
from palmette.topology.model import HostCosts, Level, Source, Topology, TreeNode
from palmette.units import plural

_STANDARD_INPUT = "standard input"
_BY_TOOL = {
    "ibnetdiscover": ("output of ",),
    "slurm": ("output of ",),
    "hwloc": ("this node, by ", "/sys/devices/"),
    "env": ("SLURM_TOPOLOGY_ADDR",),
}
"""What a source's path begins with where no file was read: it is asked again."""


@dataclass
class Refresh:
    """The new topology, and what has changed: names of hosts, and sentences on what was kept or lost."""

    topology: Topology
    new_hosts: list[str] = field(default_factory=list)
    gone_hosts: list[str] = field(default_factory=list)
    changed: bool = True
    remarks: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """Return what has changed, for people."""
        if not self.changed:
            return "nothing has changed"
        parts = [
            f"{plural(len(names), 'host')} {word}: {some_names(names)}"
            for names, word in ((self.new_hosts, "new"), (self.gone_hosts, "gone"))
            if names
        ]
        return "; ".join(parts) or "the same hosts, wired or described in another way"


def refresh(path: str) -> Refresh:
    """Read the sources of the file at `path` again. Costs and capacities that they don't tell stay as they are.

    Raises DiscoverError where a source can't be read again, or has lost most of the hosts; the file isn't touched.
    """
    try:
        old = load(path)
    except TopologyError as error:
        raise DiscoverError(str(error)) from None
    if not old.sources:
        example = f"--from slurm -o {shlex.quote(str(path))}"
        raise DiscoverError(f"{path}: it names no sources; make it anew with --from, as in {example}")
    new = discover([_again(source, path) for source in old.sources], old.name)
    before = {host.name for host in old.machine.tree.hosts()}
    after = {host.name for host in new.machine.tree.hosts()}
    if len(before & after) * 2 < len(before):
        raise DiscoverError(
            f"{path}: of its {plural(len(before), 'host')} the sources have {len(before & after)} left, so it stays as "
            f"it is; if that is right, make it anew with --from ... -o {shlex.quote(str(path))}"
        )
    result = Refresh(new, sorted(after - before), sorted(before - after))
    _keep_costs(old, new, result)
    _keep_of_tree(old, new, result)
    result.changed = _contents(old) != _contents(new)
    return result


def with_absolute_sources(topology: Topology) -> Topology:
    """Return the topology as it is written: files of its sources are found again from every folder."""
    return dataclasses.replace(topology, sources=[_absolute(source) for source in topology.sources])


def _absolute(source: Source) -> Source:
    is_file = source.kind in _BY_TOOL and source.path not in (None, _STANDARD_INPUT)
    if not is_file or source.path is None or source.path.startswith(_BY_TOOL[source.kind]):
        return source
    return dataclasses.replace(source, path=str(Path(source.path).absolute()))


def _again(source: Source, path: str) -> tuple[str, str | None]:
    """Return the kind and argument that read a source once more."""
    anew = f"make {path} anew with --from"
    if source.kind not in KINDS or source.kind == "measurement":
        raise DiscoverError(f"{path}: its source is {source.kind}, which can't be read again by itself; {anew}")
    where = source.path
    if where is None or where == _STANDARD_INPUT:
        raise DiscoverError(f"{path}: its source {source.kind} came from {where or 'nowhere'}; {anew} and a file")
    if where.startswith(_BY_TOOL.get(source.kind, ("\0",))):
        return source.kind, None
    if source.kind == "synthetic" or Path(where).is_absolute() or Path(where).exists():
        return source.kind, where
    # A file of before sources' paths were written absolute.
    beside = Path(path).absolute().parent / where
    if not beside.exists():
        raise DiscoverError(
            f"{path}: it was made from {where}, which is neither here nor beside it; {anew}, with an absolute path for "
            "a --refresh from anywhere"
        )
    return source.kind, str(beside)


def _contents(topology: Topology) -> object:
    document = topology.to_json()
    for name in ("created", "warnings", "left_out"):
        document.pop(name, None)
    for source in document["sources"]:
        source.pop("path", None)  # relative to wherever it was read
    return document


_COSTS = ("latency_s", "overhead_s", "stream_bytes_per_s", "together_bytes_per_s", "receive_overhead_s")


def _keep_costs(old: Topology, new: Topology, result: Refresh) -> None:
    """Keep what was calibrated: the costs of levels of the same name, of hosts and of memory."""
    known = {level.name: level for level in old.machine.levels}
    for level in new.machine.levels:
        if level.name in known:
            _take_costs(level, known[level.name])
    lost = [level.name for level in old.machine.levels if level.source and not _has(new, level.name)]
    if lost:
        result.remarks.append(
            f"the costs of {', '.join(lost)} are gone with the level; palmette calibrate measures anew"
        )
    new.machine.same_host = new.machine.same_host or old.machine.same_host
    new.machine.memory = new.machine.memory or old.machine.memory
    new.machine.calibration = new.machine.calibration or old.machine.calibration


def _has(topology: Topology, level: str) -> bool:
    return any(one.name == level for one in topology.machine.levels)


def _take_costs(target: Level | HostCosts, known: Level | HostCosts) -> None:
    calibrated = known.source == "calibrated"
    for name in _COSTS:
        if getattr(known, name) is not None and (calibrated or getattr(target, name) is None):
            setattr(target, name, getattr(known, name))
            target.source = known.source


def _keep_of_tree(old: Topology, new: Topology, result: Refresh) -> None:
    """Keep capacities that the sources don't tell, loads and aggregators, of groups with the same hosts."""
    known = dict(_groups(old))
    others = 0
    for key, node in _groups(new):
        before = known.get(key)
        if before is None:
            continue
        if node.up_bytes_per_s is None:
            node.up_bytes_per_s = before.up_bytes_per_s
        elif before.up_bytes_per_s not in (None, node.up_bytes_per_s):
            others += 1
        if node.load is None:
            node.load = before.load
        node.aggregators = node.aggregators or [dataclasses.replace(one) for one in before.aggregators]
    if others and old.machine.calibration is not None:
        result.remarks.append(
            f"{plural(others, 'edge')} have the sources' capacity again, not the calibrated one; palmette calibrate "
            "measures anew"
        )


def _groups(topology: Topology) -> Iterator[tuple[tuple[str | None, frozenset[str]], TreeNode]]:
    for node in topology.machine.tree.walk():
        yield (node.level, frozenset(host.name for host in node.hosts())), node
