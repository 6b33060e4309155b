"""Background traffic: where its processes are, what is told of it, and a real lab under it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.bench.evaluate import evaluate
from palmette.bench.loaded import load_lines, loaded_lines, pairs_of
from palmette.bench.loads import mean_loads, with_loads
from palmette.bench.results import EdgeLoad, Run
from palmette.bench.runner import measure
from palmette.bench.settings import Settings
from palmette.bench.store import open_store
from palmette.bench_page.page import render
from palmette.measure.errors import BenchError
from palmette.measure.places import LocalPlace, program
from palmette.mpi import install as mpi_install
from palmette.topology import file as topology_file
from palmette_lab.lab import Lab
from palmette_lab.lab.spec import read_spec
from palmette_lab.place import LabPlace
from palmette_lab.traffic import Background, Snapshot, Traffic, background, hosts_of_processes

MakeRun = Callable[..., Run]
LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("alltoall", "alltoall:half:64K"),
        ("alltoall:half", "alltoall:half:64K"),
        ("alltoall:all:1M", "alltoall:all:1M"),
        ("alltoall:8K", "alltoall:half:8K"),
    ],
)
def test_traffic_is_named_in_full(text: str, full: str) -> None:
    assert Traffic.parse(text).text == full


@pytest.mark.parametrize(
    "text", ["", "ring", "alltoall:some", "alltoall:half:0", "alltoall:half:64K:more", "alltoall:2G"]
)
def test_other_traffic_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BenchError) as refused:
        Traffic.parse(text)
    assert "\n" not in str(refused.value)


def test_half_of_the_places_of_every_switch_have_a_process() -> None:
    spec = read_spec(LAB)
    slots = {host.name: spec.slots(host) for host in spec.hosts}
    names = [host.name for host in spec.hosts]
    assert hosts_of_processes(spec.machine.tree, slots, Traffic.parse("alltoall:half")) == names
    everywhere = hosts_of_processes(spec.machine.tree, slots, Traffic.parse("alltoall:all"))
    assert sorted(everywhere) == sorted(names * 2)


def make_loaded(make: MakeRun, **kinds: Any) -> Run:
    """A run whose second half was measured under traffic: twice as slow, palmette gains more."""
    run = make(lambda *_: 0.5, placements=("block", "random:1"), **kinds)
    loaded = make(lambda *_: 0.25, placements=("block", "random:1"), **kinds)
    for number, job in enumerate(loaded.jobs):
        job.traffic = "alltoall:half:64K"
        job.load = [
            EdgeLoad("leaf0", "leaf", 0.9, 0.8, 0.4 + 0.1 * number, 0.3),
            EdgeLoad("h0", "node", 0.5, 0.5, 0.2, 0.1),
        ]
    run.jobs += loaded.jobs
    return run


def test_quiet_and_loaded_cells_stay_apart_and_are_paired(made_run: MakeRun) -> None:
    rows = evaluate(make_loaded(made_run))
    assert len(rows) == 24
    pairs = pairs_of(rows)
    assert len(pairs) == 12
    for pair in pairs:
        assert pair.loaded.placement == f"{pair.quiet.placement} loaded"
        assert (round(pair.quiet.ratio.value, 1), round(pair.loaded.ratio.value, 2)) == (0.5, 0.25)
        assert pair.quiet.bound == pair.loaded.bound
    document = pairs[0].loaded.to_json()
    assert (document["placement"], document["loaded"]) == ("block", True)


def test_tables_of_quiet_and_loaded_fit_80_columns(made_run: MakeRun) -> None:
    run = make_loaded(made_run, collectives=("reduce_scatter_block",))
    lines = [*loaded_lines(pairs_of(evaluate(run))), *load_lines(run)]
    assert max(map(len, lines)) <= 80
    assert any("quiet | loaded" in line for line in lines)
    assert any(line.startswith("leaf0") and "90/80" in line and "45/30" in line for line in lines)


def test_the_load_of_links_is_written_into_the_tree(made_run: MakeRun) -> None:
    run = make_loaded(made_run)
    assert run.topology is not None
    document = with_loads(run.topology, (load.edge for load in mean_loads(run)))
    leaf = document["machine"]["tree"]["children"][0]
    assert leaf["name"] == "leaf0"
    assert leaf["load"] == pytest.approx(0.45)
    assert "load" not in run.topology["machine"]["tree"]["children"][0]
    assert topology_file.parse(json.dumps(document), "made").machine is not None
    assert _core.Machine.from_json(document).to_json()["tree"]["name"] == document["machine"]["tree"]["name"]


def test_traffic_and_loads_are_kept_in_the_store(made_run: MakeRun, tmp_path: Path) -> None:
    run = make_loaded(made_run)
    with open_store(tmp_path / "runs.sqlite", create=True) as store:
        for job in run.jobs:
            store.add(run, job)
        assert store.load("last") == run


def test_the_page_shows_quiet_and_loaded(made_run: MakeRun) -> None:
    run = make_loaded(made_run)
    page = render(run, evaluate(run))
    assert "Under traffic" in page
    assert "alltoall:half:64K" in page
    assert "random:1 loaded" in page


def test_local_ranks_have_no_links_to_fill(tmp_path: Path) -> None:
    settings = Settings(collectives=("gather",), sizes=(64,), placements=("block",), preload=False, traffic="alltoall")
    try:
        mpi_install.find("mpich")
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    with pytest.raises(BenchError, match="--traffic needs a lab"):
        measure(settings, LocalPlace(2, tmp_path))


def test_a_load_without_traffic_is_refused(palmette_lab: Callable[..., Any], tmp_path: Path) -> None:
    result = palmette_lab(
        "bench", "gather", "-n", "2", "--write-load", tmp_path / "load.json", "--store", tmp_path / "r.sqlite"
    )
    assert result.status == 2
    assert "--write-load has nothing to write without --traffic" in result.err


@pytest.fixture
def lab(make_lab: Callable[[str, str], Lab]) -> Lab:
    """Two switches with two hosts of one place each, narrow between the switches."""
    return make_lab("2leaf@40Mbit/s:2node@100Mbit/s:1core", "traffic-test")


def loads_of_traffic(lab: Lab) -> dict[str, EdgeLoad]:
    """What a second and a half of traffic puts on each link."""
    with background(lab, Traffic.parse("alltoall:all:64K")) as running:
        before = running.snapshot()
        time.sleep(1.5)
        return {load.name: load for load in running.load(before, running.snapshot())}


@pytest.mark.root
def test_traffic_is_counted_on_the_links_and_ends(lab: Lab) -> None:
    loads = loads_of_traffic(lab)
    assert set(loads) == {group.name for group in list(lab.tree.walk())[1:]}
    # A link's bucket lets through what its rate allows, however late the processes are.
    assert all(0 < load.up < 1.1 for load in loads.values())
    # It ends with the context; what still waited at the links goes out.
    deadline = time.monotonic() + 60
    while True:
        before = lab.link_bytes()
        time.sleep(0.5)
        moved = [now[0] - then[0] for now, then in zip(lab.link_bytes().values(), before.values(), strict=True)]
        if max(moved) < 10_000:
            break
        assert time.monotonic() < deadline, moved


@pytest.mark.long
@pytest.mark.root
def test_traffic_fills_the_narrowest_link(lab: Lab) -> None:
    uplinks = [loads_of_traffic(lab)["leaf0"] for _ in range(5)]
    # Four of six messages of each host's switch cross the uplink, which nothing else is as narrow as.
    best = max(uplinks, key=lambda load: load.up)
    assert 0.7 < best.up < 1.1
    assert best.traffic_up == pytest.approx(best.up, rel=0.15)


def measured_under_traffic(lab: Lab, collective: str, size_bytes: int, preload: bool) -> Run:
    """Few calls under MPICH, quiet and loaded; the test is skipped without it."""
    try:
        mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    settings = Settings(
        collectives=(collective,), sizes=(size_bytes,), placements=("block",), seconds=0.3, min_pairs=3, max_pairs=8,
        warmup=1, preload=preload, traffic="alltoall:all:64K",
    )  # fmt: skip
    return measure(settings, LabPlace(lab))


@pytest.mark.mpi
@pytest.mark.root
def test_a_lab_is_measured_quiet_and_under_traffic_in_one_run(lab: Lab) -> None:
    run = measured_under_traffic(lab, "gather", 65536, preload=False)
    assert [(job.error, job.traffic) for job in run.jobs] == [(None, None), (None, "alltoall:all:64K")]
    assert {load.name for load in run.jobs[1].load} == {group.name for group in list(lab.tree.walk())[1:]}
    (pair,) = pairs_of(evaluate(run))
    assert pair.quiet.bound == pair.loaded.bound
    assert pair.quiet.palmette_loaded_multiple is None
    assert pair.loaded.palmette_loaded_multiple is not None


@pytest.mark.long
@pytest.mark.mpi
@pytest.mark.root
def test_traffic_slows_a_gather_down(lab: Lab) -> None:
    runs = [measured_under_traffic(lab, "gather", 65536, preload=False) for _ in range(5)]
    pairs = [pair for run in runs for pair in pairs_of(evaluate(run))]
    # The traffic takes a good part of the uplink that two of three blocks cross.
    pair = max(pairs, key=lambda one: one.loaded.alone.median_s / one.quiet.alone.median_s)
    assert pair.loaded.alone.median_s > 1.2 * pair.quiet.alone.median_s
    # What the traffic moved in a call's time is part of its bound, which no call can be below; the bucket of a link may
    # have some frames' worth of time to spare.
    assert pair.loaded.bound
    loaded, empty = pair.loaded.palmette_loaded_multiple, pair.loaded.palmette.median_s / pair.loaded.bound.seconds
    assert loaded is not None
    assert 0.9 < loaded < empty


@pytest.mark.mpi
@pytest.mark.root
def test_palmette_is_told_what_the_traffic_takes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # What the traffic really takes depends on the machine's other work; the choice must follow what was measured.
    measured = Background.load

    def as_given(self: Background, before: Snapshot, after: Snapshot) -> list[EdgeLoad]:
        return [replace(load, traffic_up=0.6, traffic_down=0.6) for load in measured(self, before, after)]

    monkeypatch.setattr(Background, "load", as_given)
    run = measured_under_traffic(lab, "bcast", 16384, preload=True)
    assert [job.error for job in run.jobs] == [None, None]
    (pair,) = pairs_of(evaluate(run))
    # A row for loaded links, and the one that takes over without load.
    assert "top=linear" in pair.loaded.algorithm
    assert "top=chain" in pair.quiet.algorithm
