"""Machines for the lab, and the network and topology.json that are made of them. No root needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.discover.run import discover
from palmette.topology import file as topology_file
from palmette_lab.lab import LabError
from palmette_lab.lab.network import link_commands, plan_network
from palmette_lab.lab.shaping import burst_bytes, shaping_lines
from palmette_lab.lab.spec import PAYLOAD_SHARE, read_spec
from palmette_lab.lab.topology import lab_topology, save_topology

EIGHT = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def test_the_synthetic_form_gives_hosts_slots_and_link_rates() -> None:
    spec = read_spec(EIGHT)
    assert [host.name for host in spec.hosts] == [f"h{i}" for i in range(8)]
    assert {spec.slots(host) for host in spec.hosts} == {2}
    assert spec.line_bits_per_s["leaf2"] == 50e6
    assert spec.line_bits_per_s["h7"] == 100e6


def test_the_latency_of_the_outermost_level_is_the_delay_of_the_top_switch() -> None:
    assert read_spec("2leaf@50Mbit/s~5ms:2node").spine_delay_s == pytest.approx(5e-3)


def test_latencies_that_were_measured_delay_nothing(tmp_path: Path) -> None:
    topology = discover([("synthetic", "2leaf@50Mbit/s:2node")])
    for level in topology.machine.levels:
        level.latency_s, level.source = 1e-3, "calibrated"
    topology.save(tmp_path / "t.json")
    assert read_spec(str(tmp_path / "t.json")).spine_delay_s == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2leaf:2node~5ms", "delays the top switch only"),
        ("251node", "a lab takes 1 to 250"),
        ("aggregator:250node", "has 251 hosts and aggregators; a lab takes 1 to 250"),
        ("aggregator@5:2node", "'5' is not a rate"),
        ("3leaf:nodes", "'nodes' must begin with a count"),
        ("no-such-file.json", "no such file"),
    ],
)
def test_a_machine_that_cannot_be_emulated_is_refused_with_its_reason(text: str, complaint: str) -> None:
    with pytest.raises(LabError, match=complaint):
        read_spec(text)


def test_the_topology_states_payload_and_reads_back_to_the_same_links(tmp_path: Path) -> None:
    spec = read_spec(EIGHT)
    path = tmp_path / "topology.json"
    save_topology(path, lab_topology("x", EIGHT, spec, spec.line_bits_per_s))
    written = topology_file.load(path)
    assert written.machine.tree.children[0].up_bytes_per_s == pytest.approx(50e6 / 8 * 1448 / 1514)
    again = read_spec(str(path))
    assert again.line_bits_per_s == pytest.approx(spec.line_bits_per_s)
    assert [again.slots(host) for host in again.hosts] == [2] * 8


def test_a_delay_stands_in_the_topology_as_the_latency_of_the_outermost_level(tmp_path: Path) -> None:
    spec = read_spec("2leaf~5ms:2node")
    topology = lab_topology("x", "", spec, {})
    assert [level.latency_s for level in topology.machine.levels] == [pytest.approx(5e-3), None]


def test_every_switch_is_a_bridge_and_every_edge_a_cable_shaped_at_both_ends() -> None:
    spec = read_spec("2tier@80Mbit/s:2leaf@50Mbit/s:2node@100Mbit/s")
    network = plan_network(spec)
    assert len(network.bridges) == 1 + 2 + 4
    assert len(network.edges) == 2 + 4 + 8
    leaf = next(edge for edge in network.edges if edge.child == "leaf3")
    assert leaf.bridge == network.bridges["tier1"]
    lines = shaping_lines(network.edges, spec.line_bits_per_s)
    assert sum(map(len, lines.values())) == 2 * len(network.edges)
    assert all("tbf rate 100000000bit" in line for line in lines["h0"])


def test_interface_names_and_addresses_are_unique() -> None:
    network = plan_network(read_spec("25leaf:10node"))
    ports = [port for edge in network.edges for port in (edge.lower, edge.upper)]
    assert len(set(ports)) == len(ports)
    assert len(set(network.addresses.values())) == 250
    assert all(len(port.interface) <= 15 for port in ports)


def test_a_delay_switch_takes_the_place_of_the_top_bridge_only() -> None:
    network = plan_network(read_spec("2leaf~5ms:2node"))
    assert network.delayed_ports == ["d1", "d2"]
    assert "link set d1 up" in link_commands(network, "cubic")


def test_hosts_without_switches_hang_on_the_top_one() -> None:
    network = plan_network(read_spec("3node@1Gbit/s"))
    assert list(network.bridges.values()) == ["b0"]
    assert {edge.bridge for edge in network.edges} == {"b0"}


def test_an_aggregator_is_one_more_host_at_its_switch(tmp_path: Path) -> None:
    form = "aggregator@400Mbit/s+aggregator:2leaf@50Mbit/s~5ms+aggregator@1Gbit/s:2node@50Mbit/s"
    spec = read_spec(form)
    network = plan_network(spec)
    assert [host.name for host in spec.hosts] == ["h0", "h1", "h2", "h3"]
    assert network.addresses["h3"] == "10.77.0.4"
    assert network.addresses["aggregator0"] == "10.77.0.5"
    edges = {edge.child: edge for edge in network.edges if edge.level == "aggregator"}
    assert {name: edge.upper.interface for name, edge in edges.items()} == {f"aggregator{i}": f"a{i}" for i in range(4)}
    assert [edge.bridge for edge in edges.values()] == [None, None, "b1", "b2"]
    assert network.delayed_ports == ["d1", "d2", "a0", "a1"]
    lines = shaping_lines(network.edges, spec.line_bits_per_s)
    assert "tbf rate 400000000bit" in lines["aggregator0"][0]
    assert "tbf" not in lines["aggregator1"][0]

    save_topology(tmp_path / "topology.json", lab_topology("x", form, spec, spec.line_bits_per_s))
    leaf = topology_file.load(tmp_path / "topology.json").machine.tree.children[1]
    assert leaf.aggregators[0].address == "10.77.0.8:7117"
    assert leaf.aggregators[0].up_bytes_per_s == pytest.approx(1e9 / 8 * PAYLOAD_SHARE)
    assert read_spec(str(tmp_path / "topology.json")).line_bits_per_s == pytest.approx(spec.line_bits_per_s)


def test_an_aggregator_and_a_host_of_one_name_are_refused(tmp_path: Path) -> None:
    topology = discover([("synthetic", "aggregator:2node")])
    topology.machine.tree.aggregators[0].name = "h1"
    topology.save(tmp_path / "t.json")
    with pytest.raises(LabError, match="are called h1; give each its own name"):
        read_spec(str(tmp_path / "t.json"))


def test_a_bucket_holds_two_frames_at_least_and_a_tenth_of_a_millisecond() -> None:
    assert burst_bytes(1e6) == 3200
    assert burst_bytes(10e9) == 125_000


def test_payload_share_is_that_of_full_frames_with_time_stamps() -> None:
    assert PAYLOAD_SHARE == (1500 - 20 - 20 - 12) / (1500 + 14)
