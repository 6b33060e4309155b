"""`palmette compose`: stages, counts, scratch, proof, picture, choice, errors."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
NAMES = [name for name, *_ in _core.compositions()]


def test_an_allreduce_shows_its_primitives_stages_scratch_and_proof(palmette: Call) -> None:
    result = palmette("compose", "allreduce", "--hierarchy", "2:4", "--size", "8K")
    assert result.status == 0, result.err
    assert result.out.splitlines()[:4] == [
        "allreduce: 8 ranks on 2 nodes, 8 blocks of 1K",
        "  reduce all to 0: sum of send[0] into recv",
        "  reduce all to 1: sum of send[1] into recv",
        "  reduce all to 2: sum of send[2] into recv",
    ]
    assert "phase 1: between nodes" in result.out
    assert "scratch: " in result.out
    assert result.out.rstrip().endswith("verified: right, without deadlocks or races")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options", [("--hierarchy", "3:2+3+4"), ("--machine", LAB, "--placement", "random:2", "--stripes", "2")]
)
def test_everything_fits_in_80_columns(palmette: Call, name: str, options: tuple[str, ...]) -> None:
    result = palmette("compose", name, *options, "--root", "1", "--pipeline", "2", "--method", "ring")
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80, result.out


def test_json_holds_what_the_text_says(palmette: Call) -> None:
    result = palmette("compose", "gather", "--hierarchy", "2:4", "--method", "direct/1", "--size", "1K", "--json")
    document = json.loads(result.out)
    assert document["verified"] is True
    assert document["count"]["messages"] == 7
    assert document["count"]["levels"][0]["bytes"] == 4096
    assert len(document["scratch_bytes"]) == 8
    assert [stage["messages"] for stage in document["stages"]] == [3, 1, 3]


def test_a_picture_is_drawn_with_an_arrow_for_each_message(palmette: Call, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    result = palmette("compose", "allgather", "--hierarchy", "2:3", "--svg", file)
    assert result.status == 0, result.err
    document = ElementTree.parse(file)
    polygons = document.iter("{http://www.w3.org/2000/svg}polygon")
    plan = _core.named_composition("allgather", 6, 1024).factor(_core.hierarchy_job("2:3", 6))
    assert len(list(polygons)) == plan.count().messages
    assert "allgather" in file.read_text(encoding="utf-8")


def test_a_rank_shows_its_own_steps(palmette: Call) -> None:
    result = palmette("compose", "reduce", "--hierarchy", "2:2", "--rank", "2")
    assert result.status == 0, result.err
    assert "recv from 3" in result.out
    assert "send to 0" in result.out


def test_auto_compares_direct_hierarchical_striped_and_pipelined(palmette: Call) -> None:
    result = palmette("compose", "broadcast", "--machine", LAB, "--size", "1M", "--auto", "--json")
    assert result.status == 0, result.err
    variants = json.loads(result.out)["variants"]
    assert [variant["name"] for variant in variants] == ["direct", "hierarchical", "striped", "pipelined"]
    seconds = [variant["seconds"] for variant in variants]
    assert seconds[1] < seconds[0], "levels keep the vector from crossing an uplink for every rank"
    assert seconds == sorted(seconds, reverse=True), "no step of the ablation is worse than the one before"
    assert variants[1]["outer_bytes"] < variants[0]["outer_bytes"]
    text = palmette("compose", "broadcast", "--machine", LAB, "--size", "1M", "--auto")
    assert "pipelined: --method" in text.out
    assert max(map(len, text.out.splitlines())) <= 80, text.out


def test_a_file_is_composed(palmette: Call, tmp_path: Path) -> None:
    file = tmp_path / "exchange.json"
    primitive = {"multicast": 0, "to": [1, 3], "source": "x", "blocks": [0, 1], "target": "y"}
    file.write_text(json.dumps({"ranks": 4, "bytes": 64, "phases": [[primitive]]}), encoding="utf-8")
    result = palmette("compose", file, "--hierarchy", "2:2")
    assert result.status == 0, result.err
    assert result.out.startswith("exchange: 4 ranks on 2 nodes, 1 block of 64\n  multicast 0 to 1 3: x[0] into y\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("gathr", "--ranks", "4"), "composition 'gathr' is unknown"),
        (("gather",), "no ranks given"),
        ((), "no composition given"),
        (("gather", "--ranks", "23", "--hierarchy", "3:8"), "3:8+8+7 fits"),
        (("gather", "--hierarchy", "3:x"), "'x' is no number"),
        (("gather", "--hierarchy", "2:2", "--method", "star"), "method 'star'"),
        (("gather", "--hierarchy", "2:2", "--method", "ring,ring,ring"), "the tree has 2 levels and 3 methods"),
        (("gather", "--hierarchy", "2:2", "--root", "4"), "root 4 is outside"),
        (("gather", "--hierarchy", "2:2", "--size", "many"), "many"),
        (("nothing.json",), "can't read nothing.json"),
        (("gather", "--machine", LAB, "--topology", "x.json"), "both name a machine"),
        (("gather", "--hierarchy", "2:2", "--rank", "9"), "rank 9 is outside"),
        (("gather", "--hierarchy", "2:2", "--stripes", "2000"), "stripes 2000: expected 1 to 1024"),
        (("gather", "--hierarchy", "2:2", "--svg", "/nowhere/x.svg"), "can't write /nowhere/x.svg"),
    ],
)
def test_bad_input_is_one_line_and_status_2(palmette: Call, arguments: tuple[str, ...], complaint: str) -> None:
    result = palmette("compose", *arguments)
    assert result.status == 2
    assert complaint in result.err
    assert result.err.startswith("palmette compose: ")
    assert len(result.err.splitlines()) == 1


def test_the_list_names_mpis_collectives(palmette: Call) -> None:
    result = palmette("compose", "--list")
    assert [line.split()[0] for line in result.out.splitlines()] == NAMES
    assert len(json.loads(palmette("compose", "--list", "--json").out)) == len(NAMES)


def test_stripes_may_be_as_many_as_hosts_have_adapters(palmette: Call, tmp_path: Path) -> None:
    hosts = [{"name": f"h{number}", "adapters": [f"H-{number}{port}" for port in range(2)]} for number in range(2)]
    document = {
        "format": "palmette-topology",
        "version": 1,
        "fabric": {"switches": [], "hosts": hosts, "links": []},
        "machine": _core.Machine.synthetic("2node@100Mbit/s:4core").to_json(),
    }
    names = _core.Machine.synthetic("2node@100Mbit/s:4core").hosts
    for host, name in zip(hosts, names, strict=True):
        host["name"] = name
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    result = palmette("compose", "broadcast", "--topology", file, "--stripes", "nics", "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["factoring"]["stripes"] == 2
    hosts[1]["adapters"] = []
    file.write_text(json.dumps(document), encoding="utf-8")
    assert "lists no adapters" in palmette("compose", "broadcast", "--topology", file, "--stripes", "nics").err
    assert "needs --topology" in palmette("compose", "broadcast", "--hierarchy", "2:4", "--stripes", "nics").err


def test_flags_for_c_and_cpp_name_folders_that_are_there(palmette: Call) -> None:
    result = palmette("compose", "--cflags", "--json")
    if result.status == 2:
        pytest.skip(result.err)
    assert (Path(json.loads(result.out)["cflags"].removeprefix("-I")) / "palmette.h").is_file()
    assert "expected mpich" in palmette("compose", "--libs", "lam").err
