"""The source `measurement`: hosts clustered by message times between them, where the wiring is unknown.

Tiny messages show by latency which hosts are close to each other; long ones show which share an oversubscribed uplink,
where latencies may all be equal. Levels are the groups of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from palmette import __version__, _core
from palmette.discover.measurement_groups import Groups, find_groups, joined, with_distances
from palmette.measure.session import Asker, JobLine
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import InsideGroup, Level, Machine, Source, TreeNode
from palmette.units import plural, rate_text

TINY_BYTES, TRIPS = 1, 20
"""Round trips of a pair in each pass; the lower quartile is used."""
LONG_BYTES, LONG_TRIPS = (16 << 10, 64 << 10, 256 << 10, 1 << 20), 5
"""The first size that takes `LONG_RATIO` times as long as a tiny message, between two hosts, or the last."""
LONG_RATIO = 8.0
SECONDS_PER_HOST, SECONDS_PER_LONG = 0.05, 0.5
NAMES = {1: ["leaf"], 2: ["pod", "leaf"]}
"""Names of switch levels by their number, outermost first; more are tier3, tier2, leaf."""


@dataclass(frozen=True)
class LevelCost:
    """Latency and stream rate between groups of one level: hosts are in `group_of[host]`. Errors are relative."""

    group_of: Sequence[int]
    latency_s: float
    latency_error: float
    stream_bytes_per_s: float | None
    stream_error: float


def discover_measurement(
    asker: Asker, job: JobLine, progress: Callable[[int, int], None] | None = None
) -> SourceResult:
    """Measure on a running job and return its hosts in groups. `progress` is called with the pairs measured and hosts.

    Raises DiscoverError for a job on one host, CalibrateError when the job fails.
    """
    ranks = _ranks_by_host(job)
    hosts = list(ranks)
    if job.ranks < 2:
        raise DiscoverError("a job of 1 rank has no pair to measure; give it ranks on several hosts")
    if len(hosts) < 2:
        raise DiscoverError(
            f"all {job.ranks} ranks are on {hosts[0]}, so no pair of hosts can be measured; run on several, or take"
            " --from hwloc"
        )
    first = [members[0] for members in ranks.values()]
    asked = 0

    def groups_by(size_bytes: int, trips: int, seconds: float) -> Groups:
        def measure(centre: int, others: Sequence[int]) -> list[float]:
            nonlocal asked
            pairs = [(first[centre], first[other]) for other in others]
            measured = asker.ask("star", (size_bytes, trips), pairs, seconds * len(pairs))
            asked += len(pairs)
            if progress is not None:
                progress(asked, len(hosts))
            return [quartile for _, quartile, _ in measured]

        try:
            return find_groups(len(hosts), measure)
        except ValueError as error:
            raise DiscoverError(f"the measured times are invalid ({error}); try again on a quieter machine") from None

    near = groups_by(TINY_BYTES, TRIPS, SECONDS_PER_HOST)
    long_bytes = _long(asker, first, near.levels[0].distance)
    wide = groups_by(long_bytes, LONG_TRIPS, SECONDS_PER_LONG)
    crossing = None
    try:
        partitions = joined(near, wide)
    except ValueError as error:
        clearer, kind, other = (near, "tiny", "long") if near.separation > wide.separation else (wide, "long", "tiny")
        partitions = [level.group_of for level in clearer.levels]
        crossing = (
            f"groups by {kind} messages only, since {other} ones give others ({error}); a busy machine may cause that"
        )
    levels = level_costs(near, wide, partitions, long_bytes)
    inner = _latency_inside(asker, ranks)
    found = SourceResult(Source("measurement", None, _detail((near, wide), hosts, job, (asked, long_bytes), levels)))
    found.machine = machine_of(hosts, [len(members) for members in ranks.values()], levels, inner)
    if crossing:
        found.warn(f"{crossing}, so try again")
    if len(levels) == 1:
        found.warn("no groups of hosts: all are equally far from each other within the measurement's noise")
    found.warn("groups come from pairs only: no link capacity is known; palmette calibrate measures them")
    return found


def level_costs(near: Groups, wide: Groups, partitions: Sequence[Sequence[int]], long_bytes: int) -> list[LevelCost]:
    """Return latency and stream rate at each level of `partitions`, outermost first, from tiny and long messages."""
    tiny, long = (with_distances(partitions, groups.distances) for groups in (near, wide))
    made = []
    for short, other in zip(tiny, long, strict=True):
        transfer_s = other.distance - short.distance
        stream = long_bytes / transfer_s if transfer_s > 0 else None
        spread = other.noise * other.distance / transfer_s if transfer_s > 0 else 0.0
        made.append(LevelCost(short.group_of, short.distance, short.noise, stream, spread))
    return made


def _long(asker: Asker, first: Sequence[int], tiny_s: float) -> int:
    """Size of a bandwidth-bound message: one whose transfer time dominates its latency."""
    for size_bytes in LONG_BYTES[:-1]:
        ((_, quartile, _),) = asker.ask("star", (size_bytes, LONG_TRIPS), [(first[0], first[1])], SECONDS_PER_LONG)
        if quartile >= LONG_RATIO * tiny_s:
            return size_bytes
    return LONG_BYTES[-1]


def machine_of(
    hosts: Sequence[str], ranks: Sequence[int], costs: Sequence[LevelCost], inside_latency_s: float | None
) -> Machine:
    """Return the machine of hosts with `ranks[host]` ranks each, in the groups of `costs`."""
    switches = costs[:-1]
    names = NAMES.get(len(switches)) or [*(f"tier{n}" for n in range(len(switches), 1, -1)), "leaf"]
    names = names if switches else []
    levels = [
        Level(
            name,
            _digits(level.latency_s),
            stream_bytes_per_s=None if level.stream_bytes_per_s is None else _digits(level.stream_bytes_per_s),
            source="measured",
        )
        for name, level in zip([*names, "node"], costs, strict=True)
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
    """Return the ranks of each host: by the MPI's processor names, or by the system's where these separate more."""
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


def _detail(
    found: tuple[Groups, Groups],
    hosts: Sequence[str],
    job: JobLine,
    asked: tuple[int, int],
    levels: Sequence[LevelCost],
) -> str:
    near, wide = found
    pairs, long_bytes = asked
    each = "; ".join(
        f"{level.latency_s * 1e6:.4g} us ±{level.latency_error:.1%}"
        + (f", {rate_text(level.stream_bytes_per_s)} ±{level.stream_error:.1%}" if level.stream_bytes_per_s else "")
        for level in levels
    )
    return (
        f"{plural(len(hosts), 'host')}, {near.pairs} and {wide.pairs} of {near.all_pairs} pairs with 1 byte and"
        f" {_core.format_size(long_bytes)}, {pairs} times; separated from ratios of {near.gap:.2f} and {wide.gap:.2f};"
        f" by level, outermost first: {each}; {job.mpi}, palmette {__version__}"
    )


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
