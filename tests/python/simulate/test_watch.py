"""What palmette is told of traffic on a simulated cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palmette_lab.simulate import cluster, compare, job, parameters, run
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.watch import watched
from palmette_lab.traffic import Traffic

Call = Callable[..., Any]
VALUES = parameters.read()
SMALL = "2leaf@1GB/s~2us:4node@2GB/s~1us:2core"


def background(spec: str = SMALL, traffic: str = "alltoall:all:64K") -> tuple[cluster.Cluster, job.Background]:
    bed = cluster.prepared(cluster.from_spec(spec), VALUES)
    return bed, job.background_of(bed, Traffic.parse(traffic))


def test_the_link_that_is_the_limit_is_nearly_full_and_others_as_their_bytes_say(smpirun: str) -> None:
    bed, others = background()
    loads = {load.name: load.share for load in watched(smpirun, bed, others, VALUES).loads}
    assert set(loads) == {"leaf0", "leaf1", *(f"h{host}" for host in range(8))}
    assert 0.5 < loads["leaf0"] <= 1
    # Of 16 processes 8 send to 8 over a leaf's link, and 2 to 14 over a node's, which has twice the capacity.
    assert loads["h0"] / loads["leaf0"] == pytest.approx(2 * 14 / (8 * 8) / 2)


def test_one_process_loads_nothing(smpirun: str) -> None:
    bed, others = background("1leaf@1GB/s~2us:1node@2GB/s~1us:2core", "alltoall:half:64K")
    assert len(others.hosts) == 1
    assert {load.share for load in watched(smpirun, bed, others, VALUES).loads} == {0.0}


def test_traffic_that_takes_too_long_is_named(smpirun: str) -> None:
    bed, others = background("2leaf@1GB/s~2us:32node@2GB/s~1us:8core")
    with pytest.raises(SimulateError, match=r"the background traffic alone didn't run: .*CPU.*; choose"):
        watched(smpirun, bed, others, VALUES, cpu_limit_s=1)


def test_a_comparison_whose_traffic_takes_too_long_to_be_watched_goes_on_and_says_so(
    smpirun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object, **__: object) -> job.Background:
        raise SimulateError("over its 1 s of CPU")

    monkeypatch.setattr(compare, "watched", too_long)
    bed, others = background()
    jobs = [job.make_job(bed, placement, None, others) for placement in ("block", "cyclic")]
    found = compare.compare(smpirun, compare.ComparisonRequest(jobs, ["gather"], [64], []), VALUES, lambda _: None)
    assert [cell.palmette_s for cell in found.cells] != [None, None]
    assert list(found.notes) == ["palmette doesn't know the load of links: over its 1 s of CPU"]
    assert found.loads == ()


def test_loads_of_a_real_cluster_are_left_out_and_that_is_said(smpirun: str) -> None:
    read = cluster.from_spec(SMALL)
    tree = read.topology.machine.tree
    busy = replace(tree, children=[replace(child, load=0.6) for child in tree.children])
    loaded = replace(read, topology=replace(read.topology, machine=replace(read.topology.machine, tree=busy)))
    assert "the loads that 2 of 10 links have aren't simulated" in cluster.notes_on(loaded)[0]
    assert cluster.prepared(loaded, VALUES) == cluster.prepared(read, VALUES)


def test_palmette_is_told_of_the_load_and_a_quiet_job_not(smpirun: str, tmp_path: Path) -> None:
    bed, others = background()
    told = watched(smpirun, bed, others, VALUES)
    assert hash(told) != hash(others), "studies/simulated_placements.py keeps jobs by what is beside them"
    row = {"function": "gather", "min_load": 0.3, "algorithm": "linear", "why": "busy"}
    quiet = {"function": "gather", "algorithm": "k_nomial", "why": "quiet"}
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": [row, quiet]}), encoding="utf-8")
    for beside, algorithm in ((None, "k_nomial"), (told, "linear")):
        seats = job.make_job(bed, "block", None, beside)
        named = {"PALMETTE_TABLE": str(table)}
        found = run.simulate(smpirun, seats, VALUES, run.PALMETTE, "gather", (1024,), environment=named)
        assert found.algorithms == {1024: algorithm}


def test_the_command_says_what_the_traffic_takes(smpirun: str, palmette_lab: Call) -> None:
    asked = ("simulate", "--machine", SMALL, "--collectives", "gather", "--sizes", "64", "--rivals", "none")
    result = palmette_lab(*asked, "--traffic", "alltoall:all:64K")
    assert result.status == 0, result.err
    assert "load of links by the traffic alone, as palmette knows it: leaf0" in " ".join(result.out.split())
    document = json.loads(palmette_lab(*asked, "--traffic", "alltoall:all:64K", "--json").out)
    assert {load["level"] for load in document["loads"]} == {"leaf", "node"}
    assert all(0 < load["load"] <= 1 for load in document["loads"])
    assert json.loads(palmette_lab(*asked, "--json").out)["loads"] == []
