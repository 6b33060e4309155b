"""The noise of real listings: none of it changes the machine, all that counts is told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from discover.listing import Listing, discover_text, left_out, tree_of, two_leaves, up
from palmette.discover.merge import merge
from palmette.topology.file import load
from palmette.topology.found import DiscoverError

CLEAN = two_leaves().text()


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a byte order mark", b"\xef\xbb\xbf" + CLEAN.encode()),
        ("UTF-16", CLEAN.encode("utf-16")),
        ("CRLF", CLEAN.replace("\n", "\r\n").encode()),
        ("blanks for tabs", CLEAN.replace("\t", "   ").encode()),
        ("no blank lines", "\n".join(line for line in CLEAN.splitlines() if line).encode()),
        ("an empty lid", CLEAN.replace("lid 7 ", "lid  ").encode()),
        ("missing zeros in GUIDs", CLEAN.replace("-0c42", "-c42").encode()),
        ("trailing blanks", CLEAN.replace("\n", "  \n").encode()),
        ("progress lines", b'DR path slid 0; dlid 0; 0,1 -> new Switch {0} portnum 0 lid 0-0 ""\n' + CLEAN.encode()),
    ],
)
def test_harmless_noise_changes_nothing_and_warns_of_nothing(tmp_path: Path, what: str, text: bytes) -> None:
    clean = discover_text(tmp_path, CLEAN)
    found = discover_text(tmp_path, text)
    assert found.machine == clean.machine, what
    assert found.warnings == [], what


@pytest.mark.parametrize("first", ["[root@head ~]# ibnetdiscover", "ibwarn: [123] mad_rpc: _do_madrpc failed"])
def test_a_prompt_or_message_on_line_1_is_skipped_and_told(tmp_path: Path, first: str) -> None:
    found = discover_text(tmp_path, f"{first}\n{CLEAN}")
    assert found.machine == discover_text(tmp_path, CLEAN).machine
    assert [note.line for note in found.warnings] == [1]


def test_a_damaged_port_costs_a_warning_with_its_line_and_the_other_end_tells_the_cable(tmp_path: Path) -> None:
    lines = CLEAN.splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith("[1]") and "n1 " in line)
    lines[number] = lines[number].replace('"H-', '"H  -', 1)
    found = discover_text(tmp_path, "\n".join(lines))
    assert [note.line for note in found.warnings] == [number + 1]
    assert found.machine == discover_text(tmp_path, CLEAN).machine


def test_a_damaged_header_keeps_its_ports_and_takes_none_from_its_neighbour(tmp_path: Path) -> None:
    lines = CLEAN.splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith("Switch") and "leaf2" in line)
    lines[number] = 'Switch\t36 "S-0c42a1'
    found = discover_text(tmp_path, "\n".join(lines))
    assert [note.line for note in found.warnings] == [number + 1]
    # Its peers still know its name.
    assert tree_of(found) == tree_of(discover_text(tmp_path, CLEAN))


@pytest.mark.parametrize("cut", [5, 30, 60, 90])
def test_a_truncated_last_line_costs_at_most_one_warning(tmp_path: Path, cut: int) -> None:
    found = discover_text(tmp_path, CLEAN.rstrip("\n")[:-cut])
    assert tree_of(found) == tree_of(discover_text(tmp_path, CLEAN))
    assert len(found.warnings) <= 1


def test_a_stray_byte_in_a_description_costs_nothing(tmp_path: Path) -> None:
    found = discover_text(tmp_path, CLEAN.encode().replace(b"mlx5_0", b"mlx\xff_0"))
    assert tree_of(found) == tree_of(discover_text(tmp_path, CLEAN))


def test_many_damaged_lines_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    found = discover_text(tmp_path, CLEAN + "garbage here\n" * 500)
    assert len(found.warnings) == 21
    assert "480 more" in found.warnings[-1].message


def test_self_loops_unlinked_adapters_and_routers_make_no_level_and_are_counted(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.cable("leaf1", "leaf1", count=3)
    fabric.host("lonely")
    fabric.add("Rt", "router", "SX6036G router")
    fabric.cable("router", "spine1")
    fabric.cable("router", "leaf1")
    found = discover_text(tmp_path, fabric.text())
    assert found.machine == discover_text(tmp_path, CLEAN).machine
    assert left_out(found) == {"self-loop cables": 3, "adapters without a link": 1, "routers": 1}


def test_a_router_with_a_name_like_a_host_is_no_host(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.add("Rt", "r1", "r1 router")
    fabric.cable("r1", "leaf1")
    assert "r1" not in tree_of(discover_text(tmp_path, fabric.text()))["leaf1"]


def test_a_range_extender_is_part_of_a_cable(tmp_path: Path) -> None:
    fabric = Listing()
    for switch in ("leaf1", "leaf2", "spine1"):
        fabric.switch(switch)
    fabric.host("n1", "leaf1")
    fabric.host("n2", "leaf2")
    fabric.cable("leaf1", "spine1", "4xEDR")
    for extender in ("far1", "far2"):
        fabric.switch(extender, name="Longbow XR", ports=2)
    fabric.cable("leaf2", "far1", "4xEDR")
    fabric.cable("far1", "far2", "4xSDR")
    fabric.cable("far2", "spine1", "4xEDR")
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found) == {"fabric": ["leaf1", "leaf2"], "leaf1": ["n1"], "leaf2": ["n2"]}
    assert up(found, "leaf2") == pytest.approx(1e9), "the slowest piece of the way counts"
    assert left_out(found) == {"range extenders": 2}
    assert found.fabric is not None
    assert len(found.fabric.switches) == 3


def test_aggregation_nodes_are_no_hosts_and_mark_their_switch(tmp_path: Path) -> None:
    fabric = two_leaves()
    for switch in ("leaf1", "spine1", "spine2"):
        fabric.host(f"an-{switch}", switch, name="Mellanox Technologies Aggregation Node")
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found) == tree_of(discover_text(tmp_path, CLEAN))
    assert found.machine is not None
    can = {node.name: node.can_reduce for node in found.machine.tree.walk() if node.level != "node"}
    assert can == {"fabric": True, "leaf1": True, "leaf2": False}
    assert left_out(found) == {"aggregation nodes": 3}


@pytest.mark.parametrize(
    "name", ["MT4129 ConnectX7   Mellanox Technologies", "MT25408 ConnectX Mellanox", "localhost HCA-1", "mlx5_0", ""]
)
def test_adapters_without_a_hosts_name_are_told_and_kept_aside(tmp_path: Path, name: str) -> None:
    fabric = two_leaves()
    fabric.host("x1", "leaf1", name=name)
    fabric.host("x2", "leaf2", name=name)
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found) == tree_of(discover_text(tmp_path, CLEAN))
    assert sum(left_out(found).values()) == 2
    assert found.fabric is not None
    assert found.fabric.unnamed_adapters == [fabric.id("x1"), fabric.id("x2")]
    assert {link.b for link in found.fabric.links} >= {fabric.id("x1"), fabric.id("x2")}


def test_an_unnamed_adapter_joins_the_host_of_the_same_card(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.add("Ca", "a", "n9 mlx5_0", 1, system=0xABC)
    fabric.add("Ca", "b", "MT4129 ConnectX7 Mellanox Technologies", 1, system=0xABC)
    fabric.cable("a", "leaf1")
    fabric.cable("b", "leaf1")
    found = discover_text(tmp_path, fabric.text())
    assert up(found, "n9") == pytest.approx(25e9)
    assert found.fabric is not None
    assert found.fabric.unnamed_adapters == []


def test_a_node_name_map_may_name_an_adapter_but_never_rename_one(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.host("x1", "leaf1", name="MT4129 ConnectX7 Mellanox Technologies")
    text = fabric.text()
    # The map shows in the switch's lines only, as in the real tool.
    text = text.replace(
        f'"{fabric.id("x1")}"[1]({fabric.guid("x1") + 1:x}) \t\t# "MT4129 ConnectX7 Mellanox Technologies"',
                        f'"{fabric.id("x1")}"[1]({fabric.guid("x1") + 1:x}) \t\t# "n77 mlx5_0"')  # fmt: skip
    text = text.replace('# "n1 mlx5_0" lid', '# "mapped1 mlx5_0" lid')
    assert tree_of(discover_text(tmp_path, text))["leaf1"] == ["n1", "n2", "n77"]


def test_a_fabric_without_any_name_is_still_a_tree_under_guids(tmp_path: Path) -> None:
    fabric = Listing()
    fabric.switch("leaf1")
    fabric.host("x1", "leaf1", name="MT23108 InfiniHost Mellanox Technologies")
    fabric.host("x2", "leaf1", name="MT23108 InfiniHost Mellanox Technologies")
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found)["leaf1"] == [fabric.id("x1"), fabric.id("x2")]
    assert "rdma-ndd" in found.warnings[0].message


def test_ends_that_disagree_on_the_rate_are_told_and_the_slower_one_counts(tmp_path: Path) -> None:
    text = CLEAN.replace('"n1 mlx5_0" lid 7 4xEDR', '"n1 mlx5_0" lid 7 1xEDR')
    found = discover_text(tmp_path, text)
    assert up(found, "n1") == pytest.approx(3.125e9)
    assert "1 cable(s)" in found.warnings[0].message


def test_unknown_rates_leave_the_capacity_open(tmp_path: Path) -> None:
    found = discover_text(tmp_path, CLEAN.replace(" 4xEDR", "").replace("4xHDR", "4x???"))
    assert up(found, "n1") is None
    assert up(found, "leaf1") is None
    assert left_out(found) == {"link rates": 12}


@pytest.mark.parametrize(
    "text",
    ["", "bash: ibnetdiscover: command not found\n", "<html><body>404</body></html>\n", "\x00\x01\x02" * 50,
     'vendid=0x2c9\ncaguid=0xb8\nCa\t1 "H-b8"\t\t# "n1 HCA-1"\n'],
)  # fmt: skip
def test_what_is_no_fabric_gets_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(DiscoverError, match=r"no fabric in it: .*fabric\.txt; make the file with"):
        discover_text(tmp_path, text)


def test_a_list_of_nodes_is_told_from_a_listing_of_links(tmp_path: Path) -> None:
    with pytest.raises(DiscoverError, match="without -l"):
        discover_text(tmp_path, 'Switch\t: 0x0002c90000000001 ports 36 devid 0xbd36 vendid 0x2c9 "sw1"\n')


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_costs_warnings_or_one_error_and_what_is_left_is_a_valid_file(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    text = list(CLEAN)
    for _ in range(generator.choice([1, 10, 100, 1000])):
        at = generator.randrange(len(text))
        if generator.random() < 0.5:
            text[at] = generator.choice('0aZ"[]()#- \n\t\0xS')
        elif generator.random() < 0.5:
            del text[at : at + generator.choice([1, 30])]
        else:
            text[at:at] = text[generator.randrange(len(text)) :][: generator.choice([1, 300])]
    try:
        found = discover_text(tmp_path, "".join(text))
    except DiscoverError:
        return
    topology = merge([found], "damaged")
    topology.save(tmp_path / "topology.json")
    assert load(tmp_path / "topology.json") == topology
