"""Several sources as one topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette import _core
from palmette.discover.run import discover
from palmette.topology.file import load
from palmette.topology.found import DiscoverError
from palmette.topology.model import Topology

FIXTURE = Path(__file__).resolve().parents[2] / "data" / "fabrics" / "fat-tree.txt"


def xml(folder: Path, host: str, cores: int) -> str:
    path = folder / f"{host}.xml"
    body = "".join(f'<object type="Core" cpuset="0x{1 << core:x}"/>' for core in range(cores))
    path.write_text(
        f'<topology version="2.0"><object type="Machine"><info name="HostName" value="{host}"/>'
        f"{body}</object></topology>"
    )
    return str(path)


def insides(topology: Topology) -> dict[str, str | None]:
    return {host.name: host.inside for host in topology.machine.tree.hosts()}


def levels(topology: Topology) -> list[str]:
    return [level.name for level in topology.machine.levels]


def test_the_fabric_comes_from_one_source_and_the_inside_from_another(tmp_path: Path) -> None:
    topology = discover([("ibnetdiscover", str(FIXTURE)), ("hwloc", xml(tmp_path, "n00003.cluster", 4))])
    assert levels(topology) == ["pod", "leaf", "node", "core"]
    assert set(insides(topology).values()) == {"4core"}
    message = topology.warnings[-1].message
    assert "17 host(s) are taken to be like n00003" in message
    assert "n00000, n00001, n00002" in message
    assert "n00003, " not in message
    assert topology.fabric is not None


def test_hosts_get_the_inside_that_names_them(tmp_path: Path) -> None:
    sources = [
        ("hwloc", xml(tmp_path, "n00001", 2)),
        ("ibnetdiscover", str(FIXTURE)),
        ("hwloc", xml(tmp_path, "n00002", 8)),
    ]
    found = insides(discover(sources))
    assert (found["n00000"], found["n00001"], found["n00002"]) == ("2core", "2core", "8core")


def test_a_synthetic_host_is_an_inside_beside_a_fabric() -> None:
    topology = discover([("synthetic", "1node:2socket:4core"), ("ibnetdiscover", str(FIXTURE))])
    assert levels(topology) == ["pod", "leaf", "node", "socket", "core"]
    assert set(insides(topology).values()) == {"2socket:4core"}


def test_a_slurm_tree_takes_capacities_from_the_listing_and_tells_what_differs(tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[00000-00002]\nSwitchName=b Nodes=n00003,other\n")
    topology = discover([("slurm", str(conf)), ("ibnetdiscover", str(FIXTURE))])
    a, b = topology.machine.tree.children
    assert a.up_bytes_per_s == pytest.approx(8e9), "the same three hosts are a leaf of the listing"
    assert b.up_bytes_per_s is None
    assert [host.up_bytes_per_s for host in b.children] == [pytest.approx(4e9), None]
    messages = [note.message for note in topology.warnings]
    assert f"1 host(s) are in {conf} and not in {FIXTURE}: other" in messages
    (many,) = (
        message for message in messages if message.startswith(f"14 host(s) are in {FIXTURE} and not in {conf}: ")
    )
    assert "n00004" in many
    assert "n00000" not in many
    assert [(item.count, item.what) for item in topology.left_out] == [(14, "hosts")]


def test_hosts_known_by_their_inside_alone_are_a_machine(tmp_path: Path) -> None:
    topology = discover([("hwloc", xml(tmp_path, "a", 2)), ("hwloc", xml(tmp_path, "b", 4))])
    assert insides(topology) == {"a": "2core", "b": "4core"}
    assert levels(topology) == ["node", "core"]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "no source"),
        ([("magic", None)], '"magic" is no kind of source; choose from ibnetdiscover'),
        ([("slurm", "-"), ("ibnetdiscover", "-")], "standard input can be read by one source only"),
        ([("slurm", "/nowhere/topology.conf")], "no such file: /nowhere"),
        ([("ibnetdiscover", "/")], "/ is a directory"),
    ],
)
def test_sources_that_cant_be_used_are_errors(sources: list[tuple[str, str | None]], message: str) -> None:
    with pytest.raises(DiscoverError, match=message):
        discover(sources)


def nested(folder: Path, host: str, *kinds: str) -> str:
    """A host of 8 cores in which each kind halves the one before it."""
    body, size = "".join(f'<object type="Core" cpuset="0x{1 << core:x}"/>' for core in range(8)), 4
    for kind in kinds:
        for first in range(0, 8, size):
            body += f'<object type="{kind}" cpuset="0x{(1 << size) - 1 << first:x}"/>'
        size //= 2
    path = folder / f"{host}.xml"
    machine = f'<object type="Machine"><info name="HostName" value="{host}"/>{body}</object>'
    path.write_text(f'<topology version="2.0">{machine}</topology>')
    return str(path)


def test_a_level_that_is_outside_here_and_inside_there_is_kept_once(tmp_path: Path) -> None:
    boards, plain = nested(tmp_path, "n1", "NUMANode", "Package"), nested(tmp_path, "n2", "Package", "NUMANode")
    alone = discover([("hwloc", boards)])
    assert (levels(alone), insides(alone)) == (["node", "numa", "socket", "core"], {"n1": "2numa:2socket:2core"})
    both = discover([("hwloc", boards), ("hwloc", plain)])
    assert levels(both) == ["node", "numa", "socket", "core"]
    assert insides(both) == {"n1": "2numa:2socket:2core", "n2": "2socket:4core"}
    assert [(left.count, left.what) for left in both.left_out if left.what != "level"] == [(4, "numa groups")]
    both.save(tmp_path / "both.json")
    assert load(tmp_path / "both.json").to_json() == both.to_json()
    assert _core.Machine.from_file(tmp_path / "both.json").levels == ["node", "numa", "socket", "core"]


def test_a_level_inside_that_is_called_like_one_of_switches_is_told(tmp_path: Path) -> None:
    addresses = tmp_path / "addr.txt"
    addresses.write_text("a.n1 socket.node\nb.n2 socket.node\n")
    found = discover([("env", str(addresses)), ("hwloc", nested(tmp_path, "n1", "Package"))])
    assert levels(found) == ["socket", "node", "core"] and set(insides(found).values()) == {"8core"}
    assert [left.what for left in found.left_out if "switches" in left.reason] == ["socket groups"]
