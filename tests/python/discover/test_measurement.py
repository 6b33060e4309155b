"""Groups found by ping-pong alone: on invented clusters with noise."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import palmette
from palmette import _core
from palmette.discover.measurement import discover_measurement
from palmette.discover.measurement_groups import Groups, find_groups, split
from palmette.discover.run import discover
from palmette.measure.session import JobLine
from palmette.topology.found import DiscoverError

SCHEMA = json.loads((Path(palmette.__file__).parent / "schemas" / "topology.schema.json").read_text())


class Cluster:
    """Hosts with a path of groups each; two are as far apart as the outermost level at which their paths differ
    says."""

    def __init__(
        self, paths: Sequence[tuple[int, ...]], distances: Sequence[float], noise: float, seed: int = 5
    ) -> None:
        self.random = np.random.default_rng(seed)
        order = self.random.permutation(len(paths))
        self.paths = [paths[i] for i in order]
        self.distances = distances
        self.noise = noise
        self.asked: set[frozenset[int]] = set()

    def measure(self, centre: int, others: Sequence[int]) -> list[float]:
        self.asked |= {frozenset((centre, other)) for other in others}
        return [
            self.distance(centre, other) * math.exp(self.noise * abs(self.random.standard_normal())) for other in others
        ]

    def distance(self, a: int, b: int) -> float:
        parts = (i for i, (x, y) in enumerate(zip(self.paths[a], self.paths[b], strict=True)) if x != y)
        return self.distances[next(parts, len(self.distances) - 1)]

    def groups(self, depth: int) -> set[frozenset[int]]:
        """The groups at a level, as sets of hosts."""
        found: dict[tuple[int, ...], set[int]] = {}
        for host, path in enumerate(self.paths):
            found.setdefault(path[:depth], set()).add(host)
        return set(map(frozenset, found.values()))


def as_sets(group_of: Sequence[int]) -> set[frozenset[int]]:
    found: dict[int, set[int]] = {}
    for host, group in enumerate(group_of):
        found.setdefault(group, set()).add(host)
    return set(map(frozenset, found.values()))


def leaves(*sizes: int) -> list[tuple[int, ...]]:
    return [(leaf,) for leaf, size in enumerate(sizes) for _ in range(size)]


def pods(*sizes: Sequence[int]) -> list[tuple[int, ...]]:
    return [(pod, leaf) for pod, inner in enumerate(sizes) for leaf, size in enumerate(inner) for _ in range(size)]


def check(cluster: Cluster, found: Groups, depth: int) -> None:
    assert len(found.levels) == depth + 1
    for index in range(depth):
        assert as_sets(found.levels[index].group_of) == cluster.groups(index + 1)
    for level, distance in zip(found.levels, cluster.distances, strict=True):
        assert level.distance == pytest.approx(distance, rel=0.1 + cluster.noise)
    assert found.pairs == len(cluster.asked) <= found.all_pairs


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.08])
@pytest.mark.parametrize(
    "sizes", [(3, 3, 2), (16, 16, 16, 16), (1, 7, 2, 20), (1, 1, 6), (40, 1), (2, 2), (1, 1, 1, 2)]
)
def test_leaves_of_any_sizes_are_found_through_noise(sizes: tuple[int, ...], noise: float, seed: int) -> None:
    cluster = Cluster(leaves(*sizes), [6e-6, 2e-6], noise, seed)
    check(cluster, find_groups(len(cluster.paths), cluster.measure, seed), 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_three_levels_of_uneven_groups_are_found(noise: float, seed: int) -> None:
    cluster = Cluster(pods((4, 4, 3), (8, 1), (2, 2, 2, 2), (5,)), [20e-6, 6e-6, 2e-6], noise, seed)
    check(cluster, find_groups(len(cluster.paths), cluster.measure, seed), 2)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
def test_hosts_that_are_equally_far_are_no_groups(noise: float) -> None:
    cluster = Cluster([()] * 12, [3e-6], noise)
    found = find_groups(12, cluster.measure)
    assert len(found.levels) == 1
    assert as_sets(found.levels[0].group_of) == {frozenset([i]) for i in range(12)}


def test_noise_that_hides_the_levels_makes_no_levels_up() -> None:
    cluster = Cluster(leaves(8, 8), [2.2e-6, 2e-6], 0.3)
    found = find_groups(16, cluster.measure)
    assert len(found.levels) == 1
    assert found.noise > 0.1


def test_a_disturbance_that_outlasts_the_passes_makes_no_groups_up() -> None:
    cluster = Cluster(leaves(3, 3, 2), [5e-3, 90e-6], 0.03)
    near = next(sorted(group) for group in cluster.groups(1) if len(group) == 2)
    slow = 0

    def measure(centre: int, others: Sequence[int]) -> list[float]:
        nonlocal slow
        slow += len(set(others) & set(near)) > 0 and centre in near
        times = cluster.measure(centre, others)
        return [1.5 * t if slow <= 3 and {centre, o} == set(near) else t for t, o in zip(times, others, strict=True)]

    check(cluster, find_groups(8, measure), 1)


def test_short_times_may_be_noisier_than_long_ones() -> None:
    cluster = Cluster(leaves(3, 3, 2), [5e-3, 90e-6], 0.0)

    def measure(centre: int, others: Sequence[int]) -> list[float]:
        return [time + 40e-6 * cluster.random.exponential() for time in cluster.measure(centre, others)]

    for seed in range(20):
        found = find_groups(8, measure, seed)
        assert [as_sets(level.group_of) for level in found.levels] == [
            cluster.groups(1),
            {frozenset([i]) for i in range(8)},
        ]


def test_single_disturbed_measurements_change_nothing() -> None:
    cluster = Cluster(leaves(6, 6, 6), [6e-6, 2e-6], 0.02)
    calls = 0

    def disturbed(centre: int, others: Sequence[int]) -> list[float]:
        nonlocal calls
        calls += 1
        times = cluster.measure(centre, others)
        if calls % 3 == 0:
            times[calls % len(times)] *= 30
        return times

    check(cluster, find_groups(18, disturbed), 1)


def test_pairs_grow_with_groups_and_not_with_the_square_of_the_hosts() -> None:
    cluster = Cluster(pods(*[[32] * 8] * 4), [20e-6, 6e-6, 2e-6], 0.03)
    found = find_groups(1024, cluster.measure)
    check(cluster, found, 2)
    assert found.pairs < 0.06 * found.all_pairs


def test_classes_end_at_gaps() -> None:
    assert split(np.array([5.0, 1.0, 1.1, 5.5, 20.0]), lambda _: 1.5) == [[1, 2], [0, 3], [4]]
    assert split(np.array([1.0, 1.4, 5.0, 7.0]), lambda length: 1.5 if length < 2 else 1.3) == [[0, 1], [2], [3]]
    assert split(np.array([1.0]), lambda _: 1.5) == [[0]]
    with pytest.raises(ValueError, match="1 hosts have no distances"):
        find_groups(1, lambda centre, others: [])


class Job:
    """Answers `star` for ranks on the hosts of a cluster; `rates` in bytes/s by level, as the cluster's distances."""

    def __init__(self, cluster: Cluster, ranks: int, rates: Sequence[float] = ()) -> None:
        self.cluster, self.ranks = cluster, ranks
        self.rates = Cluster(cluster.paths, [1 / rate for rate in rates], cluster.noise) if rates else None
        if self.rates:
            self.rates.paths = cluster.paths

    def ask(self, what: str, numbers: Sequence[float], pairs: Sequence[tuple[int, int]], seconds: float = 1) -> Any:
        assert what == "star"
        hosts = [(a // self.ranks, b // self.ranks) for a, b in pairs]
        times = [self._time(a, b, numbers[0]) if a != b else 4e-7 for a, b in hosts]
        return [[time, time, time] for time in times]

    def _time(self, a: int, b: int, size_bytes: float) -> float:
        moving_s = size_bytes * self.rates.measure(a, [b])[0] if self.rates and size_bytes > 1 else 0.0
        return self.cluster.measure(a, [b])[0] + moving_s


def job_line(hosts: int, ranks: int) -> JobLine:
    names = [f"n{host:03}" for host in range(hosts) for _ in range(ranks)]
    return JobLine("MPICH 5.0.2", names, names, [-1] * len(names))


def test_what_is_found_is_a_topology_that_fits_the_schema_and_makes_jobs() -> None:
    cluster = Cluster(pods((4, 4, 3), (8, 1)), [20e-6, 6e-6, 2e-6], 0.02)
    found = discover_measurement(Job(cluster, 2), job_line(20, 2))
    topology = discover([("measurement", None)], ready={"measurement": found})
    document = topology.to_json()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document)))
    assert [level.name for level in topology.machine.levels] == ["pod", "leaf", "node", "core"]
    assert [level.latency_s for level in topology.machine.levels] == pytest.approx([20e-6, 6e-6, 2e-6, 4e-7], rel=0.05)
    by_leaf = {
        frozenset(int(host.name[1:]) for host in node.hosts())
        for node in topology.machine.tree.walk()
        if node.level == "leaf"
    }
    assert by_leaf == cluster.groups(2)
    job = _core.Job.on_hosts(_core.Machine.from_json(document), list(job_line(20, 2).hosts))
    assert [(level.name, level.count) for level in job.levels] == [("pod", 2), ("leaf", 5), ("node", 20)]
    detail = found.source.detail or ""
    assert "20 hosts" in detail and "of 190 pairs" in detail and f"palmette {palmette.__version__}" in detail


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_equally_near_hosts_are_told_apart_by_narrower_links(noise: float) -> None:
    cluster = Cluster(leaves(3, 3, 2), [130e-6, 130e-6], noise)
    found = discover_measurement(Job(cluster, 2, [6e6, 12e6]), job_line(8, 2))
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == ["leaf", "node", "core"]
    assert {frozenset(int(host.name[1:]) for host in leaf.hosts()) for leaf in found.machine.tree.children} == (
        cluster.groups(1)
    )
    rates = [level.stream_bytes_per_s for level in found.machine.levels[:2]]
    assert rates == pytest.approx([6e6, 12e6], rel=0.1 + 2 * noise)
    assert re.search(r"us ±[\d.]+%, [\d.]+ MB/s ±[\d.]+%", found.source.detail or "")


def test_levels_of_nearness_and_of_rates_are_put_together() -> None:
    """Leaves of a pod are told apart by nearness alone, pods by rates alone."""
    cluster = Cluster(pods((4, 4), (4, 4)), [6e-6, 6e-6, 2e-6], 0.02)
    found = discover_measurement(Job(cluster, 1, [2e9, 12e9, 12e9]), job_line(16, 1))
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == ["pod", "leaf", "node"]
    pods_found = [frozenset(int(host.name[1:]) for host in pod.hosts()) for pod in found.machine.tree.children]
    assert set(pods_found) == cluster.groups(1)


@pytest.mark.parametrize(("rate", "kind"), [(2.0, "tiny"), (9.0, "long")])
def test_where_groups_cross_the_surer_ones_are_taken_and_that_is_told(rate: float, kind: str) -> None:
    near, wide = Cluster(leaves(2, 2), [6e-6, 2e-6], 0.0), Cluster(leaves(2, 2), [rate * 1e-9, 1e-9], 0.0)
    near.paths, wide.paths = [(0,), (0,), (1,), (1,)], [(0,), (1,), (0,), (1,)]
    job = Job(near, 1)
    job.rates = wide
    found = discover_measurement(job, job_line(4, 1))
    assert found.machine is not None
    chosen = near if kind == "tiny" else wide
    assert {frozenset(int(host.name[1:]) for host in leaf.hosts()) for leaf in found.machine.tree.children} == (
        chosen.groups(1)
    )
    assert any(f"groups by {kind} messages only" in note.message for note in found.warnings)


def test_more_than_two_levels_of_switches_have_numbered_names() -> None:
    paths = [(a, b, c) for a in range(2) for b in range(2) for c in range(2) for _ in range(3)]
    cluster = Cluster(paths, [90e-6, 20e-6, 6e-6, 2e-6], 0.01)
    found = discover_measurement(Job(cluster, 1), job_line(24, 1))
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == ["tier3", "tier2", "leaf", "node"]


def test_a_job_of_one_rank_or_one_host_is_refused() -> None:
    cluster = Cluster(leaves(2), [2e-6, 1e-6], 0.0)
    with pytest.raises(DiscoverError, match=r"a job of 1 rank has no pair to measure"):
        discover_measurement(Job(cluster, 1), job_line(1, 1))
    with pytest.raises(DiscoverError, match=r"all 4 ranks are on n000, .*--from hwloc"):
        discover_measurement(Job(cluster, 4), job_line(1, 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "measurement"), "say where to run"),
        (("--from", "measurement:file"), "measurement takes no file but a job"),
        (
            ("--from", "synthetic", "2node", "mpiexec", "-n", "4"),
            "only --from measurement runs a job; leave out -- mpiexec -n 4",
        ),
        (("--from", "measurement", "--lab", "nobody"), "the lab 'nobody' is not up"),
        (("--from", "measurement", "--", "nompiexec", "-n", "2"), "nompiexec: no such program"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(
    palmette_lab: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    result = palmette_lab("discover", *arguments)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("palmette-lab discover: ")
    assert message in result.err
