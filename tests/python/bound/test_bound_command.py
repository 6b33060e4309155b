"""`palmette plan --bound`: the limit, what sets it, the table behind it, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

Call = Callable[..., Any]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def test_the_limit_is_told_with_what_sets_it_and_with_the_networks_help_beside_it(palmette: Call) -> None:
    out = palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", "256K").out
    assert "bound: 55.92 ms, 1048576 bytes over all links of level leaf, 18.8 MB/s" in out
    assert "bound where the network reduces and multicasts: 41.94 ms, 262144 bytes into" in out
    document = json.loads(palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", "256K", "--json").out)
    assert document["bound"]["kind"] == "links"
    assert document["seconds"] == document["bound"]["seconds"] == pytest.approx(4 * 262144 / 18.75e6)
    assert document["bound_in_network"]["seconds"] == pytest.approx(262144 / 6.25e6)
    assert [level["level"] for level in document["levels"]] == ["leaf", "node"]


def test_in_network_makes_that_limit_the_one_that_counts(palmette: Call) -> None:
    call = ("plan", "--bound", "allreduce", "--machine", LAB, "--size", "256K", "--in-network")
    assert json.loads(palmette(*call, "--json").out)["seconds"] == pytest.approx(262144 / 6.25e6)
    lines = palmette(*call).out.splitlines()
    assert lines[2].startswith("bound where the network reduces")


def test_the_least_time_with_one_message_at_a_time_stands_beside_the_limits(palmette: Call) -> None:
    machine = "3leaf@50Mbit/s~200us:3+3+2node@100Mbit/s~200us:2core"
    call = ("plan", "--bound", "bcast", "--machine", machine, "--size", "16K")
    document = json.loads(palmette(*call, "--json").out)
    term = document["one_port"]
    assert (term["members"], term["rounds"]) == (8, term["blocks"] + 2)
    assert term["seconds"] == pytest.approx(term["rounds"] * (200e-6 + 16384 / term["blocks"] / 12.5e6))
    for blocks in range(1, 50):
        assert term["seconds"] <= (blocks + 2) * (200e-6 + 16384 / blocks / 12.5e6) * (1 + 1e-9)
    text = " ".join(palmette(*call).out.split())
    assert "with one message in and one out at a time: " in text
    assert f"{term['rounds']} rounds among 8, the vector in {term['blocks']} blocks" in text
    # Without latencies nothing is said, and the limits are the same with and without.
    unknown = json.loads(palmette("plan", "--bound", "bcast", "--machine", LAB, "--size", "16K", "--json").out)
    assert unknown["one_port"] is None
    assert unknown["seconds"] == document["seconds"]


@pytest.mark.parametrize(
    ("machine", "ratio"),
    [
        ("aggregator:" + LAB, 0.75),
        ("aggregator:4leaf@50Mbit/s:2node@100Mbit/s:2core", 0.667),
        ("aggregator:8node@50Mbit/s:2core", 0.571),
        ("aggregator@50Mbit/s:8node@50Mbit/s:2core", 0.914),
        ("aggregator@100Mbit/s:8node@50Mbit/s:2core", 0.842),
        ("aggregator@200Mbit/s:8node@50Mbit/s:2core", 0.727),
        ("aggregator@400Mbit/s:8node@50Mbit/s:2core", 0.571),
        ("aggregator:2node@50Mbit/s:2core", 1.0),
    ],
)
def test_in_network_counts_the_links_of_aggregators(palmette: Call, machine: str, ratio: float) -> None:
    call = ("plan", "--bound", "allreduce", "--machine", machine, "--size", "256K", "--in-network", "--json")
    document = json.loads(palmette(*call).out)
    assert document["bound_in_network"]["seconds"] / document["bound"]["seconds"] == pytest.approx(ratio, abs=5e-4)


def test_links_of_aggregators_are_named_where_they_are_the_limit(palmette: Call) -> None:
    machine = "aggregator@100Mbit/s:8node@50Mbit/s:2core"
    call = ("plan", "--bound", "allreduce", "--machine", machine, "--size", "256K", "--in-network")
    assert "3670016 bytes over links of level node and aggregators" in " ".join(palmette(*call).out.split())
    level = json.loads(palmette(*call, "--json").out)["levels"][0]
    assert level["with_aggregators"]["bytes_per_s"] == pytest.approx(8 * 6.25e6 + 12.5e6 * 6 / 8)


def test_ports_take_away_what_bound_senders_can_not_use(palmette: Call) -> None:
    call = ("plan", "--bound", "bcast", "--machine", "4node@200GB/s:12core", "--size", "1G", "--json")
    whole, bound = (json.loads(palmette(*call, *more).out)["seconds"] for more in ((), ("--ports", "node=8")))
    assert bound == pytest.approx(whole / 0.75)


def test_every_edge_of_a_level_is_listed_on_demand(palmette: Call) -> None:
    call = ("plan", "--bound", "gather", "--machine", LAB, "--size", "64K", "--edges", "node")
    rows = palmette(*call).out.splitlines()[-8:]
    assert [row.split()[0] for row in rows] == [f"h{i}" for i in range(8)]
    edges = json.loads(palmette(*call, "--json").out)["edges"]["edges"]
    assert edges[0] == {"group": "h0", "bytes_out": 0, "bytes_in": 14 * 65536, "bytes_per_s": 12.5e6,
                        "seconds": pytest.approx(14 * 65536 / 12.5e6)}  # fmt: skip


def test_a_million_ranks_have_a_bound(palmette: Call) -> None:
    for collective in ("allreduce", "alltoall", "scan"):
        result = palmette(
            "plan", "--bound", collective, "--machine", "1024leaf@100GB/s:64node@25GB/s:16core", "--size", "64K"
        )
        assert result.status == 0
        assert "1,048,576 ranks" in result.out


@pytest.mark.parametrize("collective", _core.collectives())
@pytest.mark.parametrize("machine", [LAB, "2pod:2leaf~5ms:2node~10us:2core", "8node"])
def test_everything_fits_in_80_columns(palmette: Call, collective: str, machine: str) -> None:
    result = palmette("plan", "--bound", collective, "--machine", machine, "--placement", "random:3", "--edges", "node")
    assert result.status == 0
    assert not [line for line in result.out.splitlines() if len(line) > 80]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no machine given"),
        (("--machine", LAB, "--root", "99"), "root 99 is outside"),
        (("--machine", LAB, "--size", "much"), "much"),
        (("--machine", LAB, "--ports", "node"), "expected LEVEL=K"),
        (("--machine", LAB, "--ports", "rack=2"), "it has leaf, node"),
        (("--machine", LAB, "--edges", "rack"), "it has leaf, node"),
        (("--topology", "nowhere.json"), "nowhere.json"),
    ],
)
def test_bad_input_is_told_in_one_line(palmette: Call, options: tuple[str, ...], message: str) -> None:
    result = palmette("plan", "--bound", "gather", *options)
    assert result.status == 2
    assert result.err.startswith("palmette plan: ")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_ranks_with_messages_only_have_heard_no_sooner_than_the_postal_model_says(
    palmette: Call, tmp_path: Path
) -> None:
    file = tmp_path / "flat.json"
    nodes = [{"name": f"h{n}", "level": "node", "slots": 1} for n in range(8)]
    level = {"name": "node", "latency_s": 2e-6, "overhead_s": 1e-6}
    file.write_text(json.dumps({"format": "palmette-topology", "version": 1, "name": "flat",
                                "machine": {"levels": [level], "tree": {"name": "x", "children": nodes}}}))  # fmt: skip
    call = ("plan", "--bound", "bcast", "--topology", file, "--size", "8", "--no-shared")
    # N(t) = N(t - 1) + N(t - 2): 1, 1, 2, 3, 5, 8.
    out = palmette(*call).out
    assert "rounds: 5 us until 8 are informed, each sending to others one after the other" in out
    assert json.loads(palmette(*call, "--json").out)["rounds"]["spread_s"] == pytest.approx(5e-6)


def test_memory_and_rounds_are_told_where_the_machine_knows_them(palmette: Call, tmp_path: Path) -> None:
    hosts = [{"name": f"h{i}", "level": "node", "slots": 2} for i in range(16)]
    machine = {
        "levels": [{"name": "node", "latency_s": 2e-6, "overhead_s": 1e-6}],
        "memory": {"copy_bytes_per_s": 1e10, "reduce_bytes_per_s": 5e9},
        "tree": {"name": "x", "children": hosts},
    }
    file = tmp_path / "topology.json"
    file.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    out = palmette("plan", "--bound", "allreduce", "--topology", file, "--size", "1M").out
    assert "rounds: 2 of 2 us until 16 are informed, each sending 4 at once: 4 us" in out
    assert "combined by each rank, where all share the work: " in out
    assert "bound: 203.2 us, 1015808 bytes that each rank combines at" in out


@pytest.mark.parametrize(
    ("machine", "ports", "node_gbs"),
    [
        ("4node@25GB/s:4core", 1, 25),  # Delta
        ("4node@100GB/s:4core", 4, 100),  # Perlmutter
        ("4node@100GB/s:8core", 4, 100),  # Frontier
        ("4node@200GB/s:12core", 8, 150),  # Aurora: 12 tiles bound to 8 ports use three quarters of them
    ],
)
def test_four_nodes_of_each_machine_of_hiccls_figures_have_their_frames(
    palmette: Call, machine: str, ports: int, node_gbs: float
) -> None:
    def rate(*options: str) -> float:
        """GB/s of a vector of 1 GB."""
        call = (
            "plan",
            "--bound",
            "allreduce",
            "--machine",
            machine,
            "--ports",
            f"node={ports}",
            "--size",
            "1000000000",
            "--json",
        )
        return 1 / float(json.loads(palmette(*call, *options).out)["seconds"])

    assert rate() == pytest.approx(node_gbs * 4 / 3 / 2)
    assert rate("--in-network") == pytest.approx(node_gbs)


def test_several_sizes_are_a_row_each(palmette: Call) -> None:
    one = json.loads(palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", "1M", "--json").out)
    rows = json.loads(palmette("plan", "--bound", "allreduce", "--machine", LAB, "--sizes", "64,1M", "--json").out)[
        "sizes"
    ]
    assert [row["size_bytes"] for row in rows] == [64, 1 << 20]
    assert rows[1]["seconds"] == one["seconds"]
    text = palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", "64,1M").out
    assert [line.split()[0] for line in text.splitlines()[3:]] == ["64", "1M"]
    refused = palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", "64,1M", "--edges", "node")
    assert refused.status == 2
    assert "--size names several" in refused.err
    empty = palmette("plan", "--bound", "allreduce", "--machine", LAB, "--size", ",")
    assert empty.status == 2
    assert "is not a size" in empty.err


@pytest.mark.parametrize(
    ("form", "collective"),
    [
        ("reduce_scatter_block", "reduce_scatter"),
        ("gatherv", "gather"),
        ("scatterv", "scatter"),
        ("allgatherv", "allgather"),
        ("alltoallv", "alltoall"),
        ("alltoallw", "alltoall"),
    ],
)
def test_other_forms_have_the_limit_of_equal_blocks_and_one_line_says_so(
    palmette: Call, form: str, collective: str
) -> None:
    asked = palmette("plan", "--bound", form, "--machine", LAB, "--json")
    plain = palmette("plan", "--bound", collective, "--machine", LAB, "--json")
    assert asked.status == plain.status == 0
    assert json.loads(asked.out) == json.loads(plain.out)
    assert asked.err == f"{form}: as {collective}, all blocks of equal length\n"
    assert plain.err == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("iallreduce", "palmette plan: 'iallreduce' has the plans of allreduce; ask for allreduce\n"),
        ("ialltoallv", "palmette plan: 'ialltoallv' has the plans of alltoallv; ask for alltoallv\n"),
        ("gossip", "palmette plan: 'gossip' is no collective; there are gather, scatter,"),
    ],
)
def test_what_is_no_collective_gets_the_names_to_ask_for(palmette: Call, name: str, says: str) -> None:
    result = palmette("plan", "--bound", name, "--machine", LAB)
    assert result.status == 2
    assert result.err.startswith(says)
    assert result.err.count("\n") == 1
