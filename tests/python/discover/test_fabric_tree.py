"""From a graph of switches to the tree of the machine: rails, upper hosts, islands, tiers."""

from __future__ import annotations

from pathlib import Path

import pytest

from discover.listing import Listing, discover_text, tree_of, two_leaves, up


def test_parallel_cables_are_summed_on_the_way_up(tmp_path: Path) -> None:
    found = discover_text(tmp_path, two_leaves().text())
    assert up(found, "n1") == pytest.approx(12.5e9)
    assert up(found, "leaf1") == pytest.approx(4 * 25e9)
    assert found.fabric is not None
    trunk = next(link for link in found.fabric.links if link.a.startswith("S-") and link.b.startswith("S-"))
    assert (trunk.count, trunk.width, trunk.speed) == (2, 4, "HDR")
    assert trunk.bytes_per_s == pytest.approx(50e9)


def test_hosts_of_several_rails_stand_under_the_group_of_their_leaves(tmp_path: Path) -> None:
    fabric = Listing()
    for switch in ("a1", "b1", "a2", "b2", "spine"):
        fabric.switch(switch)
    for number in range(8):
        side = "1" if number < 4 else "2"
        fabric.host(f"n{number}x", f"a{side}", name=f"n{number} mlx5_0")
        # n2's second adapter is missing: one lost card must not tear the group apart.
        if number != 2:
            fabric.host(f"n{number}y", f"b{side}", name=f"n{number} mlx5_1")
    for leaf in ("a1", "b1", "a2", "b2"):
        fabric.cable(leaf, "spine", "4xHDR")
    found = discover_text(tmp_path, fabric.text())
    tree = tree_of(found)
    assert tree["fabric"] == ["a1 +1", "a2 +1"]
    assert tree["a1 +1"] == ["n0", "n1", "n2", "n3"]
    assert up(found, "a1 +1") == pytest.approx(50e9)
    assert up(found, "n0") == pytest.approx(25e9)
    assert up(found, "n2") == pytest.approx(12.5e9)


def test_one_host_at_two_leaves_does_not_merge_them(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.host("login", "leaf1", "leaf2", "leaf2")
    found = discover_text(tmp_path, fabric.text())
    tree = tree_of(found)
    assert tree["leaf1"] == ["n1", "n2"]
    assert tree["leaf2"] == ["login", "n3", "n4"], "it stands where it has most capacity"
    assert any("1 host(s) are connected to leaves of several groups" in note.message for note in found.warnings)


def three_tiers() -> Listing:
    """2 pods of 2 leaves with 4 hosts each, 2 upper switches a pod, 2 cores."""
    fabric = Listing()
    for core in ("core1", "core2"):
        fabric.switch(core)
    for pod in "ab":
        for number in "12":
            fabric.switch(f"{pod}-agg{number}")
            fabric.cable(f"{pod}-agg{number}", "core1")
            fabric.cable(f"{pod}-agg{number}", "core2")
        for number in "12":
            leaf = f"{pod}-leaf{number}"
            fabric.switch(leaf)
            fabric.cable(leaf, f"{pod}-agg1")
            fabric.cable(leaf, f"{pod}-agg2")
            for host in range(4):
                fabric.host(f"{pod}{number}{host}", leaf)
    return fabric


PODS = {"fabric": ["pod1", "pod2"], "pod1": ["a-leaf1", "a-leaf2"], "pod2": ["b-leaf1", "b-leaf2"]}


def groups(tree: dict[str, list[str]]) -> dict[str, list[str]]:
    return {
        name: [c for c in children if c in tree or name == "fabric"]
        for name, children in tree.items()
        if "leaf" not in name
    }


def test_three_tiers_give_pods(tmp_path: Path) -> None:
    found = discover_text(tmp_path, three_tiers().text())
    assert groups(tree_of(found)) == PODS
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == ["pod", "leaf", "node"]
    assert up(found, "pod1") == pytest.approx(4 * 12.5e9)


@pytest.mark.parametrize("place", ["core1", "a-agg1"])
def test_a_lone_host_at_an_upper_switch_does_not_pull_the_tiers_down(tmp_path: Path, place: str) -> None:
    fabric = three_tiers()
    fabric.host("ufm", place)
    found = discover_text(tmp_path, fabric.text())
    tree = tree_of(found)
    where = "fabric" if place == "core1" else "pod1"
    assert "ufm" in tree[where]
    assert tree["pod2"] == ["b-leaf1", "b-leaf2"]
    assert found.fabric is not None
    tiers = {switch.name: switch.tier for switch in found.fabric.switches}
    assert (tiers["core1"], tiers["a-agg1"], tiers["a-leaf1"]) == (3, 2, 1)


def test_a_leaf_with_a_single_host_is_still_a_leaf(tmp_path: Path) -> None:
    fabric = three_tiers()
    fabric.switch("b-leaf3")
    fabric.cable("b-leaf3", "b-agg1")
    fabric.cable("b-leaf3", "b-agg2")
    fabric.host("alone", "b-leaf3")
    assert tree_of(discover_text(tmp_path, fabric.text()))["b-leaf3"] == ["alone"]


def test_parts_without_a_link_between_them_get_a_virtual_root_and_a_warning(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.switch("far")
    fabric.host("f1", "far")
    found = discover_text(tmp_path, fabric.text())
    tree = tree_of(found)
    assert tree["fabric"] == ["far", "island2"]
    assert tree["island2"] == ["leaf1", "leaf2"]
    assert "2 parts of the fabric" in found.warnings[0].message
    assert up(found, "island2") is None


def test_two_planes_without_a_link_are_joined_by_their_hosts(tmp_path: Path) -> None:
    fabric = Listing()
    for plane in "ab":
        for number in "12":
            fabric.switch(f"{plane}{number}")
        fabric.switch(f"{plane}-spine")
        for number in "12":
            fabric.cable(f"{plane}{number}", f"{plane}-spine")
    for host in range(4):
        side = "1" if host < 2 else "2"
        fabric.host(f"n{host}", f"a{side}", f"b{side}")
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found)["fabric"] == ["a1 +1", "a2 +1"]
    assert not found.warnings


def test_one_switch_and_hosts_cabled_back_to_back_are_trees_too(tmp_path: Path) -> None:
    single = Listing()
    single.switch("only")
    single.host("n1", "only")
    assert tree_of(discover_text(tmp_path, single.text())) == {"fabric": ["only"], "only": ["n1"]}
    direct = Listing()
    direct.host("n1")
    direct.host("n2", "n1")
    assert tree_of(discover_text(tmp_path, direct.text())) == {"fabric": ["n1", "n2"]}


def test_leaves_cabled_in_a_ring_are_one_level(tmp_path: Path) -> None:
    fabric = Listing()
    names = [f"leaf{number}" for number in range(5)]
    for name in names:
        fabric.switch(name)
        fabric.host(f"h-{name}", name)
    for index, name in enumerate(names):
        fabric.cable(name, names[(index + 1) % 5])
    found = discover_text(tmp_path, fabric.text())
    assert tree_of(found)["fabric"] == names
    assert up(found, "leaf0") == pytest.approx(25e9), "two cables leave each leaf"


def test_chips_of_one_director_keep_names_of_their_own(tmp_path: Path) -> None:
    fabric = Listing()
    fabric.switch("l1", name="MF0;director:CS7500/L01/U1")
    fabric.switch("l2", name="MF0;director:CS7500/L02/U1")
    fabric.switch("s1", name="MF0;director:CS7500/S01/U1")
    fabric.host("n1", "l1")
    fabric.host("n2", "l2")
    fabric.cable("l1", "s1")
    fabric.cable("l2", "s1")
    assert tree_of(discover_text(tmp_path, fabric.text()))["fabric"] == ["director/L01/U1", "director/L02/U1"]


def test_switches_that_group_nothing_by_themselves_stay_with_the_group_below(tmp_path: Path) -> None:
    fabric = two_leaves()
    for number in range(2):
        fabric.host(f"storage{number}", "spine1")
    found = discover_text(tmp_path, fabric.text())
    assert found.machine is not None
    assert tree_of(found)["fabric"] == ["leaf1", "leaf2", "spine1"], (
        "with as many hosts as the leaves it is one of them"
    )
    assert found.machine.tree.switches == [fabric.id("spine2")]


@pytest.mark.parametrize("leaves", [2, 3, 5])
@pytest.mark.parametrize("storage_first", [True, False])
@pytest.mark.parametrize("cabled", [True, False])
def test_a_storage_switch_that_all_hosts_hang_at_makes_no_leaf(
    tmp_path: Path, leaves: int, storage_first: bool, cabled: bool
) -> None:
    fabric = Listing()
    # GUIDs go by the order of devices: they must not decide.
    names = ["storage", *(f"leaf{number}" for number in range(1, leaves + 1)), "spine"]
    for switch in names if storage_first else reversed(names):
        fabric.switch(switch)
    for number in range(3 * leaves):
        fabric.host(f"n{number}x", f"leaf{number // 3 + 1}", name=f"n{number} mlx5_0")
        fabric.host(f"n{number}y", "storage", name=f"n{number} mlx5_1")
    for number in range(1, leaves + 1):
        fabric.cable(f"leaf{number}", "spine", count=2)
    if cabled:
        fabric.cable("storage", "spine")
    found = discover_text(tmp_path, fabric.text())
    tree = tree_of(found)
    for number in range(leaves):
        assert tree[f"leaf{number + 1}"] == [f"n{3 * number + k}" for k in range(3)]
    assert "storage" not in tree
    assert up(found, "n0") == pytest.approx(12.5e9), "what goes to the storage doesn't count"
    assert any("left out of the tree: storage" in note.message for note in found.warnings)


def test_hosts_that_hang_at_a_storage_switch_alone_stand_there(tmp_path: Path) -> None:
    fabric = Listing()
    for switch in ("storage", "leaf1", "leaf2", "spine"):
        fabric.switch(switch)
    for number in range(6):
        fabric.host(f"n{number}x", f"leaf{number // 3 + 1}", name=f"n{number} mlx5_0")
        fabric.host(f"n{number}y", "storage", name=f"n{number} mlx5_1")
    for number in range(2):
        fabric.host(f"server{number}", "storage")
    for leaf in ("leaf1", "leaf2", "storage"):
        fabric.cable(leaf, "spine")
    tree = tree_of(discover_text(tmp_path, fabric.text()))
    assert tree["leaf1"] == ["n0", "n1", "n2"]
    assert tree["leaf2"] == ["n3", "n4", "n5"]
    assert tree["storage"] == ["server0", "server1"]


def test_a_leaf_with_a_few_cables_of_its_hosts_elsewhere_stays_a_leaf(tmp_path: Path) -> None:
    fabric = Listing()
    for switch in ("leaf1", "leaf2", "spine", "console1", "console2"):
        fabric.switch(switch)
    for number in range(16):
        fabric.host(f"n{number}", f"leaf{number // 8 + 1}")
    for leaf in ("leaf1", "leaf2", "console1", "console2"):
        fabric.cable(leaf, "spine")
    for number in (1, 2):
        fabric.host(f"c{number}", f"console{number}", name=f"n{number} mlx5_9")
    tree = tree_of(discover_text(tmp_path, fabric.text()))
    assert {"n0", "n3", "n7"} < set(tree["leaf1"])
    assert len(tree["leaf2"]) == 8


def test_the_one_network_that_joins_hosts_is_theirs(tmp_path: Path) -> None:
    fabric = Listing()
    for switch in ("pair1", "pair2", "pair3", "all"):
        fabric.switch(switch)
    for number in range(6):
        fabric.host(f"n{number}x", f"pair{number // 2 + 1}", name=f"n{number} mlx5_0")
        fabric.host(f"n{number}y", "all", name=f"n{number} mlx5_1")
    found = discover_text(tmp_path, fabric.text())
    assert not any("left out of the tree" in note.message for note in found.warnings), "no other way joins the pairs"
