"""The source `measurement`: hosts grouped by how long tiny messages take between them, where nothing tells the wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palmette.calibrate.session import Asker, JobLine
from palmette.discover.found import DiscoverError, Found
from palmette.discover.measurement_groups import Groups, find_groups
from palmette.topology_model import InsideGroup, Level, Machine, Source, TreeNode
from palmette.units import plural

TRIPS = 20
"""Round trips of a pair in each pass; the lower quartile counts."""
TINY_BYTES = 1
SECONDS_PER_HOST = 0.05
NAMES = {1: ["leaf"], 2: ["pod", "leaf"]}
"""Levels of switches by their number, outermost first; more are tier3, tier2, leaf."""


def discover_measurement(asker: Asker, job: JobLine, progress: Callable[[int, int], None] | None = None) -> Found:
    """Measure on a running job and return its hosts in groups. `progress` is told of pairs measured and hosts.

    Raises DiscoverError for a job on one host, CalibrateError when the job fails.
    """
    ranks = _ranks_by_host(job)
    hosts = list(ranks)
    if job.ranks < 2:
        raise DiscoverError("a job of 1 rank has nobody to measure; give it ranks on several hosts")
    if len(hosts) < 2:
        raise DiscoverError(
            f"all {job.ranks} ranks are on {hosts[0]}, and nothing is between hosts; run on several, or take --from hwloc"
        )
    first = [members[0] for members in ranks.values()]
    asked = 0

    def measure(centre: int, others: Sequence[int]) -> list[float]:
        nonlocal asked
        pairs = [(first[centre], first[other]) for other in others]
        figures = asker.ask("star", (TINY_BYTES, TRIPS), pairs, SECONDS_PER_HOST * len(pairs))
        asked += len(pairs)
        if progress is not None:
            progress(asked, len(hosts))
        return [quartile for _, quartile, _ in figures]

    try:
        groups = find_groups(len(hosts), measure)
    except ValueError as error:
        raise DiscoverError(f"the measured times make no sense ({error}); try again on a quieter machine") from None
    inner = _latency_inside(asker, ranks)
    found = Found(Source("measurement", None, _detail(groups, hosts, job, asked)))
    found.machine = machine_of(hosts, [len(members) for members in ranks.values()], groups, inner)
    if len(groups.levels) == 1:
        found.warn("no groups of hosts: all are equally far from each other, as far as this can be told")
    found.warn("groups come from latencies: no capacity is known; palmette calibrate measures them")
    return found


def machine_of(hosts: Sequence[str], ranks: Sequence[int], groups: Groups, inside_latency_s: float | None) -> Machine:
    """Return the machine of hosts with so many ranks each, in the groups that were found."""
    switches = groups.levels[:-1]
    names = NAMES.get(len(switches)) or [*(f"tier{n}" for n in range(len(switches), 1, -1)), "leaf"]
    names = names if switches else []
    levels = [
        Level(name, _digits(level.distance), source="measured")
        for name, level in zip([*names, "node"], groups.levels, strict=True)
    ]
    machine = Machine(levels, TreeNode("fabric"))
    if max(ranks) > 1:
        latency_s = None if inside_latency_s is None else _digits(inside_latency_s)
        levels.append(Level("core", latency_s, source="measured" if latency_s is not None else None))
    made: dict[tuple[int, ...], TreeNode] = {(): machine.tree}
    counts = dict.fromkeys(names, 0)
    for host, name in enumerate(hosts):
        path: tuple[int, ...] = ()
        for level_name, level in zip(names, switches, strict=True):
            outer, path = path, (*path, level.group_of[host])
            if path not in made:
                made[path] = TreeNode(f"{level_name}{counts[level_name]}", level_name)
                counts[level_name] += 1
                made[outer].children.append(made[path])
        node = TreeNode(name, "node")
        if ranks[host] > 1:
            node.inside = f"{ranks[host]}core"
            machine.insides[node.inside] = [InsideGroup("core", ranks[host])]
        made[path].children.append(node)
    return machine


def _ranks_by_host(job: JobLine) -> dict[str, list[int]]:
    """Return the ranks of each host by its name: the system's where the MPI's own names are all alike or longer."""
    names = job.processors if len(set(job.processors)) >= len(set(job.hosts)) else job.hosts
    ranks: dict[str, list[int]] = {}
    for rank, name in enumerate(names):
        ranks.setdefault(name, []).append(rank)
    return ranks


def _latency_inside(asker: Asker, ranks: dict[str, list[int]]) -> float | None:
    for members in ranks.values():
        if len(members) > 1:
            return asker.ask("star", (TINY_BYTES, TRIPS), [(members[0], members[1])])[0][1]
    return None


def _detail(groups: Groups, hosts: Sequence[str], job: JobLine, asked: int) -> str:
    trips = plural(asked * TRIPS, "round trip")
    return (
        f"{plural(len(hosts), 'host')}, {groups.pairs} of {groups.all_pairs} pairs by {trips}, noise {groups.noise:.1%}"
        f", told apart from a ratio of {groups.gap:.2f}; {job.mpi}"
    )


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
