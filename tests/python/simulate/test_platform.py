"""SimGrid platforms made from topologies; none of these needs SimGrid."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.results import Limit
from palmette.topology.model import Fabric, FabricLink, FabricSwitch, Level, Machine, Topology, TreeNode
from palmette_lab.simulate import cluster, compare, job, limits, parameters, run, table
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.page import write_comparison
from palmette_lab.simulate.platform import platform_xml

Call = Callable[..., Any]
VALUES = parameters.read()


def links_of(text: str) -> dict[str, dict[str, str]]:
    """Attributes of each link by name."""
    return {link.attrib["id"]: dict(link.attrib) for link in ElementTree.fromstring(text).iter("link")}


def made(spec: str, share: float = 1.0) -> str:
    """The platform of a synthetic machine."""
    return platform_xml(cluster.prepared(cluster.from_spec(spec), VALUES, share).topology, VALUES)


def seconds(link: dict[str, str]) -> float:
    """A link's latency."""
    return float(link["latency"].removesuffix("s"))


def rate(link: dict[str, str]) -> float:
    """A link's bandwidth in bytes per second."""
    return float(link["bandwidth"].removesuffix("Bps"))


def test_each_host_has_a_link_for_each_direction_and_one_memory() -> None:
    text = made("2leaf@3GB/s:2+1node@1GB/s:4core")
    assert [host.attrib["id"] for host in ElementTree.fromstring(text).iter("host")] == ["h0", "h1", "h2"]
    found = links_of(text)
    for host in ("h0", "h1", "h2"):
        assert found[f"{host}!up"]["sharing_policy"] == "SPLITDUPLEX"
        assert rate(found[f"{host}!up"]) == 1e9
        assert found[f"{host}!memory"]["sharing_policy"] == "SHARED"


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_way_takes_the_latency_of_its_level_with_what_both_ends_take(levels: int) -> None:
    spec = ["2pod@4GB/s~9us", "2leaf@2GB/s~5us", "2node@1GB/s~2us"][3 - levels :]
    found = links_of(made(":".join([*spec, "2core"])))
    ways = {name: seconds(link) for name, link in found.items() if name.endswith("!up")}
    per_level = sorted(set(ways.values()))
    whole = {1: 2e-6, 2: 5e-6, 3: 9e-6}[levels]
    hosts = seconds(found["h0!up"])
    assert 2 * hosts + VALUES.ends_between_s == pytest.approx(2e-6)
    assert VALUES.ends_between_s + 2 * sum(per_level) == pytest.approx(whole)


def test_levels_without_a_latency_get_the_parameters_and_palmette_reads_the_same_ones() -> None:
    found = cluster.prepared(cluster.from_spec("2leaf:2node:2core"), VALUES).topology.machine.levels
    assert [level.name for level in found] == ["leaf", "node", "core"]
    assert found[1].latency_s == VALUES.node_latency_s
    assert found[0].latency_s == pytest.approx(VALUES.node_latency_s + VALUES.tier_latency_s)
    assert found[2].latency_s == VALUES.inside_latency_s


def test_the_uplinks_share_changes_switches_and_not_hosts() -> None:
    whole, half = links_of(made("2leaf@3GB/s:2node@1GB/s")), links_of(made("2leaf@3GB/s:2node@1GB/s", 0.5))
    assert rate(half["h0!up"]) == rate(whole["h0!up"])
    uplinks = [name for name in whole if name.startswith("switch!")]
    assert uplinks
    assert all(rate(half[name]) == rate(whole[name]) / 2 for name in uplinks)


def test_several_cables_limit_one_message_to_one_of_them() -> None:
    tree = TreeNode(
        "fabric",
        children=[
            TreeNode("leaf0", "leaf", 4e9, switches=["S0"], children=[TreeNode("a", "node", 5e9)]),
            TreeNode("leaf1", "leaf", 1e9, switches=["S1"], children=[TreeNode("b", "node", 5e9)]),
        ],
    )
    fabric = Fabric(
        switches=[FabricSwitch("S0", "s0", tier=1), FabricSwitch("S1", "s1", tier=1), FabricSwitch("S2", "s2", tier=2)],
        links=[
            FabricLink("S0", "S2", count=4, bytes_per_s=4e9),
            FabricLink("S2", "S1", count=1, bytes_per_s=1e9),
        ],
    )
    machine = Machine([Level("leaf"), Level("node")], tree)
    found = links_of(platform_xml(Topology("t", machine, fabric), VALUES))
    cables = [link for link in found.values() if link["sharing_policy"] == "FATPIPE"]
    assert [rate(link) for link in cables] == [1e9]  # the uplink of one cable needs none


def test_an_aggregator_is_a_host_at_its_switch_as_far_as_the_groups_below_are() -> None:
    machine = "aggregator@5GB/s:2leaf@3GB/s~5us+aggregator:2node@1GB/s~2us:4core"
    document = ElementTree.fromstring(made(machine))
    hosts = {f"aggregator!aggregator{number}" for number in range(3)}
    assert hosts < {host.attrib["id"] for host in document.iter("host")}
    found = links_of(made(machine))
    assert rate(found["aggregator!aggregator0!up"]) == 5e9
    assert rate(found["aggregator!aggregator1!up"]) == VALUES.unknown_bytes_per_s
    between = VALUES.ends_between_s
    assert 2 * seconds(found["aggregator!aggregator0!up"]) + between == pytest.approx(5e-6)
    assert seconds(found["aggregator!aggregator1!up"]) == seconds(found["h0!up"])


def test_aggregators_of_one_name_are_told() -> None:
    topology = cluster.from_spec("aggregator+aggregator:2node").topology
    for one in topology.machine.tree.aggregators:
        one.name = "spine"
    with pytest.raises(SimulateError, match="2 aggregators are called 'spine'"):
        platform_xml(topology, VALUES)


def test_hosts_beside_groups_of_hosts_are_reached() -> None:
    tree = TreeNode(
        "fabric", children=[TreeNode("x", "node"), TreeNode("leaf0", "leaf", 1e9, children=[TreeNode("y", "node")])]
    )
    text = platform_xml(Topology("t", Machine([Level("leaf"), Level("node")], tree)), VALUES)
    document = ElementTree.fromstring(text)
    assert sorted(host.attrib["id"] for host in document.iter("host")) == ["x", "y"]
    zones = {zone.attrib["id"] for zone in document.iter("zone")}
    for route in document.iter("zoneRoute"):
        assert {route.attrib["src"], route.attrib["dst"]} <= zones


def test_a_dragonfly_has_a_link_between_any_two_groups_and_any_two_routers_of_a_group() -> None:
    dragonfly = cluster.prepared(cluster.from_stored("dragonfly-9"), VALUES, 0.5)
    document = ElementTree.fromstring(platform_xml(dragonfly.topology, VALUES, dragonfly.mesh))
    between = [link for link in document.iter("link") if link.attrib["id"].count("switch!") == 2]
    assert len(between) == 9 * 8 // 2 + 9 * (4 * 3 // 2)
    assert {rate(dict(link.attrib)) for link in between} == {5e9}
    # Each router has its share of the links to other groups: two of eight.
    routes = [
        route.attrib
        for route in document.iter("zoneRoute")
        if route.attrib["gw_src"] != route.attrib["src"] + "!router"
    ]
    assert len(routes) == 9 * 8
    ends = [route["gw_src"] for route in routes]
    assert {ends.count(router) for router in ends} == {2}


def test_hosts_of_an_ibnetdiscover_file_have_as_many_places_as_are_asked_for(fabrics: Path) -> None:
    found = cluster.from_file(str(fabrics / "qdr-2014.txt"), 4)
    assert {places for _, places in found.hosts} == {4}
    assert len(job.make_job(found, "block", None).seats) == 4 * len(found.hosts)


def test_a_host_with_a_name_that_the_simulator_cannot_take_is_named() -> None:
    tree = TreeNode("fabric", children=[TreeNode("a,b", "node")])
    with pytest.raises(SimulateError, match="a,b"):
        platform_xml(Topology("t", Machine([Level("node")], tree)), VALUES)


def test_every_stored_platform_has_the_places_that_its_sentence_says() -> None:
    for name, entry in cluster.stored().items():
        found = cluster.from_stored(name)
        places = sum(slots for _, slots in found.hosts)
        assert f"{places:,} ranks" in entry["sentence"], name
        assert entry["source"]


def test_each_parameter_tells_what_it_is_and_where_it_comes_from() -> None:
    entries = json.loads(parameters.FILE.read_text(encoding="utf-8"))["values"]
    assert all(entry["what"] and entry["source"] for entry in entries.values())


def test_a_broken_parameter_is_named(tmp_path: Path) -> None:
    document = json.loads(parameters.FILE.read_text(encoding="utf-8"))
    document["values"]["eager_bytes"]["value"] = "many"
    broken = tmp_path / "p.json"
    broken.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(SimulateError, match=r"p\.json.*eager_bytes"):
        parameters.read(broken)
    del document["values"]["eager_bytes"]
    document["values"]["eager"] = {"value": 1}
    broken.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(SimulateError, match="`eager` is no parameter"):
        parameters.read(broken)


def test_what_a_calibrated_topology_knows_of_the_inside_of_hosts_is_not_simulated() -> None:
    slow, fast = (
        cluster.prepared(cluster.from_spec(f"2leaf:2node@1GB/s~2us:8core~{inside}"), VALUES)
        for inside in ("20us", "1us")
    )
    assert slow.topology.machine == fast.topology.machine
    assert [level.latency_s for level in slow.topology.machine.levels] == pytest.approx(
        [VALUES.node_latency_s + VALUES.tier_latency_s, 2e-6, VALUES.inside_latency_s]
    )
    # So the bound is of what is simulated, too.
    seats = job.make_job(slow, "block", None)
    assert limits.bound_s(seats, VALUES, "bcast", 64, 0) < 5e-6


def test_hosts_have_as_many_places_as_asked_for_where_the_machine_tells_none() -> None:
    assert cluster.from_spec("2leaf:2node", places=4).hosts == [(f"h{host}", 4) for host in range(4)]
    assert cluster.from_spec("2node:3core", places=4).hosts == [("h0", 3), ("h1", 3)]


def test_links_without_a_capacity_are_noted() -> None:
    assert cluster.notes_on(cluster.from_spec("2leaf@1GB/s:2node@1GB/s:2core")) == []
    (note,) = cluster.notes_on(cluster.from_spec("2leaf@1GB/s:2node:2core"))
    assert "4 of 6 links have no known capacity" in note


def test_more_ranks_than_places_are_refused() -> None:
    with pytest.raises(SimulateError, match="5 ranks don't fit"):
        job.make_job(cluster.from_spec("2node:2core"), "block", 5)


def test_a_wrong_result_is_no_time_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulated(*arguments: Any, **_: Any) -> run.Outcome:
        contender = arguments[3]
        times = {64: 1e-6, 1024: 2e-6} if contender == "fast" else {64: 3e-6, 1024: 4e-6}
        return run.Outcome(contender, times, {64: int(contender == "fast"), 1024: 0}, algorithms={64: "linear"})

    monkeypatch.setattr(compare, "simulate", simulated)
    asked = compare.ComparisonRequest(
        [job.make_job(cluster.from_spec("2node:2core"), "block", None)], ["gather"], [64, 1024], ["fast", "slow"]
    )
    found = compare.compare("smpirun", asked, VALUES, lambda _: None)
    assert [cell.best_rival for cell in found.cells] == ["slow", "fast"]
    assert [cell.ratio for cell in found.cells] == [1.0, 2.0]
    assert [(trouble.contender, trouble.text) for trouble in found.troubles] == [("fast", "wrong result at 64 B")]
    assert "fast gather, block: wrong result at 64 B" in table.closing_lines(found)


def test_large_sizes_are_simulated_each_by_itself_and_may_have_other_rivals() -> None:
    seats = job.make_job(cluster.from_spec("64node:16core"), "block", None)
    sizes = [8, 64, 512, 4096]
    asked = compare.ComparisonRequest(
        [seats], ["alltoall", "bcast"], sizes, ["ompi", "mpich"], rivals_from={"alltoall": (512, ("pair",))}
    )
    runs = [(one.collective, one.contender, tuple(one.sizes)) for one in asked.runs()]
    assert runs == [
        ("alltoall", "palmette", (8, 64)),
        ("alltoall", "palmette", (512,)),
        ("alltoall", "palmette", (4096,)),
        ("alltoall", "ompi", (8, 64)),
        ("alltoall", "mpich", (8, 64)),
        ("alltoall", "pair", (512,)),
        ("alltoall", "pair", (4096,)),
        ("bcast", "palmette", tuple(sizes)),
        ("bcast", "ompi", tuple(sizes)),
        ("bcast", "mpich", tuple(sizes)),
    ]


def test_a_rival_asked_for_some_sizes_only_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulated(*arguments: Any, **_: Any) -> run.Outcome:
        return run.Outcome(arguments[3], dict.fromkeys(arguments[5], 1e-6), dict.fromkeys(arguments[5], 0))

    monkeypatch.setattr(compare, "simulate", simulated)
    seats = job.make_job(cluster.from_spec("2node:2core"), "block", None)
    asked = compare.ComparisonRequest(
        [seats], ["gather"], [64, 1024], ["ompi"], rivals_from={"gather": (1024, ("linear",))}
    )
    found = compare.compare("smpirun", asked, VALUES, lambda _: None)
    assert [sorted(cell.rivals_s) for cell in found.cells] == [["ompi"], ["linear"]]
    assert found.notes == ["gather of 1K and more: the rival asked is linear, as others take too long to simulate"]


def test_the_platform_is_written_without_simgrid(tmp_path: Path, palmette_lab: Call) -> None:
    target = tmp_path / "p.xml"
    result = palmette_lab("simulate", "--machine", "2leaf:2node:2core", "--write-platform", target)
    assert result.status == 0
    assert len(list(ElementTree.parse(target).iter("host"))) == 4


def test_the_stored_platforms_are_listed_within_80_columns(palmette_lab: Call) -> None:
    result = palmette_lab("simulate", "--list")
    assert result.status == 0
    assert "gather-paper" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    listed = json.loads(palmette_lab("simulate", "--list", "--json").out)
    assert set(listed["platforms"]) == set(cluster.stored())
    assert all(one["takes"] and one["sizes_bytes"] for one in listed["sets"].values())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give one of --machine"),
        (("--machine", "2leaf:"), "must begin with a count"),
        (("--platform", "moon"), "'moon' is no platform"),
        (("--topology", "nowhere.json"), "no such file"),
        (("--parameters", "nowhere.json", "--machine", "2node"), "parameters.json"),
        (("--set", "test-bed", "--ranks", "64"), "leave out --machine"),
        (("--set", "test-bed", "--sizes", "1x"), "1x"),
        (("--set", "test-bed", "--sizes", "9", "--collectives", "reduce"), "9 is no multiple of 4"),
    ],
)
def test_bad_input_is_told_in_one_line_with_status_2(arguments: tuple[str, ...], told: str, palmette_lab: Call) -> None:
    result = palmette_lab("simulate", *arguments)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert told in result.err


def test_a_missing_simgrid_is_told_in_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, palmette_lab: Call
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = palmette_lab("simulate", "--machine", "2node:2core")
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "no smpirun" in result.err
    assert "make simulate" in result.err


def test_the_page_names_rivals_and_limits_and_leaves_out_no_cell(tmp_path: Path) -> None:
    seats = job.make_job(cluster.prepared(cluster.from_spec("2leaf@1GB/s:2node@1GB/s:2core"), VALUES), "block", None)
    limit = Limit(1e-6, "the link of h0")
    cells = [
        compare.Cell("gather", 64, "block", 2e-6, "linear", {"ompi": 3e-6}, limit),
        compare.Cell("gather", 1024, "block", None, "linear", {"ompi": 4e-6}, limit),
        compare.Cell("gather", 4096, "block", 5e-6, "linear", {}, limit),
    ]
    target = tmp_path / "page.html"
    write_comparison(target, [seats], compare.ComparisonResult(cells, []), "3.32", "palmette-lab simulate")
    page = target.read_text(encoding="utf-8")
    assert "ompi, gather 64 B\n3 us, simulated" in page
    assert "the link of h0" in page
    assert "1 samples" not in page
    assert "compared with nothing, as no rival is right" in page
    assert [cell["wrong"] for cell in json.loads(page.split('id="cells">')[1].split("</script>")[0])] == [False, True]
