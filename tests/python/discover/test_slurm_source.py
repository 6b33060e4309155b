"""Slurm's topology files and variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from discover.listing import tree_of
from palmette import _core
from palmette.discover.run import discover
from palmette.discover.slurm import discover_slurm
from palmette.discover.slurm_env import discover_env
from palmette.topology.file import load
from palmette.topology.found import DiscoverError, SourceResult


def conf(folder: Path, text: str, name: str = "topology.conf") -> SourceResult:
    (folder / name).write_text(text)
    return discover_slurm(str(folder / name))


def levels(found: SourceResult) -> list[str]:
    assert found.machine is not None
    return [level.name for level in found.machine.levels]


def test_comments_brackets_continued_lines_and_any_case_are_read(tmp_path: Path) -> None:
    found = conf(
        tmp_path,
        "# a comment\nswitchname=top Switches=s[1,2] # spines\nSwitchName=s1 \\\n  nodes=n[08-10],login LinkSpeed=100\n"
        'SwitchName=s2 Nodes="n[1-2]g[0-1]"\n',
    )
    assert tree_of(found) == {
        "top": ["s1", "s2"],
        "s1": ["login", "n08", "n09", "n10"],
        "s2": ["n1g0", "n1g1", "n2g0", "n2g1"],
    }
    assert levels(found) == ["leaf", "node"]
    assert not found.warnings


def test_an_unbalanced_tree_keeps_hosts_at_upper_switches(tmp_path: Path) -> None:
    found = conf(tmp_path, "SwitchName=r Switches=p Nodes=big\nSwitchName=p Switches=l\nSwitchName=l Nodes=a,b\n")
    assert tree_of(found) == {"r": ["p", "big"], "p": ["l"], "l": ["a", "b"]}
    assert levels(found) == ["pod", "leaf", "node"]


def test_spines_that_list_the_same_leaves_are_rails_of_one_group(tmp_path: Path) -> None:
    text = (
        "SwitchName=sp1 Switches=l[1-2]\nSwitchName=sp2 Switches=l[1-2]\nSwitchName=l1 Nodes=a\nSwitchName=l2 Nodes=b\n"
    )
    found = conf(tmp_path, text)
    assert tree_of(found) == {"sp1": ["l1", "l2"], "l1": ["a"], "l2": ["b"]}
    assert "rails" in found.warnings[0].message


def test_output_of_scontrol_lists_hosts_at_every_switch_and_they_stand_at_the_lowest(tmp_path: Path) -> None:
    found = conf(
        tmp_path,
        "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
        "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n",
    )
    assert tree_of(found) == {"s2": ["s0", "s1"], "s0": ["n0", "n1"], "s1": ["n2", "n3"]}


def test_bad_lines_cost_a_warning_with_their_number(tmp_path: Path) -> None:
    found = conf(
        tmp_path, "SwitchName=a Nodes=n[1-\nhello world\nSwitchName=b Nodes=n1\nSwitchName=c Switches=b,ghost\n"
    )
    assert [note.line for note in found.warnings] == [1, 2, 4]
    assert "ghost" in found.warnings[2].message


def test_a_switch_below_itself_is_an_error_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(DiscoverError, match=r'switch "[ab]" is below itself, .*topology.conf:[12]'):
        conf(tmp_path, "SwitchName=a Switches=a,b\nSwitchName=b Nodes=n1\n")


def test_a_file_without_switches_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DiscoverError, match="no SwitchName= or BlockName= line"):
        conf(tmp_path, "NodeName=n1 CPUs=4\n")


def test_blocks_aggregate_by_their_sizes(tmp_path: Path) -> None:
    lines = [f"BlockName=b{i} Nodes=n[{4 * i}-{4 * i + 3}]" for i in range(6)]
    found = conf(tmp_path, "\n".join([*lines, "BlockSizes=4,8,12,16,64"]))
    assert levels(found) == ["block16", "block8", "block", "node"]
    tree = tree_of(found)
    assert tree["fabric"] == ["block16-1", "block16-2"]
    assert tree["block8-3"] == ["b4", "b5"]
    assert tree["b5"] == ["n20", "n21", "n22", "n23"]
    assert "12, which is no power of two" in found.warnings[0].message


def test_hosts_listed_twice_are_named(tmp_path: Path) -> None:
    found = conf(tmp_path, "BlockName=a Nodes=n[1-3]\nBlockName=b Nodes=n[2-3],n4\nBlockSizes=3\n")
    assert [note.message for note in found.warnings] == [
        "2 host(s) are listed several times; the first one counts: n2, n3"
    ]


YAML = """---
- topology: small
  cluster_default: false
  block: {block_sizes: [2], blocks: [{block: b1, nodes: 'n[1-2]'}]}
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: node[01-02]
      - switch: s2
        nodes: [node03, node04]
- topology: plain
  flat: true
"""


def test_topology_yaml_uses_the_default_topology_and_tells_the_others(tmp_path: Path) -> None:
    found = conf(tmp_path, YAML, "topology.yaml")
    assert tree_of(found) == {"root": ["s1", "s2"], "s1": ["node01", "node02"], "s2": ["node03", "node04"]}
    assert [(item.count, item.what) for item in found.left_out] == [(2, "other topologies of the file")]


def test_a_torus_beside_a_tree_is_told_as_what_it_is(tmp_path: Path) -> None:
    text = YAML.replace("- topology: plain\n  flat: true\n", "- topology: gpus\n  torus3d: {toruses: []}\n")
    found = conf(tmp_path, text, "topology.yaml")
    assert '"main" is used; not small, gpus (a torus3d)' in str(found.left_out)


def test_topology_yaml_with_blocks(tmp_path: Path) -> None:
    text = "- topology: b\n  block:\n    block_sizes: [2, 4]\n    blocks:\n" + "".join(
        f"      - block: b{i}\n        nodes: n[{2 * i}-{2 * i + 1}]\n" for i in range(4)
    )
    assert levels(conf(tmp_path, text, "topology.yaml")) == ["block4", "block", "node"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- topology: t\n  torus3d: {x: 2}\n- topology: r\n  ring: {}\n", r"only ring and torus3d .*from measurement"),
        ("a: [\n", "not YAML"),
        ("x: 1\n", "no list of topologies"),
        ("- topology: f\n  flat: true\n", "only flat"),
    ],
)
def test_topology_yaml_that_cant_be_used_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DiscoverError, match=message):
        conf(tmp_path, text, "topology.yaml")


def test_the_environment_of_a_task_tells_its_own_path_and_the_other_hosts_stand_aside() -> None:
    found = discover_env(
        None,
        {
            "SLURM_TOPOLOGY_ADDR": "core.leaf2.n5",
            "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node",
            "SLURM_JOB_NODELIST": "n[4-6]",
        },
    )
    assert tree_of(found) == {"fabric": ["core", "n4", "n6"], "core": ["leaf2"], "leaf2": ["n5"]}
    assert "2 host(s) of the job" in found.warnings[0].message
    assert "srun" in found.warnings[0].message


def test_a_file_of_addresses_tells_the_whole_job(tmp_path: Path) -> None:
    path = tmp_path / "addr.txt"
    path.write_text(
        "core.leaf[1-2].n1 switch.switch.node\ncore.leaf3.n2.example.org switch.switch.node\nbroken\n"
        "core.leaf3.n3 switch.switch.node\n"
    )
    found = discover_env(str(path))
    assert tree_of(found) == {"core": ["leaf[1-2]", "leaf3"], "leaf[1-2]": ["n1"], "leaf3": ["n2.example.org", "n3"]}
    assert levels(found) == ["leaf", "node"]
    assert [note.line for note in found.warnings] == [3]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "SLURM_TOPOLOGY_ADDR is not set"),
        ({"SLURM_TOPOLOGY_ADDR": "a.b", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"}, "doesn't fit"),
    ],
)
def test_an_environment_that_tells_nothing_is_an_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(DiscoverError, match=message):
        discover_env(None, environment)


def test_all_nodes_are_those_that_other_lines_name(tmp_path: Path) -> None:
    found = conf(tmp_path, "SwitchName=top Switches=l[1-2] Nodes=ALL\nSwitchName=l1 Nodes=a,b\nSwitchName=l2 Nodes=c\n")
    assert tree_of(found) == {"top": ["l1", "l2"], "l1": ["a", "b"], "l2": ["c"]}


def test_all_nodes_that_nothing_names_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DiscoverError, match=r"Nodes=ALL, all nodes of the cluster.*sinfo"):
        conf(tmp_path, "SwitchName=s1 Nodes=ALL")
    tool = tmp_path / "sinfo"
    tool.write_text("#!/bin/sh\necho 'n[1-3]'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert tree_of(conf(tmp_path, "SwitchName=s1 Nodes=ALL"))["s1"] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    "text", ["n[1-5000000]", "n[1-900]g[1-900]", "a,n[0000001-9999999],b", "n[1-" + "9" * 5000 + "]"]
)
def test_a_range_that_no_cluster_has_is_told_at_once(tmp_path: Path, text: str) -> None:
    with pytest.raises(DiscoverError, match=r"stands for \d+ hosts, .*topology.conf:1; at most 262144"):
        conf(tmp_path, f"SwitchName=s1 Nodes={text}")


def test_links_that_are_listed_at_both_ends_are_one(tmp_path: Path) -> None:
    found = conf(
        tmp_path,
        "SwitchName=l1 Nodes=n[1-2] Switches=sp\nSwitchName=l2 Nodes=n[3-4] Switches=sp\n"
        "SwitchName=sp Switches=l[1-2],core\nSwitchName=core Switches=sp\n",
    )
    tree = tree_of(found)
    assert tree["sp"] == ["l1", "l2"]
    assert "3 link(s) between switches are listed at both ends" in found.warnings[0].message


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=a Nodes=n1 Switches=b,c\nSwitchName=b Nodes=n2 Switches=a,c\nSwitchName=c Nodes=n3 Switches=a,b\n",
        "SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2 Switches=c\nSwitchName=c Nodes=n3 Switches=a\n",
    ],
)
def test_a_ring_is_told_to_be_no_topology_conf(tmp_path: Path, text: str) -> None:
    with pytest.raises(DiscoverError, match="a ring or torus is no topology"):
        conf(tmp_path, text)


@pytest.mark.parametrize("depth", [65, 600, 3000])
def test_a_chain_of_switches_that_no_tree_can_hold_is_refused_in_a_line(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "topology.conf"
    chain = [f"SwitchName=s{n} Switches=s{n - 1} Nodes=n{n}" for n in range(1, depth + 1)]
    path.write_text("\n".join(["SwitchName=s0 Nodes=n0", *chain]) + "\n")
    with pytest.raises(DiscoverError, match=r"more than 64 levels below each other, down to .*, .*topology\.conf;"):
        discover([("slurm", str(path))])


def test_a_chain_of_sixty_switches_is_read_again(tmp_path: Path) -> None:
    path, written = tmp_path / "topology.conf", tmp_path / "topology.json"
    chain = [f"SwitchName=s{n} Switches=s{n - 1} Nodes=n{n}" for n in range(1, 61)]
    path.write_text("\n".join(["SwitchName=s0 Nodes=n0", *chain]) + "\n")
    topology = discover([("slurm", str(path))])
    topology.save(written)
    assert load(written).to_json() == topology.to_json()
    assert len(_core.Machine.from_file(written).levels) == len(topology.machine.levels)


@pytest.mark.parametrize(
    ("kinds", "why"), [("rack.rack.node", "doesn't fit"), ("leaf.switch.node", "doesn't fit"), ("node.node", "doesn't")]
)
def test_kinds_of_switches_that_would_be_one_level_are_refused(kinds: str, why: str) -> None:
    names = ".".join(f"s{n}" for n in range(kinds.count(".") + 1))
    with pytest.raises(DiscoverError, match=why):
        discover_env(None, {"SLURM_TOPOLOGY_ADDR": names, "SLURM_TOPOLOGY_ADDR_PATTERN": kinds})


def test_levels_that_are_nested_both_ways_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "addr.txt"
    path.write_text("a.b.n1 x.y.node\na.b.n2 y.x.node\n")
    with pytest.raises(DiscoverError, match="give each level a name of its own"):
        discover([("env", str(path))])
