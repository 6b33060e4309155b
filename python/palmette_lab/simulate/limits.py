"""Lower bounds on the time of a collective on a simulated cluster: links, a host's memory and link, broadcast latency.

Message costs are the simulator's parameters, so the bounds are tighter than on a real cluster:

- *Links*: the bytes that must cross an edge (`palmette plan --bound`) over its capacity, after the latency of the first
  message that crosses it, overheads of both ends included.
- *A host*: all data that its ranks must get (or send) moves by messages, which share the host's memory and its link.
- *Broadcast latency*: the least time until every rank is informed by the root, or the root by every rank, when each
  message keeps its sender, or its receiver, busy: the postal model on ranks, hosts and groups of hosts
  (src/palmette/model/bound/spread.hpp), and with the links that the bytes must share (delivery.hpp
  beside it).

Where ranks share memory, any number of them can see what one exposes: a host's ranks count as one in the postal model,
the delivery with shared links gives no bound, and a host has its memory twice, as copies and messages don't share it.

Messages beyond the eager limit have no overhead in the simulation; where a message can be that long, only the wire part
of a latency counts, and the postal model gives no bound. Where aggregators can take part, in an allreduce, links are
bounded with theirs, and the postal model gives no bound either: an aggregator's messages keep nobody busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from palmette import _core
from palmette.bench.results import Limit
from palmette.topology.model import HostCosts, Topology
from palmette_lab.simulate.cluster import FREE, Cluster
from palmette_lab.simulate.job import Job
from palmette_lab.simulate.parameters import Parameters

_VECTORS = ("bcast", "reduce", "allreduce", "scan", "exscan")


def bound_s(job: Job, parameters: Parameters, collective: str, size_bytes: int, root: int) -> float:
    """Return the seconds of `limit_of`."""
    return limit_of(job, parameters, collective, size_bytes, root).seconds


def limit_of(job: Job, parameters: Parameters, collective: str, size_bytes: int, root: int) -> Limit:
    """Return the largest of these limits, of the measured ranks, without the background; 0 seconds: unknown."""
    kind = _core.collective_of(collective)
    if size_bytes == 0 and kind != "barrier":
        return Limit(0.0, "nothing to move")
    machine = _core.Machine.from_json(_nearest(job.cluster, parameters).to_json())
    core = _core.Job(machine, "hosts=" + ",".join(job.seats))
    shared = parameters.share_memory
    ends = None if shared else _ends(parameters)
    terms = _core.bound_terms(core, kind, size_bytes, root, messages_only=not shared, ends=ends)
    is_eager = _longest_bytes(kind, size_bytes, core.size) <= parameters.eager_bytes
    in_network = kind == "allreduce" and bool(core.aggregators)
    # To and from an aggregator a message may have the overhead of one end only.
    ends_s = 0.0 if is_eager and not in_network else parameters.ends_between_s
    found = list(_links(terms, kind, ends_s, in_network))
    found.append(Limit(terms.copy.seconds, "local copies of a rank"))
    if not in_network:
        found.append(Limit(terms.reduce.seconds, "local reductions of a rank"))
    found.append(Limit(_host_s(job, parameters, kind, size_bytes, root, in_network), "a host's memory and its link"))
    if is_eager and not in_network:
        found.append(Limit(terms.rounds.seconds, "broadcast latency by the postal model"))
    if is_eager and not in_network and not shared:
        delivery_s = _delivery_s(core, parameters, kind, size_bytes, root)
        found.append(Limit(delivery_s, "broadcast latency by the postal model with shared links"))
    return max(found, key=lambda limit: limit.seconds)


def _delivery_s(core: _core.Job, parameters: Parameters, kind: str, size_bytes: int, root: int) -> float:
    """From the root to all, or from all to it. Where ranks get different blocks, only the latency counts, no bytes."""
    send_inside_s, receive_inside_s, send_between_s, receive_between_s = _ends(parameters)
    bytes_of_all = size_bytes if kind in (*_VECTORS, "allgather") else 0
    found_s = 0.0
    if kind not in ("gather", "reduce"):
        source = root if kind in ("bcast", "scatter") else 0
        gaps_s = send_inside_s, send_between_s
        found_s = _core.delivery_bound(core, source, gaps_s, parameters.inside_latency_s, bytes_of_all)
    if kind not in ("bcast", "scatter"):
        target = root if kind in ("gather", "reduce") else core.size - 1
        gaps_s = receive_inside_s, receive_between_s
        found_s = max(found_s, _core.delivery_bound(core, target, gaps_s, parameters.inside_latency_s, bytes_of_all))
    return found_s


def _longest_bytes(kind: str, size_bytes: int, ranks: int) -> int:
    """Upper bound on the payload of a message."""
    if kind in _VECTORS:
        return size_bytes
    return size_bytes * ranks * (ranks if kind == "alltoall" else 1)


def _nearest(cluster: Cluster, parameters: Parameters) -> Topology:
    """The topology with the least that anything takes: where groups are joined pairwise, the least latency at every
    level, as paths skip levels; where ranks share memory, the latency of a flag inside of hosts, and free local copies.
    """
    machine = cluster.topology.machine
    names = [level.name for level in machine.levels]
    node_at = names.index("node") if "node" in names else len(names) - 1
    if cluster.mesh:
        least_s = min(level.latency_s or 0.0 for level in machine.levels[: node_at + 1])
        levels = [replace(level, latency_s=least_s) for level in machine.levels[: node_at + 1]]
        machine = replace(machine, levels=[*levels, *machine.levels[node_at + 1 :]])
    if parameters.share_memory:
        flag_s = min(parameters.flag_latency_s, parameters.inside_latency_s)
        inside = [replace(level, latency_s=flag_s, overhead_s=0.0) for level in machine.levels[node_at + 1 :]]
        machine = replace(
            machine,
            levels=[*machine.levels[: node_at + 1], *inside],
            same_host=HostCosts(flag_s, 0.0, source="simulation"),
            memory=FREE,
        )
    return replace(cluster.topology, machine=machine)


def _ends(parameters: Parameters) -> tuple[float, float, float, float]:
    return (
        parameters.send_inside_message_s,
        parameters.receive_inside_message_s,
        parameters.send_between_message_s,
        parameters.receive_between_message_s,
    )


def _links(terms: _core.BoundTerms, kind: str, ends_s: float, in_network: bool) -> Iterator[Limit]:
    """Each level's slowest edge, or all of its edges together: bytes flow once the first message has arrived there.

    `ends_s`: the overheads, to be left out of the latency.
    """
    least_s = float("inf")
    for level in terms.levels:
        if level.groups < 2:
            continue
        least_s = min(least_s, level.latency_s)
        if level.crossed:
            yield Limit(level.latency_s - ends_s, f"one message between groups of level {level.level}")
        if level.worst.group >= 0 and level.worst.seconds > 0:
            edge = level.worst.name or f"{level.level} {level.worst.group}"
            yield Limit(level.worst.seconds + max(least_s - ends_s, 0.0), f"the link of {edge}")
        if in_network and level.with_aggregators_s > 0:
            where = f"all links of level {level.level} and of aggregators together"
            yield Limit(level.with_aggregators_s + max(least_s - ends_s, 0.0), where)
        elif kind == "allreduce" and level.together_s > 0:
            yield Limit(level.together_s + max(least_s - ends_s, 0.0), f"all links of level {level.level} together")


def _host_s(job: Job, parameters: Parameters, kind: str, size_bytes: int, root: int, in_network: bool) -> float:
    """The slowest host: the bytes that its ranks must get or send by messages, over its memory and its link."""
    p = len(job.seats)
    ranks_of = Counter(job.seats)
    if p < 2:
        return 0.0
    slowest_s = 0.0
    for host in job.cluster.topology.machine.tree.hosts():
        ranks = ranks_of[host.name]
        is_alone = ranks == p
        memory = parameters.memory_bytes_per_s * (2 if parameters.share_memory else 1)  # by messages, and by copies
        link = 0.0 if is_alone else host.up_bytes_per_s or parameters.unknown_bytes_per_s
        if in_network:
            # Each rank sends its contribution and gets the result, by a message inside or one that crosses the link.
            found_s = size_bytes * ranks / (memory + (host.up_bytes_per_s or parameters.unknown_bytes_per_s))
        elif kind == "allreduce":
            # The sum of an element at k members takes at least 2 (k - 1) messages (one-way gossip). The k members are
            # the host's ranks and all others as one; messages to and from these cross the link, one direction each.
            found_s = 2 * size_bytes * (ranks - is_alone) / (memory + 2 * link)
        else:
            has_root = job.seats[root] == host.name
            found_s = _each_way_bytes(kind, size_bytes, ranks, p, has_root) / (memory + link)
        if found_s > 0:
            wire_s = max(parameters.inside_latency_s - parameters.ends_inside_s, 0.0)
            slowest_s = max(slowest_s, found_s + (0.0 if parameters.share_memory else wire_s))
    return slowest_s


def _each_way_bytes(kind: str, size_bytes: int, ranks: int, p: int, has_root: bool) -> int:
    """The least bytes that so many ranks of a host must get, or must send, by messages."""
    if kind in ("bcast", "reduce"):
        return size_bytes * (ranks - has_root)
    # Every other rank's block arrives; every contribution to another's block leaves.
    return size_bytes * (p - 1) * ranks if kind in ("allgather", "reduce_scatter") else 0
