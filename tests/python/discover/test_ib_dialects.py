"""Every dialect of ibnetdiscover gives the same machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from discover.listing import discover_text, ibdiagnet, left_out, tree_of, two_leaves, up
from palmette.discover.ib_source import discover_ibnetdiscover

FIXTURES = Path(__file__).resolve().parents[2] / "data" / "fabrics"


@pytest.mark.parametrize("dialect", ["", "-p", "-g", "-s", "-f"])
def test_output_of_the_real_tool_gives_pods_leaves_and_hosts(dialect: str) -> None:
    found = discover_ibnetdiscover(str(FIXTURES / f"fat-tree{dialect}.txt"))
    tree = tree_of(found)
    assert tree["fabric"] == ["pod1", "pod2"]
    assert tree["pod1"] == ["pod0-leaf0", "pod0-leaf1", "pod0-leaf2"]
    assert tree["pod1-leaf2"] == ["n00015", "n00016", "n00017"]
    # 4xQDR is 4 GB/s: a host has one cable, a leaf two upwards, a pod two from each of its two upper switches.
    assert (up(found, "n00000"), up(found, "pod0-leaf0"), up(found, "pod1")) == (4e9, 8e9, 16e9)
    assert found.fabric is not None
    assert sorted(switch.tier or 0 for switch in found.fabric.switches) == [1] * 6 + [2] * 4 + [3] * 4
    assert not found.warnings


def test_unlinked_ports_of_the_ports_dialect_are_counted() -> None:
    assert left_out(discover_ibnetdiscover(str(FIXTURES / "fat-tree-p.txt"))) == {"unlinked ports": 12}


def test_the_dialect_of_ibdiagnet_gives_the_same_tree(tmp_path: Path) -> None:
    plain = discover_text(tmp_path, two_leaves().text())
    other = discover_text(tmp_path, ibdiagnet(two_leaves().text()))
    assert other.machine == plain.machine
    assert other.fabric == plain.fabric
    assert not other.warnings
    assert "ibdiagnet" in (other.source.detail or "")


def test_chassis_headings_and_external_ports_make_no_level(tmp_path: Path) -> None:
    text = two_leaves().text().replace("[1]\t", "[1][ext 5]\t").replace("[2]\t\t#", "[2][ext 17]\t\t#")
    grouped = "Chassis 1 (guid 0x8f10400410015)\n\nSpine 1 Chip 1\n" + text + "\nNon-Chassis Nodes\n"
    found = discover_text(tmp_path, grouped)
    assert found.machine == discover_text(tmp_path, two_leaves().text()).machine
    assert not found.warnings


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_records_and_ports_changes_nothing(tmp_path: Path, seed: int) -> None:
    fabric = two_leaves()
    fabric.switch("leaf3", name="Infiniscale-IV Mellanox Technologies")
    fabric.switch("leaf4", name="Infiniscale-IV Mellanox Technologies")
    fabric.host("n5", "leaf3", "leaf4")
    fabric.host("n6", "leaf3", "leaf4", "leaf1")
    fabric.cable("leaf3", "spine1", "4xHDR")
    fabric.cable("leaf4", "spine2", "2xHDR")
    first, other = discover_text(tmp_path, fabric.text()), discover_text(tmp_path, fabric.text(seed))
    assert other.machine == first.machine
    assert other.fabric == first.fabric
