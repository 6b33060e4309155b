"""The least time of a collective on a simulated cluster: its links, and what one host can take in."""

from __future__ import annotations

from collections import Counter

from palmette import _core
from palmette.simulate.job import Job
from palmette.simulate.parameters import Parameters

_INTO_EACH_RANK = ("allgather", "allgatherv", "bcast", "allreduce")
"""Each rank, but a root, gets everything, and in a simulation by messages only."""


def bound_s(job: Job, parameters: Parameters, collective: str, size_bytes: int, root: int) -> float:
    """Return the larger of two limits, of the measured ranks, without the background; 0: nothing is known.

    - The links: what must cross the fullest one, or the latency of the farthest way, as `palmette bound` says it.
    - A host: here no memory is shared, so all that its ranks must get comes in over its link or through its memory, and
      takes at least all of it over the capacity of both together.
    """
    machine = _core.Machine.from_json(job.cluster.topology.to_json())
    core = _core.Job(machine, "hosts=" + ",".join(job.seats))
    links_s = float(_core.bound(core, _core.collective_of(collective), size_bytes, root).seconds)
    return max(links_s, _host_bound_s(job, parameters, collective, size_bytes, root))


def _host_bound_s(job: Job, parameters: Parameters, collective: str, size_bytes: int, root: int) -> float:
    if collective not in _INTO_EACH_RANK:
        return 0.0
    ranks_of = Counter(job.seats)
    if collective == "bcast":
        ranks_of[job.seats[root]] -= 1
    each = size_bytes * (len(job.seats) - 1 if collective.startswith("allgather") else 1)
    slowest_s = 0.0
    for host in job.cluster.topology.machine.tree.hosts():
        link = host.up_bytes_per_s or parameters.unknown_bytes_per_s
        slowest_s = max(slowest_s, ranks_of[host.name] * each / (link + parameters.memory_bytes_per_s))
    return slowest_s
