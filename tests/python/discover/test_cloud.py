"""Instance topologies of clouds, in the forms that their documentation shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palmette.discover.cloud import discover_cloud
from palmette.discover.run import discover
from palmette.topology.found import DiscoverError, SourceResult


def read(tmp_path: Path, *documents: Any) -> SourceResult:
    path = tmp_path / "cloud.json"
    path.write_text("\n".join(json.dumps(one, indent=1) for one in documents), encoding="utf-8")
    return discover_cloud(str(path))


def tree(found: SourceResult) -> dict[str, list[str]]:
    """Return the hosts below each group."""
    assert found.machine is not None
    return {
        node.name: sorted(host.name for host in node.hosts())
        for node in found.machine.tree.walk()
        if node.children and node.level is not None
    }


def aws(name: str, *nodes: str) -> dict[str, Any]:
    return {
        "InstanceId": name, "InstanceType": "p5.48xlarge", "NetworkNodes": list(nodes),
        "AvailabilityZone": "us-west-2a", "ZoneId": "usw2-az2",
    }  # fmt: skip


AWS = {"Instances": [aws("i-1", "nn-a", "nn-b", "nn-c"), aws("i-2", "nn-a", "nn-b", "nn-c"),
                     aws("i-3", "nn-a", "nn-b", "nn-d"), aws("i-4", "nn-a", "nn-e", "nn-f")]}  # fmt: skip
NAMES = {
    "Reservations": [
        {"Instances": [{"InstanceId": f"i-{n}", "PrivateDnsName": f"ip-10-0-0-{n}.ec2.internal"}]} for n in range(1, 5)
    ]
}


def test_network_nodes_of_aws_are_layers_from_the_top_and_hosts_have_their_names(tmp_path: Path) -> None:
    for order in ((AWS, NAMES), (NAMES, AWS)):
        found = read(tmp_path, *order)
        assert [level.name for level in found.machine.levels] == ["pod", "leaf", "node"]  # type: ignore[union-attr]
        assert tree(found) == {
            "nn-b": ["ip-10-0-0-1", "ip-10-0-0-2", "ip-10-0-0-3"], "nn-c": ["ip-10-0-0-1", "ip-10-0-0-2"],
            "nn-d": ["ip-10-0-0-3"], "nn-e": ["ip-10-0-0-4"], "nn-f": ["ip-10-0-0-4"],
        }  # fmt: skip
        assert found.warnings == []


def test_instances_without_a_host_name_are_told(tmp_path: Path) -> None:
    found = read(tmp_path, AWS)
    assert "4 instances such as i-1 without a host name" in str(found.warnings)
    assert tree(found)["nn-c"] == ["i-1", "i-2"]


def test_a_list_that_goes_on_is_told(tmp_path: Path) -> None:
    assert "next page" in str(read(tmp_path, NAMES, {**AWS, "NextToken": "x"}).warnings)
    assert "next page" not in str(read(tmp_path, NAMES, {**AWS, "NextToken": ""}).warnings)


def test_instances_of_google_are_in_blocks_and_subblocks(tmp_path: Path) -> None:
    def instance(name: str, block: str, subblock: str) -> dict[str, Any]:
        topology = {"cluster": "c1", "block": block, "subblock": subblock, "host": f"h-{name}"}
        return {"name": name, "id": "77", "resourceStatus": {"physicalHostTopology": topology}}

    found = read(tmp_path, [instance("a", "1", "1"), instance("b", "1", "2"), instance("c", "2", "1")])
    assert tree(found) == {
        "c1/1": ["a", "b"], "c1/1/1": ["a"], "c1/1/2": ["b"], "c1/2": ["c"], "c1/2/1": ["c"]
    }  # fmt: skip
    older = [{"name": n, "resourceStatus": {"physicalHost": f"/c1/{b}/h-{n}"}} for n, b in (("a", 1), ("b", 2))]
    assert tree(read(tmp_path, older)) == {"c1/1": ["a"], "c1/2": ["b"]}


def test_hosts_of_oracle_are_in_local_blocks(tmp_path: Path) -> None:
    def host(name: str, block: str, local: str) -> dict[str, Any]:
        return {
            "instance-id": f"ocid1.instance.{name}", "compute-hpc-island-id": "ocid1.island.1",
            "compute-network-block-id": block, "compute-local-block-id": local, "lifecycle-state": "ACTIVE",
        }  # fmt: skip

    hosts = {"data": {"items": [host("a", "n1", "l1"), host("b", "n1", "l2"), host("c", "n2", "l3")]}}
    names = {"data": [{"id": f"ocid1.instance.{n}", "display-name": f"node-{n}"} for n in "abc"]}
    found = read(tmp_path, hosts, names)
    assert tree(found) == {
        "n1": ["node-a", "node-b"], "l1": ["node-a"], "l2": ["node-b"], "n2": ["node-c"], "l3": ["node-c"]
    }  # fmt: skip
    assert found.warnings == []


def test_instances_whose_place_isnt_told_are_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, NAMES, {"Instances": [*AWS["Instances"], aws("i-9")]})
    assert "1 instance" in str(found.left_out) or "instances" in str(found.left_out)
    assert all("i-9" not in hosts for hosts in tree(found).values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no instance with its place"),
        ("[]", "no instance with its place"),
        ('{"Instances": [{"InstanceId": "i-1"}]}', "no instance with its place"),
        ('{"Instances": [\n{"InstanceId" "i-1"}]}', r"not JSON \(Expecting ':' delimiter\), .*cloud.json:2"),
        ("[" * 100_000, "not JSON|no instance"),
        ('{"Instances": {"NetworkNodes": 3}, "data": 7}', "no instance with its place"),
    ],
)
def test_what_cant_be_used_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cloud.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DiscoverError, match=message):
        discover_cloud(str(path))


def test_it_is_a_source_as_others_are(tmp_path: Path) -> None:
    read(tmp_path, AWS, NAMES)
    topology = discover([("cloud", str(tmp_path / "cloud.json")), ("synthetic", "1node:2socket:4core")])
    assert [level.name for level in topology.machine.levels] == ["pod", "leaf", "node", "socket", "core"]
    with pytest.raises(DiscoverError, match="describe-instance-topology"):
        discover([("cloud", None)])
