"""The platforms that palmette brings, as SimGrid gets them: switches, hosts, ranks and capacities. None is simulated
here."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from palmette_lab.simulate import cluster

Call = Callable[..., Any]
GB_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Group:
    """A switch of a written platform, with the switches or hosts below it."""

    up_bytes_per_s: float
    """Rate of the switch's uplink; 0 where it has none."""
    groups: list[Group]
    hosts: list[float]
    """The rate of each host's link."""


class StoredPlatform:
    """A platform that was written, as SimGrid reads it."""

    def __init__(self, file: Path) -> None:
        root = ElementTree.parse(file).getroot()
        self.rates = {
            link.attrib["id"]: float(link.attrib["bandwidth"].removesuffix("Bps")) for link in root.iter("link")
        }
        (whole,) = root.findall("zone")
        self.whole = self.group(whole)

    def group(self, zone: ElementTree.Element) -> Group:
        below = [inner for inner in zone.findall("zone") if not inner.attrib["id"].endswith("!core")]
        hosts = [self.rates[f"{host.attrib['id']}!up"] for host in zone.findall("host")]
        return Group(self.rates.get(f"{zone.attrib['id']}!up", 0.0), [self.group(inner) for inner in below], hosts)


@pytest.fixture
def written(tmp_path: Path, palmette_lab: Call) -> Callable[[str], Group]:
    """What stands in the file that `--write-platform` makes of a stored platform."""

    def write(name: str) -> Group:
        file = tmp_path / f"{name}.xml"
        result = palmette_lab("simulate", "--platform", name, "--write-platform", file)
        assert result.status == 0, result.err
        return StoredPlatform(file).whole

    return write


def places(name: str) -> list[int]:
    """Ranks of each host."""
    return [slots for _, slots in cluster.from_stored(name).hosts]


def hosts_below(group: Group) -> int:
    """Return the number of hosts below a group, at any depth."""
    return len(group.hosts) + sum(map(hosts_below, group.groups))


def test_every_platform_is_written_with_a_host_for_each_of_its_own(written: Callable[[str], Group]) -> None:
    for name in cluster.stored():
        assert hosts_below(written(name)) == len(places(name)), name


def test_the_gather_papers_switches_have_4_and_29_nodes_and_two_links_each(written: Callable[[str], Group]) -> None:
    first, second = written("gather-paper").groups
    assert (len(first.hosts), len(second.hosts)) == (4, 29)
    assert places("gather-paper") == [16] * 4 + [8] * 29
    assert {*first.hosts, *second.hosts} == {1.5 * GB_PER_S}
    assert first.up_bytes_per_s == second.up_bytes_per_s == 2 * 1.5 * GB_PER_S


def test_the_multi_leader_papers_8_nodes_have_four_sockets_of_four_cores(written: Callable[[str], Group]) -> None:
    whole = written("multi-leader-8")
    assert whole.groups == []
    assert whole.hosts == [1.5 * GB_PER_S] * 8
    assert places("multi-leader-8") == [16] * 8
    machine = cluster.from_stored("multi-leader-8").topology.machine
    for host in machine.tree.hosts():
        assert host.inside is not None
        (sockets,) = machine.insides[host.inside]
        (cores,) = sockets.children
        assert [(sockets.level, sockets.count), (cores.level, cores.leaves())] == [("socket", 4), ("core", 4)]


def test_the_fat_trees_leaves_have_half_of_what_their_hosts_have(written: Callable[[str], Group]) -> None:
    whole = written("fat-tree-256")
    assert places("fat-tree-256") == [16] * 256
    assert [len(pod.groups) for pod in whole.groups] == [4] * 4
    for pod in whole.groups:
        for leaf in pod.groups:
            assert len(leaf.hosts) == 16
            assert leaf.up_bytes_per_s == sum(leaf.hosts) / 2
        # Nothing is lost above.
        assert pod.up_bytes_per_s == sum(leaf.up_bytes_per_s for leaf in pod.groups)


def test_the_dragonfly_has_9_groups_of_4_routers_with_2_nodes_each(written: Callable[[str], Group]) -> None:
    whole = written("dragonfly-9")
    assert places("dragonfly-9") == [16] * 72
    assert len(whole.groups) == 9
    assert [len(group.groups) for group in whole.groups] == [4] * 9
    routers = [router for group in whole.groups for router in group.groups]
    assert [router.hosts for router in routers] == [[10 * GB_PER_S] * 2] * 36
    # Each link joins a pair instead: none is for all that leaves a group.
    assert {group.up_bytes_per_s for group in [*whole.groups, *routers]} == {0.0}


def test_rangers_64_nodes_are_behind_leaves_with_12_uplinks_and_those_behind_spines(
    written: Callable[[str], Group],
) -> None:
    whole = written("ranger-64")
    assert places("ranger-64") == [16] * 64
    spines = whole.groups
    assert [[len(chassis.hosts) for chassis in spine.groups] for spine in spines] == [[11, 11, 10]] * 2
    for spine in spines:
        for chassis in spine.groups:
            assert set(chassis.hosts) == {GB_PER_S}
            assert chassis.up_bytes_per_s == 12 * GB_PER_S
        assert spine.up_bytes_per_s == 32 * GB_PER_S
    levels = cluster.from_stored("ranger-64").topology.machine.levels
    latencies_s = {level.name: level.latency_s for level in levels}
    assert latencies_s["node"] == pytest.approx(1.57e-6)
    assert latencies_s["chassis"] == pytest.approx(2.45e-6)
    assert latencies_s["line"] == pytest.approx(2.85e-6)
