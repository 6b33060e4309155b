"""Where the ranks are."""

from __future__ import annotations

import os
from collections import Counter

from mpi4py import MPI

from palmette import _core


def job_of(comm: MPI.Comm) -> _core.Job:
    """Return the ranks on hosts as the MPI names them, and on leaves where PALMETTE_TOPOLOGY tells of these hosts.

    PALMETTE_FAKE_HOSTS pretends hosts here as it does for palmette. Collective.
    """
    pretended = os.environ.get("PALMETTE_FAKE_HOSTS", "").split(",")
    name = pretended[comm.rank % len(pretended)] or MPI.Get_processor_name()
    hosts = comm.allgather(f"h{name}" if name.isdecimal() else name)
    if file := os.environ.get("PALMETTE_TOPOLOGY"):
        return _core.Job.on_hosts(_core.Machine.from_file(file), hosts)
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return _core.Job.from_groups(["node"], [[numbers[host]] for host in hosts])


def ranks_a_host(job: _core.Job) -> int:
    """Return how many ranks a host has; where they differ, the fullest one."""
    node = job.level("node")
    groups = [node.group_of(position) for position in range(job.size)] if node else [0] * job.size
    return max(Counter(groups).values())
