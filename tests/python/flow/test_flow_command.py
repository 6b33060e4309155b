"""`palmette plan --flow`: times, links, quiet and loaded, the picture, speed, errors."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def test_a_gather_that_fills_the_roots_link_takes_once_the_bound(palmette: Call) -> None:
    call = ("plan", "--flow", "gather", "--machine", LAB, "--size", "64K", "--algorithm", "linear")
    result = palmette(*call)
    assert result.status == 0
    assert "into leaf0" in result.out
    assert "not known, taken as free: latencies, overheads" in result.out
    document = json.loads(palmette(*call, "--json").out)
    assert document["quiet"]["multiple"] == pytest.approx(1)
    assert document["quiet"]["messages"] == 15
    assert document["loaded"] is None
    leaf = document["quiet"]["levels"][0]
    assert leaf["level"] == "leaf"
    assert leaf["highest_utilisation"] == pytest.approx(1)
    into = [link for link in document["quiet"]["links"] if (link["group"], link["direction"]) == ("leaf0", "in")]
    assert into[0]["bytes"] == 10 * 65536
    assert into[0]["carried_bytes"] == pytest.approx(10 * 65536)


def test_quiet_and_loaded_stand_side_by_side(palmette: Call) -> None:
    call = ("plan", "--flow", "allgather", "--machine", LAB, "--placement", "random:1", "--size", "64K",
            "--algorithm", "ring", "--traffic", "alltoall:half:64K")  # fmt: skip
    document = json.loads(palmette(*call, "--json").out)
    assert document["loaded"]["seconds"] > 1.2 * document["quiet"]["seconds"]
    assert document["loaded"]["background_messages"] > 0
    out = palmette(*call).out
    head = next(line for line in out.splitlines() if "quiet" in line)
    assert head.split() == ["quiet", "loaded"]
    again = json.loads(palmette(*call, "--json").out)
    assert again == document
    other = json.loads(palmette(*call, "--json", "--seed", "2").out)
    assert other["quiet"] == document["quiet"]
    assert other["loaded"] != document["loaded"]


def test_the_picture_has_a_row_for_each_link_and_folds_many(palmette: Call, tmp_path: Path) -> None:
    file = tmp_path / "flow.svg"
    call = ("plan", "--flow", "allgather", "--size", "64K", "--algorithm", "ring", "--svg", file)
    assert palmette(*call, "--machine", LAB, "--traffic", "alltoall").status == 0
    text = file.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    for name in ("out of leaf0", "into h7", "quiet: ", "loaded: "):
        assert name in text
    assert palmette(*call, "--machine", "4leaf@1GB/s:16node@1GB/s:1core").status == 0
    text = file.read_text(encoding="utf-8")
    assert "105 others, mean" in text
    assert len(re.findall(r">out of leaf\d+</text>", text)) == 4


def test_bytes_over_time_add_up_in_json_and_in_the_picture(palmette: Call, tmp_path: Path) -> None:
    call = ("plan", "--flow", "gather", "--machine", LAB, "--placement", "cyclic", "--size", "64K")
    file = tmp_path / "flow.svg"
    played = json.loads(palmette(*call, "--json", "--over-time", "--svg", file).out)["quiet"]
    for link in played["links"]:
        assert sum(link["carried_over_time"]) == pytest.approx(link["carried_bytes"], rel=1e-3, abs=1)
        full = link["bytes_per_s"] * played["interval_s"]
        assert max(link["carried_over_time"]) <= 1.001 * full
    assert played["interval_s"] * len(played["links"][0]["carried_over_time"]) >= played["seconds"]
    told = re.findall(r"<title>into leaf0, (.*) to (.*): (\w+)</title></rect>", file.read_text(encoding="utf-8"))
    (into,) = [link for link in played["links"] if (link["group"], link["direction"]) == ("leaf0", "in")]
    assert sum(_core.parse_size(size) for _, _, size in told) == pytest.approx(into["bytes"], rel=0.05)
    refused = palmette(*call, "--over-time")
    assert (refused.status, refused.err.count("\n")) == (2, 1)


def test_background_messages_that_outlast_the_plan_are_explained(palmette: Call) -> None:
    note = "no background message ended before the plan did; those under way took their share of the links"
    for size, ends in (("1K", False), ("64K", True)):
        out = palmette("plan", "--flow", "gather", "--machine", LAB, "--traffic", "alltoall", "--size", size).out
        counts = {line[:-20].rstrip(): line.split()[-2:] for line in out.splitlines() if line.startswith("background")}
        assert (counts["background messages ended"][1] != "0") is ends
        assert counts["background bytes between leaves"][1] != "0"
        assert (note in " ".join(out.split())) is not ends


@pytest.mark.parametrize("collective", _core.collectives())
def test_everything_fits_in_80_columns(palmette: Call, collective: str) -> None:
    result = palmette("plan", "--flow", collective, "--machine", LAB, "--placement", "cyclic", "--size", "64K",
                      "--traffic", "alltoall:half:64K")  # fmt: skip
    if "leaves this call to the MPI" in result.err:
        pytest.skip("the table leaves this call to the MPI")
    assert result.status == 0, result.err
    assert not [line for line in result.out.splitlines() if len(line) > 80]


def test_a_machine_without_capacities_shares_nothing(palmette: Call) -> None:
    result = palmette("plan", "--flow", "bcast", "--machine", "2node~1ms:2core", "--algorithm", "k_nomial")
    assert result.status == 0
    assert "no capacity of any link is known" in result.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no machine given"),
        (("--machine", LAB, "--traffic", "ring"), "'ring' is no pattern"),
        (("--machine", LAB, "--algorithm", "fast"), "fast"),
        (("--machine", "64leaf:64node:16core", "--algorithm", "ring"), "too many to hold at once"),
    ],
)
def test_bad_input_is_told_in_one_line(palmette: Call, options: tuple[str, ...], message: str) -> None:
    result = palmette("plan", "--flow", "allgather", *options)
    assert result.status == 2
    assert result.err.startswith("palmette plan: ")
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("placement", "algorithm", "most_work"),  # seconds are told by studies/scale.py
    [
        ("block", "ring", 1_000),
        ("random:1", "ring", 1_000),
        # Every message shares links with a hundred others.
        pytest.param("random:1", "ring:nested=no,order=rank", 40_000_000, marks=pytest.mark.long),
    ],
)
def test_a_ring_of_1024_ranks_is_played(placement: str, algorithm: str, most_work: int) -> None:
    job = _core.Job(_core.Machine.synthetic("16leaf@100GB/s~2us:4node@25GB/s~1us:16core"), placement)
    told: list[int] = []
    plan = _core.Plan(job, "allgather", algorithm, block_bytes=65536)
    result = _core.flow(plan, progress=lambda done, _total: told.append(done))
    assert result.messages == 1024 * 1023
    assert result.work < most_work
    assert told == sorted(told)
    assert len(told) > 10
    assert result.seconds >= _core.bound(job, "allgather", 65536).seconds


@pytest.mark.parametrize("algorithm", ["linear", "k_nomial", "by_topology"])
@pytest.mark.parametrize("placement", ["block", "random:1"])
def test_a_gather_of_16384_ranks_is_played(placement: str, algorithm: str) -> None:
    job = _core.Job(_core.Machine.synthetic("32leaf@100GB/s~2us:32node@25GB/s~1us:16core"), placement)
    plan = _core.Plan(job, "gather", algorithm, block_bytes=65536)
    result = _core.flow(plan)
    assert result.messages == 16383
    assert result.work < 3_000
    assert result.seconds >= _core.bound(job, "gather", 65536).seconds * (1 - 1e-9)
