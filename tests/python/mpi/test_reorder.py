"""MPI_Cart_create, MPI_Graph_create and MPI_Dist_graph_create* with reorder: the same graph, fewer bytes between
leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.map.pattern import Pattern, parse_pattern, pattern_of_messages
from palmette.map.traffic import Traffic, count_traffic

from .conftest import Cluster, Mpi, ProgramResult

pytestmark = pytest.mark.mpi

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
CONSTRUCTORS = ("cart_create", "graph_create", "dist_graph_create", "dist_graph_create_adjacent")


def scattered(folder: Path, placement: str) -> dict[str, str]:
    """Return the settings that put 16 ranks on the lab's hosts, as `palmette-lab run --placement` would."""
    machine = _core.Machine.synthetic(LAB)
    path = folder / "lab.json"
    document = {"format": "palmette-topology", "version": 1, "machine": machine.to_json()}
    path.write_text(json.dumps(document), encoding="utf-8")
    hosts = _core.Job(machine, placement).hosts
    return {"PALMETTE_TOPOLOGY": str(path), "PALMETTE_FAKE_HOSTS": ",".join(hosts)}


def topologies(ran: ProgramResult) -> dict[str, list[dict[str, Any]]]:
    """Return the report's rows by function."""
    assert ran.report is not None, ran.text
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in ran.report["topologies"]:
        rows.setdefault(row["function"], []).append(row)
    return rows


def printed(ran: ProgramResult, name: str) -> list[int]:
    """Return the world ranks that hold the numbers of a communicator, from the program's output."""
    lines = [line for line in ran.out.splitlines() if line.startswith(f"{name}:")]
    assert lines, ran.text
    return [int(word) for word in lines[0].partition(":")[2].split()]


def traffic(placement: str, pattern: Pattern, order: list[int]) -> Traffic:
    return count_traffic(_core.Job(_core.Machine.synthetic(LAB), placement), pattern, order)


@pytest.mark.parametrize("ranks", [2, 7, 16])
def test_the_graph_stays_the_same_when_ranks_change(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "topologies", settings=cluster.settings(ranks))
    ran.assert_right()
    if ranks == 16:
        for function in CONSTRUCTORS:
            assert any(row["reordered"] for row in topologies(ran)[function]), ran.report


@pytest.mark.parametrize("ranks", [7, 16])
def test_it_stays_the_same_where_no_rank_sees_the_whole(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    # As with thousands of ranks: each looks at its own cell, and distributed graphs get topology order.
    settings = {**cluster.settings(ranks), "PALMETTE_FAKE_REORDER_WHOLE": "0"}
    ran = mpi.run(ranks, "topologies", settings=settings)
    ran.assert_right()
    if ranks == 16:
        assert any(row["reordered"] for row in topologies(ran)["cart_create"]), ran.report


def test_a_stencil_on_scattered_ranks_moves_half_the_bytes_over_the_busiest_uplink(mpi: Mpi, tmp_path: Path) -> None:
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=scattered(tmp_path, "random:1"))
    ran.assert_right()
    for grid in ("8x2", "4x4"):
        order = printed(ran, f"cart {grid}")
        assert sorted(order) == list(range(16))
        pattern = parse_pattern(f"stencil:{grid}", 16, 1024)
        before, after = (traffic("random:1", pattern, list(o)) for o in (range(16), order))
        assert before.busiest is not None and after.busiest is not None
        assert before.busiest.bytes >= 2 * after.busiest.bytes, (grid, before.busiest, after.busiest)
        assert before.hop_bytes > after.hop_bytes


@pytest.mark.parametrize("placement", ["cyclic", "random:1"])
def test_graphs_of_any_kind_move_fewer_bytes_between_leaves(mpi: Mpi, tmp_path: Path, placement: str) -> None:
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=scattered(tmp_path, placement))
    ran.assert_right()
    names = {line.partition(":")[0] for line in ran.out.splitlines() if line.startswith("edges ")}
    # Open MPI mistakes such edges by itself, and the program then leaves that constructor out (see there).
    assert {"edges graph", "edges adjacent", "edges adjacent weighted"} <= names
    for name in (words.removeprefix("edges ") for words in sorted(names)):
        order, edges = printed(ran, name), printed(ran, f"edges {name}")
        assert sorted(order) == list(range(16))
        rows = [(a, b, float(weight)) for a, b, weight in zip(*[iter(edges)] * 3, strict=True)]
        pattern = pattern_of_messages(name, 16, rows)
        before, after = (traffic(placement, pattern, list(o)) for o in (range(16), order))
        leaves_before, leaves_after = (counted.levels[0] for counted in (before, after))
        assert leaves_before.name == leaves_after.name == "leaf"
        assert leaves_after.total < 0.9 * leaves_before.total, (name, leaves_before.total, leaves_after.total)
        # Both directions together, as palmette counts edges of a graph.
        assert max(leaves_after.out + leaves_after.into) <= max(leaves_before.out + leaves_before.into), name
        assert after.hop_bytes < before.hop_bytes, name


def test_a_large_grids_own_way_is_as_good_on_blocks_that_fit(mpi: Mpi, tmp_path: Path) -> None:
    settings = {**scattered(tmp_path, "random:1"), "PALMETTE_FAKE_REORDER_WHOLE": "0"}
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=settings)
    ran.assert_right()
    pattern = parse_pattern("stencil:8x2", 16, 1024)
    before, after = (traffic("random:1", pattern, list(o)) for o in (range(16), printed(ran, "cart 8x2")))
    assert before.busiest is not None and after.busiest is not None
    assert before.busiest.bytes >= 2 * after.busiest.bytes


def exchange_units(placement: str, extents: tuple[int, int], order: list[int]) -> float:
    """Return blocks over the busiest uplink, summed over the exchanges in rows and in columns, which follow each
    other."""
    rows, columns = extents
    lines = [[[r * columns + c for c in range(columns)] for r in range(rows)]]
    lines.append([[r * columns + c for r in range(rows)] for c in range(columns)])
    units = 0.0
    for groups in lines:
        messages = [(a, b, 1.0) for group in groups for a in group for b in group if a != b]
        counted = traffic(placement, pattern_of_messages("exchange", 16, messages), order)
        units += max(map(max, counted.levels[0].out, counted.levels[0].into))
    return units


@pytest.mark.parametrize("whole", ["1024", "0"])
def test_grids_for_exchanges_cross_uplinks_less_in_all_to_alls_of_rows_and_columns(
    mpi: Mpi, tmp_path: Path, whole: str
) -> None:
    settings = {**scattered(tmp_path, "random:1"), "PALMETTE_FAKE_REORDER_WHOLE": whole}
    ran = mpi.run(16, "topologies", "--seeds", 1, settings={**settings, "PALMETTE_REORDER": "exchange"})
    ran.assert_right()
    order = printed(ran, "cart 4x4")
    # Computed by hand on the tree: 12 + 14 blocks as placed, 4 + 14 row by row in topology order.
    assert exchange_units("random:1", (4, 4), list(range(16))) == 26
    assert exchange_units("random:1", (4, 4), order) <= 18
    assert {row["ordered_for"] for row in topologies(ran)["cart_create"] if "ordered_for" in row} == {"exchange"}


@pytest.mark.parametrize("hint", ["exchange", "halo", "differing", "neighbours", "replaced"])
def test_an_info_key_says_what_grids_are_for(mpi: Mpi, tmp_path: Path, hint: str) -> None:
    ran = mpi.run(16, "topologies", "--seeds", 1, "--grids", hint, settings=scattered(tmp_path, "random:1"))
    ran.assert_right()
    assert ran.report is not None
    rows = [row for row in topologies(ran)["cart_create"] if "ordered_for" in row]
    on_world = exchange_units("random:1", (4, 4), printed(ran, "cart 4x4"))
    if hint == "exchange":
        # The communicator that was split from the world's has no such key.
        assert {row["ordered_for"] for row in rows} == {"exchange", "halo"}
        assert on_world <= 18
        return
    assert {row["ordered_for"] for row in rows} == {"halo"}
    assert on_world > 18
    assert max(row.get("other_purpose_gain", 0) for row in rows) >= 1.4, rows
    notes = " ".join(ran.report["notes"])
    assert ("palmette_grid differs" in notes) == (hint == "differing")
    assert ("palmette_grid='neighbours' is none of halo and exchange" in notes) == (hint == "neighbours")
    assert ran.err.count("is none of halo and exchange") == (1 if hint == "neighbours" else 0)


def test_the_page_says_what_ordering_for_exchanges_would_save(mpi: Mpi, tmp_path: Path) -> None:
    settings = {**scattered(tmp_path, "random:1"), "PALMETTE_REPORT": "1"}
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=settings)
    ran.assert_right()
    page = " ".join(ran.err.split())
    assert "ordered for halos; with PALMETTE_REORDER=exchange the busiest link carries" in page, ran.err


def test_ranks_in_the_best_order_stay_there_and_the_report_says_why(mpi: Mpi, tmp_path: Path) -> None:
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=scattered(tmp_path, "block"))
    ran.assert_right()
    assert printed(ran, "cart 8x2") == list(range(16))
    reasons = {row.get("reason") for row in topologies(ran)["cart_create"]}
    assert "no order is better than the ranks' own" in reasons
    assert "a communicator of one rank" in reasons
    assert "arguments that the MPI must judge" in reasons


def test_the_setting_leaves_all_in_order(mpi: Mpi, tmp_path: Path) -> None:
    settings = {**scattered(tmp_path, "random:1"), "PALMETTE_REORDER": "off"}
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=settings)
    ran.assert_right()
    rows = topologies(ran)
    assert set(rows) == set(CONSTRUCTORS)
    assert all(row == {**row, "reordered": False, "reason": "PALMETTE_REORDER=off"} for f in rows.values() for row in f)


def test_ranks_of_one_host_stay_in_order(mpi: Mpi) -> None:
    ran = mpi.run(4, "topologies", "--seeds", 1)
    ran.assert_right()
    reasons = {row.get("reason") for row in topologies(ran)["cart_create"]}
    assert "no known topology level distinguishes the ranks" in reasons


@pytest.mark.parametrize("most", ["0", "20"])
def test_a_distributed_graph_of_too_many_edges_is_left_to_the_mpi_with_that_reason(
    mpi: Mpi, tmp_path: Path, most: str
) -> None:
    # The limit of four million edges, lowered; in blocks, topology order is the order that ranks have.
    settings = {**scattered(tmp_path, "block"), "PALMETTE_FAKE_REORDER_WHOLE": most}
    ran = mpi.run(16, "topologies", "--seeds", 1, settings=settings)
    ran.assert_right()
    for function in ("dist_graph_create", "dist_graph_create_adjacent"):
        rows = {row.get("reason"): row for row in topologies(ran)[function]}
        beyond = rows[f"over {most} edges only topology order is tried, which is no better"]
        assert (beyond["reordered"], beyond["calls"] >= 1) == (False, True)
