"""A simulated job: a cluster, the placement of the measured ranks, and background traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palmette import _core
from palmette.bench.results import LOADED, EdgeLoad
from palmette.topology.placement import PlacementError, hosts_of_ranks
from palmette_lab.simulate.cluster import Cluster
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.platform import service_host
from palmette_lab.traffic import Traffic, hosts_of_processes


@dataclass(frozen=True, slots=True)
class Background:
    """Background traffic: additional ranks that run an all-to-all with blocks of `size_bytes` in rounds."""

    hosts: tuple[str, ...]
    size_bytes: int
    loads: tuple[EdgeLoad, ...] = ()
    """The load of each link by this traffic alone, which palmette gets in its topology."""


@dataclass(frozen=True, slots=True)
class Job:
    """The placement of the measured ranks, and the background traffic."""

    cluster: Cluster
    placement: str
    seats: Sequence[str]
    background: Background | None = None

    def services(self) -> tuple[str, ...]:
        """The hosts of the aggregators that serve the ranks, in the order of palmette's service positions.

        None beside background traffic.
        """
        machine = self.cluster.topology.machine
        if self.background or len(self.seats) < 2 or not any(group.aggregators for group in machine.tree.walk()):
            return ()
        core = _core.Job(_core.Machine.from_json(self.cluster.topology.to_json()), "hosts=" + ",".join(self.seats))
        return tuple(service_host(one.name) for one in core.aggregators)


def make_job(cluster: Cluster, placement: str, ranks: int | None, background: Background | None = None) -> Job:
    """Return the job. Raises SimulateError when the ranks can't be placed."""
    try:
        seats = hosts_of_ranks(cluster.hosts, placement, ranks)
    except PlacementError as error:
        raise SimulateError(str(error)) from None
    return Job(cluster, placement + (LOADED if background else ""), seats, background)


def background_of(cluster: Cluster, traffic: Traffic) -> Background:
    """Return the background of the benchmark's `--traffic`: on half of the places below each switch, or on all."""
    hosts = hosts_of_processes(cluster.topology.machine.tree, dict(cluster.hosts), traffic)
    return Background(tuple(hosts), traffic.size_bytes)
