"""Which ranks stand for a level: few pairs, that part at that level, whatever the tree looks like."""

from __future__ import annotations

import pytest

from calibrate.invented import job_line, layout_of
from palmette.calibrate.layout import MOST_FLOWS, MOST_PAIRS, Layout, LevelPlan
from palmette.discover.run import discover
from palmette.measure.errors import CalibrateError
from palmette.measure.session import JobLine
from palmette.topology.model import Level, Machine, Topology, TreeNode


def plans(layout: Layout) -> dict[str | None, LevelPlan]:
    return {plan.name: plan for plan in layout.plan()}


def test_each_pair_parts_at_its_level_and_no_rank_stands_in_two(lab_topology: Topology) -> None:
    layout = layout_of(lab_topology)
    assert layout.ranks == 16
    for name, plan in plans(layout).items():
        assert plan.pairs
        ranks = [rank for pair in plan.pairs for rank in pair]
        assert len(ranks) == len(set(ranks))
        for a, b in plan.pairs:
            index = layout.separating_level(a, b)
            assert index is not None and layout.levels[index] == name


def test_the_number_of_pairs_does_not_grow_with_the_machine() -> None:
    small = layout_of(discover([("synthetic", "2leaf:2node:2core")]))
    large = layout_of(discover([("synthetic", "40leaf:32node:4core")]))
    assert [len(plan.pairs) for plan in large.plan()] == [MOST_PAIRS] * 3
    assert all(len(plan.pairs) <= MOST_PAIRS for plan in small.plan())
    assert max(len(edge.flows) for plan in large.plan() for edge in plan.edges) == MOST_FLOWS


def test_flows_over_an_edge_begin_inside_and_end_in_a_sibling_on_as_many_hosts_as_there_are(
    lab_topology: Topology,
) -> None:
    layout = layout_of(lab_topology)
    edge = plans(layout)["leaf"].edges[0]
    inside = {host.name for host in edge.node.hosts()}
    assert len(edge.flows) == 6
    for a, b in edge.flows:
        assert layout.nodes[a].name in inside
        assert layout.nodes[b].name not in inside
    assert len({layout.nodes[a].name for a, _ in edge.flows[:3]}) == 3
    assert len({layout.nodes[b].name for _, b in edge.flows[:4]}) == 4


def test_edges_of_different_capacity_are_measured_apart() -> None:
    machine = discover([("synthetic", "3leaf@50Mbit/s:3node@100Mbit/s:2core")])
    machine.machine.tree.children[2].up_bytes_per_s = 1e6
    edges = plans(layout_of(machine))["leaf"].edges
    assert [(edge.node.up_bytes_per_s, len(edge.alike)) for edge in edges] == [(6.25e6, 2), (1e6, 1)]


def test_a_level_with_one_group_says_that_it_can_not_be_measured_here(lab_topology: Topology) -> None:
    layout = layout_of(lab_topology, ["h0", "h0", "h1", "h1"])
    leaf = plans(layout)["leaf"]
    assert not leaf.pairs
    assert leaf.why_not == "the job is in one group of it, so it can't be measured here"
    assert plans(layout)["node"].pairs == [(0, 2)]


def test_a_level_whose_groups_are_alone_in_their_parents_can_not_be_measured(lab_topology: Topology) -> None:
    node = plans(layout_of(lab_topology, ["h0", "h3"]))["node"]
    assert "no two of its groups in the job share a parent" in (node.why_not or "")


def test_hosts_at_different_depths_part_at_the_outermost_level() -> None:
    root = TreeNode("fabric")
    leaf = TreeNode("leaf0", "leaf", children=[TreeNode("a", "node"), TreeNode("b", "node")])
    root.children = [leaf, TreeNode("c", "node")]
    topology = Topology("t", Machine([Level("leaf"), Level("node")], root))
    layout = layout_of(topology, ["a", "b", "c"])
    assert layout.separating_level(0, 1) == 1
    assert layout.separating_level(0, 2) == 0


def test_ranks_of_a_host_without_an_inside_are_told_apart_by_no_level() -> None:
    root = TreeNode("fabric", children=[TreeNode("a", "node", slots=2), TreeNode("b", "node", slots=2)])
    layout = layout_of(Topology("t", Machine([Level("node")], root)), ["a", "a", "b", "b"])
    assert layout.separating_level(0, 1) is None
    assert plans(layout)[None].pairs == [(0, 1), (2, 3)]


def test_ranks_that_are_bound_to_sockets_sit_there_and_others_in_their_order() -> None:
    machine = discover([("synthetic", "1node:2socket:2core")]).machine
    bound = Layout(machine, job_line(["h0"] * 4, [0, 1, 0, 1]), "t.json")
    assert [bound.separating_level(0, rank) for rank in (1, 2, 3)] == [1, 2, 1]
    unbound = Layout(machine, job_line(["h0"] * 5), "t.json")
    assert [unbound.separating_level(0, rank) for rank in (1, 2, 3, 4)] == [2, 1, 1, None]


def test_hosts_are_found_by_either_name_up_to_the_first_dot(lab_topology: Topology) -> None:
    layout = Layout(lab_topology.machine, JobLine("", ["h0.site.org", "login"], ["x", "h1"], [-1, -1]), "t.json")
    assert [host.name for host in layout.nodes] == ["h0", "h1"]


def test_a_host_that_the_topology_lacks_is_named_with_the_rank_and_the_file(lab_topology: Topology) -> None:
    with pytest.raises(CalibrateError, match=r"host 'x9' of rank 1 is not in t\.json; .*palmette discover"):
        Layout(lab_topology.machine, job_line(["h0", "x9"]), "t.json")
