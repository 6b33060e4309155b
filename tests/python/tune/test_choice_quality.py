"""studies/choice_quality.py: which cells are drawn, and what a store's samples say of the table's choices."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from palmette.tune.store import TuneJob, open_tunings
from palmette_lab.lab import Lab

from .samples import cell


@pytest.fixture(scope="module")
def script(bench_program: Callable[[str], ModuleType]) -> ModuleType:
    return bench_program("choice_quality")


def options(**changes: object) -> Namespace:
    given = {"cells": None, "draw": 20, "seed": 1, "collectives": "bcast,allreduce,barrier", "sizes": "1K,16K,64K",
             "placement": "block,cyclic", "mpi": "mpich,openmpi", "traffic": None}  # fmt: skip
    return Namespace(**(given | changes))


def test_the_same_seed_draws_the_same_cells_and_another_one_others(script: ModuleType) -> None:
    first = script.drawn(options())
    assert len(first) == len(set(first)) == 20
    assert script.drawn(options()) == first
    assert script.drawn(options(seed=2)) != first
    assert len(script.drawn(options(draw=100))) == 2 * 2 * (3 + 3 + 1)


def test_a_range_of_sizes_stands_for_any_between(script: ModuleType) -> None:
    everything = script.drawn(options(sizes="64-256K", draw=10_000))
    sizes = {one.cell.size_bytes for one in everything if one.cell.function == "bcast"}
    assert len(sizes) > 30
    assert all(64 <= size <= 256 * 1024 and size % 8 == 0 for size in sizes)
    assert any(1024 < size < 16 * 1024 for size in sizes)
    assert script.drawn(options(sizes="64-256K")) == script.drawn(options(sizes="64-256K"))


def test_named_cells_are_looked_at_under_every_mpi_and_placement(script: ModuleType) -> None:
    found = script.drawn(options(cells="bcast:1K,barrier"))
    assert [(one.mpi, one.placement, one.cell.label) for one in found[:3]] == [
        ("mpich", "block", "bcast 1024"),
        ("mpich", "block", "barrier"),
        ("mpich", "cyclic", "bcast 1024"),
    ]
    assert len(found) == 8


def test_cells_beside_traffic_are_others_than_quiet_ones(script: ModuleType) -> None:
    quiet, loaded = (script.drawn(options(cells="bcast:1K", traffic=traffic)) for traffic in (None, "alltoall"))
    assert [one.placement for one in loaded] == [f"{one.placement} loaded" for one in quiet]


@pytest.mark.root
def test_choices_beside_traffic_know_the_load_of_links(script: ModuleType, make_lab: Callable[[str, str], Lab]) -> None:
    lab = make_lab("2leaf@40Mbit/s:2node@100Mbit/s:1core", "choice-quality-test")
    with script.place_of(lab, "alltoall:all:64K") as place:
        document = json.loads(place.topology_path.read_text())
        leaf = document["machine"]["tree"]["children"][0]
        assert 0.5 < leaf["load"] <= 0.99
        assert place.place("block", None, None) == lab.place("block")
    with script.place_of(lab, None) as place:
        assert place.topology_path == lab.topology_path


def test_a_choice_is_good_within_10_percent_of_the_best_that_was_confirmed(script: ModuleType, tmp_path: Path) -> None:
    wanted = script.drawn(options(cells="bcast:1K,allreduce:1K,bcast:64K", mpi="mpich", placement="block"))
    confirmed = [
        cell({"table": [1.09e-3] * 9, "mpi": [0.5e-3] * 9, "linear": [1e-3] * 9, "chain": [2e-3] * 9}, "bcast"),
        cell({"table": [1.2e-3] * 9, "mpi": [5e-3] * 9, "direct": [1e-3] * 9}, "allreduce"),
    ]
    hosts = [f"h{i // 2}" for i in range(16)]
    with open_tunings(tmp_path / "quality.sqlite", create=True) as store:
        store.begin("2026-11-21", {}, "a lab", None, {})
        store.add(TuneJob("mpich", "MPICH", "block", script.SEARCH, hosts, 1.0, None, confirmed))
        store.add(TuneJob("mpich", "MPICH", "block", script.CONFIRM, hosts, 1.0, None, confirmed))
        rows = script.rows_of(wanted, store, None, None)
    assert [(row.cell, row.good, row.best, row.measured) for row in rows] == [
        ("bcast 1024", True, "linear", 2),
        ("allreduce 1024", False, "direct", 1),
    ]
    lines = script.lines_of(rows, len(wanted))
    assert "1 of 2 cells within 10 % of the best (target 90%)" in lines
    assert lines[-1].startswith("1 more cells are not measured yet")


def test_a_choice_beside_which_the_search_gave_up_all_others_is_the_best(script: ModuleType, tmp_path: Path) -> None:
    wanted = script.drawn(options(cells="bcast:1K,allreduce:1K", mpi="mpich", placement="block"))
    searched = [
        cell({"table": [1e-3] * 9, "mpi": [9e-3] * 9, "chain": [3e-3] * 3}, "bcast"),
        cell({"table": [1e-3] * 9, "mpi": [9e-3] * 9}, "allreduce"),
    ]
    confirmed = [cell({"table": [1e-3] * 9, "mpi": [9e-3] * 9}, name) for name in ("bcast", "allreduce")]
    hosts = [f"h{i // 2}" for i in range(16)]
    with open_tunings(tmp_path / "quality.sqlite", create=True) as store:
        store.begin("2026-11-22", {}, "a lab", None, {})
        store.add(TuneJob("mpich", "MPICH", "block", script.SEARCH, hosts, 1.0, None, searched))
        store.add(TuneJob("mpich", "MPICH", "block", script.CONFIRM, hosts, 1.0, None, confirmed))
        rows = script.rows_of(wanted, store, None, None)
    assert [(row.cell, row.good, row.ratio, row.measured) for row in rows] == [("bcast 1024", True, 1.0, 1)]
