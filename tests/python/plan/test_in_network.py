"""Plans through aggregators: counts, proof, steps of a service position, picture, predicted and simulated times."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
SWITCH = "aggregator@100Mbit/s:8node@50Mbit/s:2core"


def plan_json(palmette: Call, machine: str, *more: str, algorithm: str = "in_network") -> Any:
    call = ("plan", "allreduce", "--machine", machine, "--size", "256K", "--algorithm", algorithm, "--json", *more)
    return json.loads(palmette(*call).out)


@pytest.mark.parametrize(("nodes", "hosts"), [(4, 1.5), (8, 1.75)])
def test_an_adapter_carries_the_vector_once_where_hosts_take_more(palmette: Call, nodes: int, hosts: float) -> None:
    for algorithm, times in (("in_network", 1.0), ("ring", hosts)):
        counted = plan_json(palmette, f"aggregator:{nodes}node", "--count", algorithm=algorithm)["count"]
        links = counted["levels"][0]["links"]
        assert {link["bytes_out"] / 262144 for link in links} == {times}
        assert {link["bytes_in"] / 262144 for link in links} == {times}


def test_counts_have_the_links_of_aggregators(palmette: Call) -> None:
    document = plan_json(palmette, SWITCH, "--count", "--verify", algorithm="in_network:share=100,segment=16K")
    assert document["verified"]
    assert [program.get("service") for program in document["programs"]] == [None] * 16 + [0]
    level = document["count"]["levels"][-1]
    assert level["level"] == "aggregator"
    assert level["links"] == [
        {"group": "aggregator0", "messages_out": 128, "messages_in": 128, "bytes_out": 2097152, "bytes_in": 2097152}
    ]
    assert document["count"]["busiest"]["group"] == "aggregator0"
    call = ("plan", "allreduce", "--machine", SWITCH, "--size", "256K", "--algorithm", "in_network", "--count")
    out = palmette(*call, "--verify").out
    assert "aggregators" in out
    assert "verified: right" in out


def test_a_service_position_has_steps_of_its_own(palmette: Call) -> None:
    call = ("plan", "allreduce", "--machine", "aggregator:3node", "--algorithm", "in_network")
    out = palmette(*call, "--rank", "3").out
    assert "service position 3, aggregator0; blocks are counted by position" in out
    assert "0 recv from 0 tag 0: scratch[0]" in out
    assert palmette(*call, "--rank", "4").status == 2
    listed = palmette(*call, "--all").out
    assert "0→aggregator0" in listed
    assert "aggregator0→2" in listed


def test_the_picture_has_a_row_for_each_aggregator(palmette: Call, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    call = ("plan", "allreduce", "--machine", "aggregator:3node", "--algorithm", "in_network", "--svg", str(file))
    assert palmette(*call).status == 0
    text = file.read_text()
    ElementTree.fromstring(text)
    assert ">agg0</text>" in text
    assert "0 to aggregator0:" in text


@pytest.mark.parametrize("machine", [LAB, SWITCH, "aggregator:8node@50Mbit/s:2core"])
def test_predicted_and_simulated_times_are_near_the_bound_through_the_network(palmette: Call, machine: str) -> None:
    words = ("--machine", machine, "--algorithm", "in_network", "--json")
    predicted = json.loads(palmette("plan", "--predict", "allreduce", "--sizes", "16M", *words).out)["cells"][0]
    simulated = json.loads(palmette("plan", "--flow", "allreduce", "--size", "16M", *words).out)
    for multiple in (predicted["multiple"], simulated["quiet"]["multiple"]):
        assert 0.999999 <= multiple < 1.3


def test_flow_names_the_links_of_aggregators(palmette: Call) -> None:
    call = ("plan", "--flow", "allreduce", "--machine", SWITCH, "--size", "1M", "--algorithm", "in_network:share=100")
    out = palmette(*call).out
    assert "into aggregator0" in out
    levels = json.loads(palmette(*call, "--json").out)["quiet"]["levels"]
    assert [level["level"] for level in levels] == ["node", "aggregator"]
    assert levels[1]["highest_utilisation"] > 0.8


def test_what_chooses_never_offers_aggregators(palmette: Call) -> None:
    for size in ("64", "4K", "256K", "16M"):
        call = ("plan", "allreduce", "--machine", LAB, "--size", size)
        assert "in_network" not in palmette(*call).out
        cells = json.loads(palmette("plan", "--predict", "allreduce", "--machine", LAB, "--sizes", size, "--json").out)[
            "cells"
        ]
        assert not any("in_network" in cell["algorithm"] for cell in cells)


def test_without_a_fitting_aggregator_the_reason_is_one_line(palmette: Call) -> None:
    for machine, why in (
        ("8node", "no aggregator serves the job"),
        ("aggregator:2node", "fewer than 3 groups of level node"),
        ("4leaf+aggregator:2node", "no aggregator stands above all groups"),
    ):
        result = palmette("plan", "allreduce", "--machine", machine, "--algorithm", "in_network")
        assert result.status == 2
        assert why in result.err
        assert len(result.err.splitlines()) == 1


def test_the_job_lists_its_aggregators() -> None:
    job = _core.Job(_core.Machine.synthetic("aggregator@1GB/s:2leaf@500MB/s+aggregator:2node:2core"))
    assert [(one.name, one.level, one.group, one.up_bytes_per_s) for one in job.aggregators] == [
        ("aggregator0", -1, 0, 1e9),
        ("aggregator1", 0, 0, 0),
        ("aggregator2", 0, 1, 0),
    ]
    assert [job.parting_level(0, other) for other in (1, 2, 4, 8, 9, 10)] == [2, 1, 0, 0, 1, 0]
    assert _core.Job.from_json(job.to_json()).to_json() == job.to_json()
    inner = job.restricted_to([0, 2])
    assert [(one.name, one.up_bytes_per_s) for one in inner.aggregators] == [("aggregator0", 5e8), ("aggregator1", 0)]
