"""A simulated job: a cluster, where the measured ranks sit on it, and what disturbs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palmette.bench.results import LOADED, EdgeLoad
from palmette.bench.traffic import Traffic, hosts_of_processes
from palmette.simulate.cluster import Cluster
from palmette.simulate.errors import SimulateError
from palmette.topology.placement import PlacementError, hosts_of_ranks


@dataclass(frozen=True, slots=True)
class Background:
    """Ranks beside the measured ones that exchange all with all, `size_bytes` for each other one in a round."""

    hosts: tuple[str, ...]
    size_bytes: int
    loads: tuple[EdgeLoad, ...] = ()
    """What they take of each link while nothing else is there: palmette is told."""


@dataclass(frozen=True, slots=True)
class Job:
    """Where the measured ranks sit, and what disturbs them."""

    cluster: Cluster
    placement: str
    seats: Sequence[str]
    background: Background | None = None


def make_job(cluster: Cluster, placement: str, ranks: int | None, background: Background | None = None) -> Job:
    """Return the job. Raises SimulateError when the ranks can't be placed."""
    try:
        seats = hosts_of_ranks(cluster.hosts, placement, ranks)
    except PlacementError as error:
        raise SimulateError(str(error)) from None
    return Job(cluster, placement + (LOADED if background else ""), seats, background)


def background_of(cluster: Cluster, traffic: Traffic) -> Background:
    """Return the background that the benchmark's `--traffic` asks for: for half of the places below each switch, or all."""
    hosts = hosts_of_processes(cluster.topology.machine.tree, dict(cluster.hosts), traffic)
    return Background(tuple(hosts), traffic.size_bytes)
