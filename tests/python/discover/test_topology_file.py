"""topology.json: what is written is what the schema says and what is read again; errors name the place."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import palmette
from discover.listing import two_leaves
from palmette.discover.run import discover
from palmette.topology.file import TopologyError, load, parse

SCHEMA = json.loads((Path(palmette.__file__).parent / "schemas" / "topology.schema.json").read_text())
FIXTURES = Path(__file__).resolve().parents[2] / "data" / "fabrics"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

SOURCES = [
    [("ibnetdiscover", str(FIXTURES / "fat-tree.txt"))],
    [("ibnetdiscover", str(FIXTURES / "fat-tree-p.txt")), ("synthetic", "1node:2socket:4core")],
    [("synthetic", "3leaf@50Mbit/s~5ms:3+3+2node:2core")],
    [("hwloc", None)],
]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("sources", SOURCES)
def test_what_discovery_writes_fits_the_schema_and_is_read_back_unchanged(
    sources: list[tuple[str, str | None]],
) -> None:
    topology = discover(sources)
    text = io.StringIO()
    topology.write(text)
    document = json.loads(text.getvalue())
    assert document == json.loads(json.dumps(topology.to_json()))
    VALIDATOR.validate(document)
    assert parse(text.getvalue()) == topology


def test_a_listing_full_of_noise_still_fits_the_schema(tmp_path: Path) -> None:
    fabric = two_leaves()
    fabric.cable("leaf1", "leaf1")
    fabric.host("x", "leaf1", name="")
    path = tmp_path / "fabric.txt"
    path.write_text("$ ibnetdiscover\n" + fabric.text().replace(" 4xHDR", "") + "junk\n")
    VALIDATOR.validate(discover([("ibnetdiscover", str(path))]).to_json())


def test_real_fabrics_fit_the_schema(fabrics: Path) -> None:
    for name in ("topograph.txt", "corrupted-line.txt", "manpage-2007-g.txt", "ports-unlinked.txt"):
        VALIDATOR.validate(discover([("ibnetdiscover", str(fabrics / name))]).to_json())


def test_a_latency_of_zero_is_written_and_read() -> None:
    topology = discover([("synthetic", "2leaf~0s:2node")])
    assert topology.to_json()["machine"]["levels"][0]["latency_s"] == 0.0
    assert parse(json.dumps(topology.to_json())) == topology


def test_the_example_in_the_reference_is_a_valid_file() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "topology-json.md"
    example = page.read_text().split("```json\n")[1].split("```")[0]
    VALIDATOR.validate(json.loads(example))
    assert [host.name for host in parse(example).machine.tree.hosts()] == ["n001"]


def document() -> dict[str, Any]:
    return discover([("synthetic", "2leaf@1GB/s:2node:2core")]).to_json()


def broken(path: str, value: object) -> str:
    """The document with `value` at a dotted path, as text."""
    whole = document()
    *parents, last = path.split(".")
    place: Any = whole
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "other", r'\$\.format: expected "palmette-topology"'),
        ("version", 2, r"\$\.version: expected 1, found 2"),
        ("machine.tree.children.1.up_bytes_per_s", "fast",
         r"\$\.machine\.tree\.children\[1\]\.up_bytes_per_s: expected a"),
        ("machine.tree.children.0.up_bytes_per_s", 0, "from 1 to 1e"),
        ("machine.tree.children.0.level", "nowhere", r'children\[0\]\.level: "nowhere" is not in machine\.levels'),
        ("machine.tree.children.0.children.1.level", "leaf", "must stand after its parent's level"),
        ("machine.tree.children.0.children.1.inside", "x", r'inside: "x" is not in machine\.insides'),
        ("machine.tree.children.1.children.0.name", "h0", r'host "h0" is already at \$\.machine\.tree\.children\[0\]'),
        ("machine.tree.children.1.children", "none", "expected a list, found a string"),
        ("machine.tree.children.1.name", "", "missing or empty"),
        ("machine.levels.1.name", "host", 'no level is called "node"'),
        ("machine.levels.0.latency_s", -1, "expected seconds"),
        ("machine.insides", {"2core": [{"level": "core", "count": 0}]}, "at least 1, found 0"),
        ("machine.tree.aggregators", [{}], r"\$\.machine\.tree\.aggregators\[0\]\.name: missing or empty"),
        ("machine.tree.aggregators", [{"name": "a", "up_bytes_per_s": 0}], "up_bytes_per_s: expected a number from 1"),
        ("machine.tree.aggregators", [{"name": "a", "address": "n9"}],
         r'aggregators\[0\]\.address: "n9" of a: expected HOST:PORT, with a port from 1 to 65535'),
        ("machine.tree.aggregators", [{"name": "a", "address": "n9:65536"}], "expected HOST:PORT"),
        ("machine.tree.aggregators", [{"name": "a", "kind": "x"}], r'kind: "x" of a: expected daemon or sharp'),
        ("machine.tree.aggregators", [{"name": "a", "kind": "sharp", "address": "n9:1"}], r"address: switches that"),
        ("machine.tree.aggregators", [{"name": "a", "limits": {"bytes": 0}}], r"limits\.bytes: expected a whole"),
        ("machine.tree.children.0.children.1.aggregators", [{"name": "a"}], "a host has none; list them at its switch"),
        ("machine", [], "expected an object, found a list"),
        ("fabric", {"links": [{"a": "x", "b": "y"}]}, r'links\[0\]\.a: "x" is no switch id'),
        ("sources", [{}], r"\$\.sources\[0\]\.kind: missing"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_json_path_and_what_is_wrong(path: str, value: object, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        parse(broken(path, value), "cluster.json")
    assert str(caught.value).startswith("cluster.json: $")


def test_a_file_that_is_not_there_or_no_json_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="no such file; `palmette discover"):
        load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{\n "format": \n')
    with pytest.raises(TopologyError, match=r"bad\.json:3: not JSON"):
        load(tmp_path / "bad.json")


def test_aggregators_are_read_and_written_with_their_links_addresses_and_limits(tmp_path: Path) -> None:
    whole = document()
    listed = [
        {"name": "a", "up_bytes_per_s": 5e7, "address": "10.0.0.9:7117", "limits": {"children": 8, "bytes": 65536}},
        {"name": "b"},
        {"name": "c", "kind": "sharp"},
    ]
    whole["machine"]["tree"]["aggregators"] = listed
    topology = parse(json.dumps(whole))
    assert [one.name for one in topology.machine.tree.aggregators] == ["a", "b", "c"]
    topology.save(tmp_path / "topology.json")
    assert load(tmp_path / "topology.json").machine == topology.machine
    assert json.loads((tmp_path / "topology.json").read_text())["machine"]["tree"]["aggregators"] == listed
    VALIDATOR.validate(whole)


def test_unknown_keys_are_ignored() -> None:
    whole = document() | {"comment": 1}
    whole["machine"]["tree"]["color"] = "green"
    assert parse(json.dumps(whole)).machine == parse(json.dumps(document())).machine
