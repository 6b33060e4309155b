"""The inside of a node: hwloc's XML, libhwloc, /sys, and synthetic machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from palmette.discover import hwloc
from palmette.discover.hwloc import discover_hwloc
from palmette.discover.sysfs import read_sysfs
from palmette.topology.cpus import inside_name, nested_groups
from palmette.topology.found import DiscoverError, SourceResult
from palmette.topology.model import Source
from palmette.topology.synthetic import discover_synthetic


def name_of(found: SourceResult) -> str:
    assert found.inside is not None
    return inside_name(found.inside.groups)


def cores(first: int, count: int) -> list[int]:
    return [1 << core for core in range(first, first + count)]


def test_levels_that_divide_nothing_are_left_out() -> None:
    sets = {"socket": [0xFF, 0xFF00], "numa": [0xFF, 0xFF00], "l3": [0xF, 0xF0, 0xF00, 0xF000], "core": cores(0, 16)}
    found = nested_groups(sets)
    assert (inside_name(found.groups), found.crossing) == ("2socket:2l3:4core", [])
    assert found.same_text() == "numa is the socket"


def test_numa_nodes_inside_sockets_are_a_level() -> None:
    found = nested_groups({"socket": [0xFF], "numa": [0xF, 0xF0], "l3": [0xFF], "core": cores(0, 8)})
    assert inside_name(found.groups) == "1socket:2numa:4core"


def test_a_numa_node_of_several_sockets_is_a_level_outside_of_them() -> None:
    sockets = [3 << n for n in range(0, 8, 2)]
    found = nested_groups({"socket": sockets, "numa": [0xF, 0xF0], "board": [0xF, 0xF0], "core": cores(0, 8)})
    assert (inside_name(found.groups), found.crossing) == ("2numa:2socket:2core", [])
    assert found.same_text() == "board is the numa"


def test_what_cuts_across_sockets_or_holds_all_of_them_is_told() -> None:
    found = nested_groups({"socket": [0xF, 0xF0], "numa": [0xFF], "core": cores(0, 8)})
    assert (inside_name(found.groups), found.same) == ("2socket:4core", {"numa": "node"})
    found = nested_groups({"socket": [0xF, 0xF0], "numa": [0x3F, 0xC0], "core": cores(0, 8)})
    assert (inside_name(found.groups), found.crossing) == ("2socket:4core", ["numa"])
    found = nested_groups({"socket": [0xF, 0xF0], "board": [0xF, 0x3C], "core": cores(0, 8)})
    assert (inside_name(found.groups), found.crossing) == ("2socket:4core", ["board"]), "overlapping"


def test_caches_and_dies_that_divide_are_levels() -> None:
    found = nested_groups(
        {"socket": [0xFF], "die": [0xF, 0xF0], "l2": [3 << n for n in range(0, 8, 2)], "core": cores(0, 8)}
    )
    assert inside_name(found.groups) == "1socket:2die:2l2:2core"


def test_a_socket_that_has_memory_of_its_own_and_one_that_has_two_stay_in_one_order() -> None:
    # The first NUMA node holds two sockets, the third socket holds two NUMA nodes: no order has both levels.
    found = nested_groups({"socket": [0x3, 0xC, 0xF0], "numa": [0xF, 0x30, 0xC0], "core": cores(0, 8)})
    assert (inside_name(found.groups), found.crossing) == ("2socket:2core+1socket:4core", ["numa"])


def test_uneven_sockets_stay_uneven() -> None:
    groups = nested_groups({"socket": [0xF, 0x30], "core": cores(0, 6)}).groups
    assert inside_name(groups) == "1socket:4core+1socket:2core"


def package(first: int, memory: str = "") -> str:
    mask = f"0x{0xF << first:08x}"
    inner = "".join(f'<object type="Core" cpuset="0x{3 << pu:08x}"/>' for pu in (first, first + 2))
    return f'<object type="Package" cpuset="{mask}">{memory.format(mask=mask)}{inner}</object>'


def xml(body: str, host: str = "n7") -> str:
    return (
        '<?xml version="1.0"?>\n<topology version="2.0"><object type="Machine" cpuset="0x000000ff">'
        f'<info name="HostName" value="{host}"/>{body}</object></topology>'
    )


def test_an_xml_of_hwloc_2_gives_sockets_cores_and_the_hosts_name(tmp_path: Path) -> None:
    path = tmp_path / "node.xml"
    path.write_text(xml(package(0, '<object type="NUMANode" cpuset="{mask}"/>') + package(4)))
    found = discover_hwloc(str(path))
    assert name_of(found) == "2socket:2core"
    assert found.inside is not None
    assert found.inside.host == "n7"


def test_an_xml_of_hwloc_1_says_socket_and_cache(tmp_path: Path) -> None:
    path = tmp_path / "node.xml"
    text = xml(package(0) + package(4)).replace("Package", "Socket")
    text = text.replace("</topology>", '<object type="Cache" depth="3" cpuset="0x0000000f"/></topology>')
    path.write_text(text)
    assert name_of(discover_hwloc(str(path))) == "2socket:2core"


def test_masks_of_more_than_32_processors_are_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "node.xml"
    path.write_text(xml("".join(f'<object type="Core" cpuset="0x{1 << i:08x},0x0"/>' for i in range(3))))
    assert name_of(discover_hwloc(str(path))) == "3core"


def test_what_has_no_place_in_the_tree_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lstopo.xml"
    drawer = f'<object type="Group" cpuset="0x000000ff">{package(0)}{package(4)}</object>'
    path.write_text(xml(drawer).replace('cpuset="0x000000ff">', 'cpuset="0x000000ff" allowed_cpuset="0x0000003f">', 1))
    found = discover_hwloc(str(path))
    assert name_of(found) == "1socket:2core+1socket:1core", "jobs may run on six of eight hardware threads"
    assert [(left.count, left.what, left.reason) for left in found.left_out] == [
        (2, "hardware threads", "the system doesn't let jobs run there"),
        (1, "level", "no own groups: board is the whole node"),
    ]


def test_drawers_of_sockets_with_their_memory_are_read(tmp_path: Path) -> None:
    """As on an IBM x3950 M2: one NUMA node a drawer, of sockets with one L3 and several L2 caches, 12 processors."""

    def element(kind: str, first: int, count: int, inner: str = "") -> str:
        return f'<object type="{kind}" cpuset="0x{((1 << count) - 1) << first:08x}">{inner}</object>'

    def socket(first: int) -> str:
        pairs = range(first, first + 6, 2)
        cores = [(pair, element("Core", pair, 1) + element("Core", pair + 1, 1)) for pair in pairs]
        l2 = "".join(element("L2Cache", pair, 2, inner) for pair, inner in cores)
        return element("Package", first, 6, element("L3Cache", first, 6, l2))

    drawers = (element("NUMANode", first, 12) + socket(first) + socket(first + 6) for first in (0, 12))
    path = tmp_path / "node.xml"
    path.write_text(xml("".join(element("Group", 12 * n, 12, inner) for n, inner in enumerate(drawers))))
    found = discover_hwloc(str(path))
    assert name_of(found) == "2numa:2socket:3l2:2core"
    assert [left.reason for left in found.left_out] == ["no own groups: l3 is the socket, board is the numa"]


@pytest.mark.parametrize("kind", ["Widget", "Group"])
def test_every_object_of_hwloc_with_processors_is_a_level_or_told(tmp_path: Path, kind: str) -> None:
    """Whatever kind an object has, its name stands in the inside or in what was left out."""
    path = tmp_path / "node.xml"
    path.write_text(xml(f'<object type="{kind}" cpuset="0x0000000f">{package(0)}</object>{package(4)}'))
    found = discover_hwloc(str(path))
    told = name_of(found) + " ".join(f"{left.what} {left.reason}" for left in found.left_out)
    assert ("board" if kind == "Group" else kind) in told, told


def test_deep_groups_cost_no_more_than_their_number(tmp_path: Path) -> None:
    path = tmp_path / "node.xml"
    path.write_text(xml('<object type="Group" cpuset="0xff">' * 3000 + package(0) + "</object>" * 3000))
    assert "1socket:2core" in name_of(discover_hwloc(str(path)))


def test_a_machine_without_a_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lstopo.xml"
    path.write_text(xml(package(0)).replace('name="HostName"', 'name="Other"'))
    found = discover_hwloc(str(path))
    assert any("no host name" in note.message for note in found.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "not XML"),
        ("<a/>", "no hwloc topology"),
        (xml(""), "no core and no processing unit"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><topology/>', "entities"),
    ],
)
def test_a_file_that_is_no_hwloc_xml_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "node.xml"
    path.write_text(text)
    with pytest.raises(DiscoverError, match=message):
        discover_hwloc(str(path))


def test_this_node_by_libhwloc_agrees_with_lstopo(tmp_path: Path) -> None:
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if lstopo is None or "libhwloc" not in (discover_hwloc(None).source.path or ""):
        pytest.skip("libhwloc or lstopo is not installed")
    path = tmp_path / "node.xml"
    subprocess.run([lstopo, "--of", "xml", str(path)], check=True)
    assert name_of(discover_hwloc(None)) == name_of(discover_hwloc(str(path)))


def test_without_hwloc_this_node_comes_from_sys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hwloc, "_libraries", lambda: iter(["/nowhere/libhwloc.so.15"]))
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    found = discover_hwloc(None)
    assert name_of(found).endswith("core")
    assert "come from /sys" in found.warnings[0].message


def test_sys_files_give_sockets_numa_nodes_and_cores_with_two_threads(tmp_path: Path) -> None:
    for cpu in range(16):
        folder = tmp_path / f"cpu/cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / "cache/index3").mkdir(parents=True)
        core = cpu % 8
        (folder / "topology/physical_package_id").write_text(f"{core // 4}\n")
        (folder / "topology/core_id").write_text(f"{core % 4}\n")
        (folder / "cache/index3/shared_cpu_list").write_text(f"{core // 4 * 4}-{core // 4 * 4 + 3}\n")
    (tmp_path / "cpu/cpufreq").mkdir()
    for node in range(4):
        folder = tmp_path / f"node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(f"{2 * node}-{2 * node + 1},{2 * node + 8}-{2 * node + 9}\n")
    found = SourceResult(Source("hwloc", "sys"))
    read_sysfs(tmp_path, found)
    assert name_of(found) == "2socket:2numa:2core"


def test_a_synthetic_machine_has_uneven_groups_rates_and_latencies() -> None:
    found = discover_synthetic("3leaf@50Mbit/s~5ms:3+3+2node@12.5MB/s:2socket:4core")
    machine = found.machine
    assert machine is not None
    assert [[host.name for host in leaf.children] for leaf in machine.tree.children] == [
        ["h0", "h1", "h2"], ["h3", "h4", "h5"], ["h6", "h7"]
    ]  # fmt: skip
    assert machine.tree.children[0].up_bytes_per_s == pytest.approx(6.25e6)
    assert machine.tree.children[0].children[0].up_bytes_per_s == pytest.approx(12.5e6)
    assert machine.levels[0].latency_s == pytest.approx(5e-3)
    assert list(machine.insides) == ["2socket:4core"]


def test_counts_are_repeated_when_there_are_more_parents_and_the_innermost_level_is_the_node() -> None:
    machine = discover_synthetic("4leaf:1+2rack").machine
    assert machine is not None
    assert [len(leaf.children) for leaf in machine.tree.children] == [1, 2, 1, 2]
    assert [level.name for level in machine.levels] == ["leaf", "node"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("", "needs a form"),
        ("2leaf:x", "'x' must begin with a count"),
        ("2leaf:0node", "'0node' must begin with a count"),
        ("2leaf:3leaf", "stands twice"),
        ("2leaf@fast:2node", "is not a rate"),
        ("2leaf@-1GB/s:2node", "is not a rate"),
        ("2leaf~soon:2node", "is not a duration"),
        ("1node:2000000000core", "more than a million hosts, or places"),
        ("5000leaf:5000node", "more than a million hosts"),
    ],
)
def test_a_bad_synthetic_form_names_the_part(form: str, message: str) -> None:
    with pytest.raises(DiscoverError, match=message):
        discover_synthetic(form)


def test_the_third_version_of_hwlocs_xml_gives_the_same(tmp_path: Path) -> None:
    """Devices have other names there, memory has tiers, and facts stand beside the objects."""
    processors = "".join(
        f'<object type="Core" cpuset="{1 << core:#x}" gp_index="{20 + core}">'
        f'<object type="PU" os_index="{core}" cpuset="{1 << core:#x}" gp_index="{30 + core}"/></object>'
        for core in range(4)
    )
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="3.0">
  <object type="Machine" os_index="0" cpuset="0xf" complete_cpuset="0xf" allowed_cpuset="0xf" gp_index="1">
    <object type="Package" os_index="0" cpuset="0xf" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0xf" nodeset="0x1" local_memory="1024" gp_index="3">
        <info name="MemoryTier" value="0"/>
      </object>
      {processors}
    </object>
    <object type="Bridge" gp_index="8" bridge_type="0-1" depth="0">
      <object type="PCIDev" gp_index="9"><object type="OSDev" gp_index="10" name="hsi0" osdev_type="3"/></object>
    </object>
  </object>
  <info name="HostName" value="node7"/>
  <support name="discovery.pu"/>
</topology>
"""
    path = tmp_path / "node.xml"
    path.write_text(text, encoding="utf-8")
    found = discover_hwloc(str(path))
    assert found.inside is not None and found.inside.host == "node7"
    assert found.source.detail == "1socket:4core, 4 cores, 4 hardware threads"
