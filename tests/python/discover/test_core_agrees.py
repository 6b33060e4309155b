"""The C++ core reads what discovery writes, and gives the same machine for a synthetic form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.discover.run import discover
from palmette.topology.file import TopologyError, load
from palmette.topology.model import InsideGroup, Topology

FIXTURES = Path(__file__).resolve().parents[2] / "data" / "fabrics"


def slots(topology: Topology) -> int:
    insides = topology.machine.insides
    return sum(
        places(insides[host.inside]) if host.inside else host.slots or 1 for host in topology.machine.tree.hosts()
    )


def places(groups: list[InsideGroup]) -> int:
    return sum(group.leaves() for group in groups)


def tree(node: dict[str, Any]) -> tuple[object, ...]:
    """What both sides must say of a group; names of insides and default slots are theirs to choose."""
    children = tuple(tree(child) for child in node.get("children", []))
    return (node.get("name"), node.get("level"), node.get("up_bytes_per_s"), bool(node.get("can_reduce")), children)


@pytest.mark.parametrize(
    "sources",
    [
        [("ibnetdiscover", str(FIXTURES / "fat-tree.txt"))],
        [("ibnetdiscover", str(FIXTURES / "fat-tree-p.txt")), ("synthetic", "1node:2socket:2numa:3core")],
        [("hwloc", None)],
    ],
)
def test_the_core_reads_discovered_files(tmp_path: Path, sources: list[tuple[str, str | None]]) -> None:
    topology = discover(sources)
    topology.save(tmp_path / "topology.json")
    machine = _core.Machine.from_file(str(tmp_path / "topology.json"))
    assert machine.total_slots == slots(topology)
    document = machine.to_json()
    assert tree(document["tree"]) == tree(topology.to_json()["machine"]["tree"])


def test_the_core_reads_real_fabrics(tmp_path: Path, fabrics: Path) -> None:
    for kind, name in (
        ("ibnetdiscover", "topograph.txt"),
        ("ibnetdiscover", "qdr-2014.txt"),
        ("slurm", "slurm-testcase2.conf"),
    ):
        topology = discover([(kind, str(fabrics / name))])
        topology.save(tmp_path / "topology.json")
        assert _core.Machine.from_file(str(tmp_path / "topology.json")).total_slots == slots(topology)


@pytest.mark.parametrize(
    "form",
    [
        "2leaf:4node:2socket:4core",
        "3leaf@50Mbit/s~5ms:3+3+2node@100Mbit/s:2core",
        "2leaf:4core",
        "2pod@1GB/s:2+1leaf@100MB/s:1+2node:1+2socket:2+3core",
        "5node",
        "aggregator@400Mbit/s+aggregator:2leaf@50Mbit/s+aggregator@1GB/s:2node",
    ],
)
def test_a_synthetic_form_means_the_same_to_both(form: str) -> None:
    mine = discover([("synthetic", form)])
    core = _core.Machine.synthetic(form)
    document = core.to_json()
    levels = [(level["name"], level.get("latency_s")) for level in document["levels"]]
    assert levels == [(level.name, level.latency_s) for level in mine.machine.levels]
    assert tree(document["tree"]) == tree(mine.to_json()["machine"]["tree"])
    assert core.total_slots == slots(mine)


def test_both_readers_refuse_more_levels_than_any_cluster_has(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    for count in (64, 65):
        names = [*(f"l{number}" for number in range(count - 1)), "node"]
        tree: dict[str, Any] = {"name": "n1", "level": "node"}
        for name in reversed(names[:-1]):
            tree = {"name": name, "level": name, "children": [tree]}
        machine = {"levels": [{"name": name} for name in names], "tree": {"name": "fabric", "children": [tree]}}
        path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}))
        if count == 64:
            assert len(load(path).machine.levels) == len(_core.Machine.from_file(path).levels) == 64
            continue
        with pytest.raises(TopologyError, match="65 levels; leave out all but 64"):
            load(path)
        with pytest.raises(_core.Error, match="65 levels; leave out all but 64"):
            _core.Machine.from_file(path)
