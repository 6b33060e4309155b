"""Real listings and topology.conf files from real clusters, where they are present."""

from __future__ import annotations

from pathlib import Path

import pytest

from discover.listing import left_out, tree_of, up
from palmette.discover.ib_source import discover_ibnetdiscover
from palmette.discover.slurm import discover_slurm
from palmette.topology.found import DiscoverError, SourceResult


def read(folder: Path, name: str) -> SourceResult:
    return discover_ibnetdiscover(str(folder / name))


def hosts(found: SourceResult) -> int:
    assert found.machine is not None
    return sum(1 for _ in found.machine.tree.hosts())


def tiers(found: SourceResult) -> list[int]:
    assert found.fabric is not None
    numbers = [switch.tier for switch in found.fabric.switches]
    return [numbers.count(1), numbers.count(2)]


def test_an_ndr_cluster_with_four_rails_gives_its_eight_scalable_units(fabrics: Path) -> None:
    found = read(fabrics, "topograph.txt")
    assert tiers(found) == [31, 9]
    tree = tree_of(found)
    assert len(tree["fabric"]) == 8
    assert tree["A09-P1-IBLEAF-01-03 +3"] == [f"a07-p1-dgx-03-c{number:02d}" for number in range(1, 19)]
    # 122 first words of descriptions, one of which is localhost.
    assert hosts(found) == 121
    assert left_out(found) == {
        "aggregation nodes": 40,
        "adapters without a host's name": 69,
        "adapters named localhost": 3,
    }
    assert found.fabric is not None
    assert all(switch.can_reduce for switch in found.fabric.switches)
    assert up(found, "a07-p1-dgx-03-c01") == pytest.approx(4 * 50e9)
    assert not found.warnings


def test_an_error_message_in_place_of_a_fabric_is_one_error(fabrics: Path) -> None:
    with pytest.raises(DiscoverError, match="no fabric in it"):
        read(fabrics, "topograph-bad.txt")


def test_a_qdr_cluster_has_two_hosts_at_its_upper_switches(fabrics: Path) -> None:
    found = read(fabrics, "qdr-2014.txt")
    assert (tiers(found), hosts(found)) == ([6, 2], 144)
    assert tree_of(found)["fabric"] == ["ib1", "ib2", "ib3", "ib4", "ib5", "ib6", "tank1", "tank2"]
    assert up(found, "ib2") == pytest.approx(8 * 5e9), "8 cables of 4xFDR10"
    assert up(found, "stage1") == pytest.approx(4e9)


def test_the_ports_dialect_of_a_core_and_edge_cluster(fabrics: Path) -> None:
    found = read(fabrics, "plafrim2-ports.txt")
    assert (tiers(found), hosts(found)) == ([5, 2], 96)
    assert not found.warnings
    assert left_out(found) == {"unlinked ports": 38}


def test_unlinked_ports_and_names_with_a_leading_blank(fabrics: Path) -> None:
    found = read(fabrics, "ports-unlinked.txt")
    assert tree_of(found) == {
        "fabric": ["ib-i1l1s01", "ib-i4l1s01"], "ib-i1l1s01": ["o0001", "o0002"], "ib-i4l1s01": ["p0001"]
    }  # fmt: skip
    assert left_out(found)["unlinked ports"] == 2


def test_a_shell_prompt_and_two_rails_of_two_switches(fabrics: Path) -> None:
    found = read(fabrics, "hp-blade-f.txt")
    assert [note.line for note in found.warnings] == [1]
    assert tree_of(found)["S-002264ffff34e9b8 +1"] == ["TD-WSS01", "TD-WSS02", "td-lss02"]
    assert up(found, "TD-WSS01") == pytest.approx(8e9)
    assert left_out(found) == {"adapters without a host's name": 1}


def test_a_listing_of_2007_without_any_host_name(fabrics: Path) -> None:
    found = read(fabrics, "manpage-2007-g.txt")
    assert (tiers(found), hosts(found)) == ([2, 0], 4)
    assert "none of 4 adapters has a host name" in " ".join(note.message for note in found.warnings)


def test_records_without_blank_lines(fabrics: Path) -> None:
    assert tree_of(read(fabrics, "sun-no-blank-lines.txt"))["Sun DCS 36 QDR switch localhost"] == ["nsn33-43"]


def test_a_damaged_line_is_named_and_its_host_still_found(fabrics: Path) -> None:
    found = read(fabrics, "corrupted-line.txt")
    assert [note.line for note in found.warnings if note.line] == [33]
    assert "r-dmz-ufm137" in tree_of(found)["r-ufm-sw226"]
    assert up(found, "r-dmz-ufm137") == pytest.approx(2 * 4 * 14.0625e9 * 64 / 66 / 8)
    assert left_out(found)["self-loop cables"] == 2


@pytest.mark.parametrize(
    ("name", "levels", "count"),
    [
        ("slurm-testcase1.conf", ["tier3", "pod", "leaf", "node"], 10_000),
        ("slurm-testcase2.conf", ["tier3", "pod", "leaf", "node"], 10_000),
        ("slurm-testcase3.conf", ["pod", "leaf", "node"], 400),
        ("slurm-testcase4.conf", ["pod", "leaf", "node"], 400),
        ("slurm-testcase5.conf", ["pod", "leaf", "node"], 400),
        ("slurm-testcase6.conf", ["pod", "leaf", "node"], 40),
        ("slurm-check.conf", ["block16", "block8", "block", "node"], 32),
    ],
)
def test_topology_conf_of_slurms_own_tests(fabrics: Path, name: str, levels: list[str], count: int) -> None:
    found = discover_slurm(str(fabrics / name))
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == levels
    assert hosts(found) == count


def test_trunks_without_a_common_root_get_a_virtual_one(fabrics: Path) -> None:
    found = discover_slurm(str(fabrics / "slurm-testcase6.conf"))
    assert tree_of(found)["fabric"] == ["spineA", "spineB", "leafC"]
    assert "3 switches have no common root" in found.warnings[0].message
