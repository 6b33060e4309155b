"""Measured load of links, as topology.json tells it, in choices and in orders of ranks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.map.pattern import parse_pattern
from palmette.map.traffic import count_traffic

Call = Callable[..., Any]


def topology(folder: Path, loads: tuple[float, ...], hosts_a_leaf: int = 4) -> Path:
    """Leaves with hosts of two slots each; `loads` of the leaves' uplinks, or of the hosts' where there is one leaf."""
    leaves = []
    for number, load in enumerate(loads):
        busy = {"load": load} if load else {}
        host = {"level": "node", "slots": 2, "up_bytes_per_s": 12.5e6} | (busy if len(loads) == 1 else {})
        hosts = [host | {"name": f"h{number}-{i}"} for i in range(hosts_a_leaf)]
        leaves.append({"level": "leaf", "name": f"leaf{number}", "up_bytes_per_s": 50e6, "children": hosts} | busy)
    levels = [{"name": "leaf", "latency_s": 2e-4}, {"name": "node", "latency_s": 1e-4}]
    machine = {"levels": levels, "tree": {"name": "top", "children": leaves}}
    path = folder / f"topology-{len(loads)}-{hosts_a_leaf}-{loads[0]}-{loads[-1]}.json"
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("collective", "size"), [("allgather", "16K"), ("reduce_scatter_block", "1K")])
def test_where_uplinks_are_loaded_the_model_chooses_what_crosses_them_less(
    palmette: Call, tmp_path: Path, collective: str, size: str
) -> None:
    table = tmp_path / "table.json"
    rows = [{"function": collective, "algorithm": "model", "why": "a test"}]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")

    def asked(loads: tuple[float, float]) -> dict[str, Any]:
        call = ("explain", collective, size, "--topology", topology(tmp_path, loads), "--table", table, "--json")
        result = palmette(*call)
        assert result.status == 0, result.err
        answer: dict[str, Any] = json.loads(result.out)
        return answer

    quiet, loaded = asked((0, 0)), asked((0.9, 0.9))
    assert quiet["algorithm"].startswith("leaders")
    assert loaded["algorithm"].startswith("ring")


def test_a_row_may_ask_for_loaded_links(palmette: Call, tmp_path: Path) -> None:
    def explained(loads: tuple[float, float], *more: Any) -> Any:
        return palmette("explain", "bcast", "16K", "--topology", topology(tmp_path, loads), *more)

    quiet, loaded = explained((0, 0)), explained((0, 0.5))
    assert "top=chain" in quiet.out.splitlines()[1]
    assert "for links of which other traffic takes 30 % and more, here it is 0 %" in " ".join(quiet.out.split())
    assert "top=linear" in loaded.out.splitlines()[1]
    assert "a link with a load of 30 % and more" in " ".join(loaded.out.split())

    table = tmp_path / "table.json"
    row = {"function": "bcast", "min_load": 0.5, "algorithm": "linear", "why": "a test"}
    document = {"format": "palmette-table", "version": 1, "rows": [row, {"function": "bcast", "algorithm": "mpi"}]}
    table.write_text(json.dumps(document), encoding="utf-8")
    for load, algorithm in ((0.49, None), (0.5, "linear")):
        asked = json.loads(explained((load, 0), "--table", table, "--json").out)
        assert asked["algorithm"] == algorithm or (algorithm is None and asked["algorithm"] == "mpi")
    row["min_load"] = 1.5
    table.write_text(json.dumps(document), encoding="utf-8")
    wrong = explained((0, 0), "--table", table)
    assert wrong.status == 2 and "min_load" in wrong.err and "from 0 to below 1" in wrong.err


@pytest.mark.parametrize(
    ("call", "algorithm"),
    [
        ("bcast 64K", "leaders:leaders=6,level=leaf,inside=chain,segment=4K"),
        ("reduce 64K", "by_topology:node=linear,leaf=chain,top=linear,segment=8K"),
        ("allreduce 16K", "leaders:leaders=all,between=all,level=leaf,segment=8K"),
        ("allreduce 256K", "leaders:leaders=all,between=direct,level=leaf,segment=8K"),
        ("allgather 1K", "leaders:between=circulant,level=leaf"),
        ("allgatherv 4K", "leaders:leaders=2,between=circulant,level=leaf"),
    ],
)
def test_the_built_in_table_has_plans_for_busy_links(palmette: Call, tmp_path: Path, call: str, algorithm: str) -> None:
    chosen = [
        json.loads(palmette("explain", *call.split(), "--topology", topology(tmp_path, (0, load)), "--json").out)
        for load in (0, 0.5)
    ]
    assert chosen[0]["algorithm"] != algorithm
    assert chosen[1]["algorithm"] == algorithm


@pytest.mark.parametrize(("mpi", "between"), [("mpich", "direct"), ("openmpi", "all"), ("impi", "all")])
def test_allreduces_beside_traffic_cross_as_often_as_is_best_for_the_mpi(
    palmette: Call, tmp_path: Path, mpi: str, between: str
) -> None:
    asked = ("explain", "allreduce", "64K", "--topology", topology(tmp_path, (0.5, 0)), "--mpi", mpi, "--json")
    assert f"between={between}," in json.loads(palmette(*asked).out)["algorithm"]


@pytest.mark.parametrize(
    "call", ["bcast 16K", "bcast 64K", "reduce 64K", "allreduce 16K", "allreduce 64K", "allgather 1K"]
)
@pytest.mark.parametrize(
    ("leaves", "hosts", "load"),
    [
        pytest.param(1, 8, 0.5, id="one"), pytest.param(5, 2, 0.5, id="five"), pytest.param(2, 4, 0.29, id="idle"),
        pytest.param(2, 40, 0.5, id="many", marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_the_rows_for_busy_links_keep_to_what_was_measured(
    palmette: Call, tmp_path: Path, call: str, leaves: int, hosts: int, load: float
) -> None:
    chosen = []
    for share in (0.0, load):
        path = topology(tmp_path, (share,) * leaves, hosts)
        chosen.append(json.loads(palmette("explain", *call.split(), "--topology", path, "--json").out))
    if call == "bcast 16K" and leaves == 5:
        assert "top=linear" in chosen[1]["algorithm"]  # the one row that asks for nothing but two switches
    else:  # where no row fits, the model knows of the load
        assert chosen[0]["row"] == chosen[1]["row"]
        assert chosen[0]["row"] is None or chosen[0]["algorithm"] == chosen[1]["algorithm"]


@pytest.mark.parametrize(
    ("mpi", "plan"),
    [
        ("mpich", "by_topology:node=linear,leaf=chain,top=chain,segment=4K"),
        ("openmpi", "by_topology:node=linear,leaf=linear,top=linear,segment=8K"),
        ("impi", "by_topology:node=linear,leaf=chain,top=linear,segment=8K"),
    ],
)
def test_reductions_beside_traffic_go_straight_to_the_roots_switch_where_that_is_best_for_the_mpi(
    palmette: Call, tmp_path: Path, mpi: str, plan: str
) -> None:
    asked = ("explain", "reduce", "16K", "--topology", topology(tmp_path, (0.5, 0)), "--mpi", mpi, "--json")
    assert json.loads(palmette(*asked).out)["algorithm"] == plan


def test_a_row_may_ask_for_fast_or_slow_levels_of_known_latency(palmette: Call, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    rows = [
        {"function": "bcast", "max_latency": "20us", "algorithm": "chain", "why": "fast"},
        {"function": "bcast", "min_latency": "500us", "algorithm": "linear", "why": "slow"},
        {"function": "bcast", "algorithm": "mpi", "why": "others"},
    ]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    for latency, algorithm in (
        ("~2us", "chain"),
        ("~20us", "chain"),
        ("~21us", "mpi"),
        ("~500us", "linear"),
        ("", "mpi"),
    ):
        asked = ("explain", "bcast", "1K", "--machine", f"2leaf:2node{latency}:2core", "--table", table)
        found = json.loads(palmette(*asked, "--json").out)
        assert found["algorithm"] == algorithm, latency
    told = " ".join(palmette(*asked).out.split())
    assert "for a level of 20 us and less, here it is unknown" in told
    assert "for a level of 500 us and more, here it is unknown" in told


def test_an_order_is_judged_by_what_load_leaves_of_a_link(tmp_path: Path) -> None:
    def busiest(loads: tuple[float, float]) -> Any:
        job = _core.Job(_core.Machine.from_file(topology(tmp_path, loads)), "block")
        return count_traffic(job, parse_pattern("ring", job.size, 1024), list(range(job.size))).busiest

    quiet, loaded = busiest((0, 0)), busiest((0, 0.9))
    assert quiet.level == "node"
    assert (loaded.level, loaded.group) == ("leaf", "leaf1")


def test_a_row_may_ask_for_few_or_many_switches(palmette: Call, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    rows = [
        {"function": "bcast", "max_switches": 3, "algorithm": "linear", "why": "few"},
        {"function": "bcast", "min_switches": 5, "algorithm": "chain", "why": "many"},
        {"function": "bcast", "algorithm": "mpi", "why": "others"},
    ]
    table.write_text(json.dumps({"format": "palmette-table", "version": 1, "rows": rows}), encoding="utf-8")
    for machine, algorithm in (
        ("8node", "linear"),  # nothing is known above nodes: one switch
        ("3leaf:2node", "linear"),
        ("4leaf:2node", "mpi"),
        ("5leaf:2node", "chain"),
        ("2pod:3leaf:2node", "chain"),  # leaves count
    ):
        asked = palmette("explain", "bcast", "16K", "--machine", machine, "--table", table, "--json")
        assert asked.status == 0, asked.err
        assert json.loads(asked.out)["algorithm"] == algorithm, machine
    looks = palmette("explain", "bcast", "16K", "--machine", "4leaf:2node", "--table", table, "--rows")
    text = " ".join(looks.out.split())
    assert "for up to 3 switches, here are 4" in text and "for 5 switches and more, here are 4" in text


@pytest.mark.parametrize("machine", ["3leaf@50Mbit/s~5ms:3+3+2node:2core", "6leaf@50Mbit/s~5ms:2node:1core"])
@pytest.mark.parametrize(
    ("call", "algorithm"),
    [
        ("bcast 3K", "by_topology:node=linear,leaf=linear,top=linear"),
        ("reduce 3K", "by_topology:node=linear,leaf=linear,top=linear"),
        ("allreduce 512", "leaders:level=leaf,between=all,inside=linear"),
        ("allreduce 4K", "leaders:level=leaf,between=all,inside=linear"),
        ("reduce_scatter_block 1K", "leaders:level=leaf,inside=linear"),
        ("reduce_scatter 1536", "leaders:level=leaf,inside=linear"),
    ],
)
def test_small_calls_cross_a_slow_spine_once(palmette: Call, machine: str, call: str, algorithm: str) -> None:
    asked = palmette("explain", *call.split(), "--machine", machine, "--mpi", "mpich", "--json")
    assert json.loads(asked.out)["algorithm"] == algorithm


def test_a_ring_costs_the_same_nested_or_not_where_nothing_can_be_nested() -> None:
    job = _core.Job(_core.Machine.synthetic("8leaf@12.5GB/s~2us:1node@12.5GB/s~2us:1core"), "block")
    times = dict(_core.rank_by_model(job, "allgather", 0, 16384))
    assert times["ring"] == pytest.approx(times["ring:nested=no"], rel=0.01)
    assert times["ring"] == pytest.approx(7 * (2e-6 + 16384 / 12.5e9))
