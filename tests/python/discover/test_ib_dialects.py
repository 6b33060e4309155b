"""Every dialect of ibnetdiscover gives the same machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discover.listing import Listing, discover_text, ibdiagnet, left_out, tree_of, two_leaves, up
from palmette import _core
from palmette.discover.ib_source import discover_ibnetdiscover
from palmette.topology.model import Topology

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


def directors(*, spines: bool, across: bool = True) -> tuple[Listing, str]:
    """Two directors of three line boards with hosts, and two rack switches; and the listing with headings.

    Line boards of a director are connected by its own spine boards, or by switches outside of it.
    """
    fabric = Listing()
    boards: dict[int, list[str]] = {1: [], 2: []}
    for chassis, own in boards.items():
        own += [f"c{chassis}line{line}" for line in range(1, 4)]
        own += [f"c{chassis}spine1"] if spines else []
        for board in own:
            fabric.switch(board, ports=36)
    for switch in ("rack1", "rack2", "core1"):
        fabric.switch(switch)
    for chassis in boards:
        for line in range(1, 4):
            for host in range(2):
                fabric.host(f"n{chassis}{line}{host}", f"c{chassis}line{line}")
            if spines:
                fabric.cable(f"c{chassis}line{line}", f"c{chassis}spine1", count=2)
            # Boards go to the core themselves, so that switches up to their tier don't make a group of them.
            fabric.cable(f"c{chassis}line{line}", "core1")
    for rack in ("rack1", "rack2"):
        for host in range(2):
            fabric.host(f"{rack}n{host}", rack)
        fabric.cable(rack, "core1", count=2)
    if spines and across:
        fabric.cable("c1spine1", "c2spine1")
    records = {key: fabric.record(key) for key in fabric.devices}
    parts = [f"Chassis {c} (guid 0x{c:x})\n\n" + "\n".join(records.pop(board) for board in boards[c]) for c in boards]
    return fabric, "\n".join([*parts, "Non-Chassis Nodes\n", *records.values()])


def test_a_chassis_whose_boards_connect_several_leaves_is_a_level(tmp_path: Path) -> None:
    fabric, grouped = directors(spines=True)
    plain, found = discover_text(tmp_path, fabric.text()), discover_text(tmp_path, grouped)
    assert plain.machine is not None and found.machine is not None
    assert "chassis" not in [level.name for level in plain.machine.levels]
    names = [level.name for level in found.machine.levels]
    assert names[-3:] == ["chassis", "leaf", "node"]
    chassis = [node for node in found.machine.tree.walk() if node.level == "chassis"]
    assert [sorted(host.name for host in node.hosts()) for node in chassis] == [
        sorted(f"n{c}{line}{host}" for line in range(1, 4) for host in range(2)) for c in (1, 2)
    ]
    # Three cables of boards to the core, and one between the spine boards, of EDR.
    assert [node.up_bytes_per_s for node in chassis] == [4 * 12.5e9, 4 * 12.5e9]
    assert sorted(h.name for h in found.machine.tree.hosts()) == sorted(h.name for h in plain.machine.tree.hosts())
    assert sum(len(node.switches) for node in chassis) == 2, "the spine boards"
    _core.Machine.from_json(json.dumps(Topology("x", found.machine).to_json()))


def test_boards_that_only_meet_outside_of_their_chassis_are_no_level(tmp_path: Path) -> None:
    fabric, grouped = directors(spines=False)
    assert discover_text(tmp_path, grouped).machine == discover_text(tmp_path, fabric.text()).machine


def test_headings_over_single_switches_are_no_level(tmp_path: Path) -> None:
    fabric, _ = directors(spines=True)
    headed = "\n".join(f"Chassis {n} (guid 0x{n:x})\n\n{fabric.record(key)}" for n, key in enumerate(fabric.devices))
    assert discover_text(tmp_path, headed).machine == discover_text(tmp_path, fabric.text()).machine


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


def test_boards_of_a_director_are_the_switches_that_ibdiagnet_tells_in_brackets(tmp_path: Path) -> None:
    # Two leaf boards and a spine board of one system: its GUID stands first, the board's in brackets.
    def board(guid: int, name: str, links: list[str]) -> list[str]:
        head = ["vendid=0x000002c9", "devid=0xd2f0", "sysimgguid=0xabc0", f"switchguid=0xabc0({guid:x})"]
        return [*head, f'Switch 36 "S-{guid:016x}" # "{name}" enhanced port 0 lid 1 lmc 0', *links, ""]

    lines = ["# This database file was automatically generated by IBDIAG"]
    lines += board(
        0xABC1,
        "director/L1",
        [
            '[1] "S-000000000000abc3"[1] # "director/S1" lid 3 4xEDR',
            '[2] "H-0000000000000a01"[1] # "n1 mlx5_0" lid 5 4xEDR',
        ],
    )
    lines += board(
        0xABC2,
        "director/L2",
        [
            '[1] "S-000000000000abc3"[2] # "director/S1" lid 3 4xEDR',
            '[2] "H-0000000000000a02"[1] # "n2 mlx5_0" lid 6 4xEDR',
        ],
    )
    lines += board(
        0xABC3,
        "director/S1",
        [
            '[1] "S-000000000000abc1"[1] # "director/L1" lid 1 4xEDR',
            '[2] "S-000000000000abc2"[1] # "director/L2" lid 2 4xEDR',
        ],
    )
    for number, (leaf, lid) in enumerate((("abc1", 1), ("abc2", 2)), 1):
        lines += [
            "vendid=0x000002c9",
            f"sysimgguid=0xa0{number}",
            f"caguid=0xa0{number}",
            f'Ca 1 "H-0000000000000a0{number}" # "n{number} mlx5_0"',
            f'[1] "S-000000000000{leaf}"[2] # lid {lid} lmc 0 "director" lid 1 4xEDR',
            "",
        ]
    found = discover_text(tmp_path, "\n".join(lines))
    assert found.fabric is not None
    assert sorted(switch.id for switch in found.fabric.switches) == [f"S-000000000000abc{n}" for n in (1, 2, 3)]
    assert not any("switches" in left.what for left in found.left_out), "no phantoms without links"
