"""The bound of a call beside background traffic: what its links carried meanwhile counts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.bench.beside_traffic import TrafficLog, put_bounds, read_log
from palmette.bench.evaluate import evaluate
from palmette.bench.results import Cell, Limit, Run
from palmette.bench.targets import Target, outcomes
from palmette.lab.spec import read_spec
from palmette.topology_model import Topology, TreeNode

MakeRun = Callable[..., Run]
MB = 1e6


@pytest.fixture
def machine() -> tuple[dict[str, Any], TreeNode]:
    """Two switches of two hosts: 10 MB/s a host, 1 MB/s between the switches."""
    spec = read_spec("2leaf@8Mbit/s:2node@80Mbit/s:1core")
    return Topology("test", machine=spec.machine).to_json(), spec.machine.tree


def sends(hosts: list[str], rows: list[tuple[float, int, int, int]], since_s: float = 0.0) -> TrafficLog:
    """A log of (seconds, source, target, bytes)."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return TrafficLog(hosts, columns[0].astype(float), columns[1], columns[2], columns[3], since_s)


def cell(collective: str, size_bytes: int, start_s: float, time_s: float, root: int = 0) -> Cell:
    """One pair of calls that are alike."""
    made = Cell(collective, size_bytes, root, 0, 0, 0.0, [True], [time_s], [time_s], [0.0], [0.0])
    made.alone_start_s, made.palmette_start_s = [start_s], [start_s]
    made.bound = Limit(0.001, "made up")
    return made


def test_bytes_of_the_traffic_count_on_links_and_directions_that_the_call_must_cross(
    machine: tuple[dict[str, Any], TreeNode],
) -> None:
    document, tree = machine
    hosts = [host.name for host in tree.hosts()]
    # Into the first switch 100 KB in the call's time and 900 KB after it; out of it 700 KB, which a gather needn't cross.
    log = sends(hosts, [(10.1, 2, 0, 60_000), (10.4, 3, 1, 40_000), (10.2, 0, 3, 700_000), (11.5, 2, 1, 900_000)])
    gathered = cell("gather", 100_000, 10.0, 0.5)
    put_bounds(document, tree, hosts, [gathered], log)
    # Two blocks of 100 KB and the traffic's 100 KB over 1 MB/s.
    assert gathered.palmette_bound_s == [pytest.approx(0.3)]
    scattered = cell("scatter", 100_000, 10.0, 1.0)
    put_bounds(document, tree, hosts, [scattered], log)
    assert scattered.alone_bound_s == [pytest.approx(0.9)]


def test_links_of_hosts_count_as_well(machine: tuple[dict[str, Any], TreeNode]) -> None:
    document, tree = machine
    hosts = [host.name for host in tree.hosts()]
    log = sends(hosts, [(10.1, 1, 0, 9_700_000)])
    gathered = cell("gather", 100_000, 10.0, 2.0)
    put_bounds(document, tree, hosts, [gathered], log)
    # Three blocks and the neighbour's bytes over the root's 10 MB/s.
    assert gathered.palmette_bound_s == [pytest.approx(1.0)]


def test_without_traffic_in_its_time_the_bound_is_that_of_the_empty_network(
    machine: tuple[dict[str, Any], TreeNode],
) -> None:
    document, tree = machine
    hosts = [host.name for host in tree.hosts()]
    quiet = cell("gather", 4, 10.0, 0.5)
    put_bounds(document, tree, hosts, [quiet], sends(hosts, [(11.0, 2, 0, 60_000)]))
    assert quiet.palmette_bound_s == [0.001]


def test_a_call_before_the_log_reaches_back_has_no_bound(machine: tuple[dict[str, Any], TreeNode]) -> None:
    document, tree = machine
    hosts = [host.name for host in tree.hosts()]
    early = cell("gather", 100_000, 10.0, 0.5)
    put_bounds(document, tree, hosts, [early], sends(hosts, [(10.1, 2, 0, 60_000)], since_s=10.05))
    assert early.palmette_bound_s == [None]


def test_a_log_is_read_while_processes_write_it(tmp_path: Path) -> None:
    room = 4
    for number, count in enumerate((2, 6)):
        entries = [(float(i), 1 - number, 100 + i) for i in range(count)]
        kept = [*entries[room:], *entries[count - room : room]] if count > room else entries + [(0.0, 0, 0)] * 2
        data = struct.pack("=3Q", 0, 0, count) + b"".join(struct.pack("=dII", *entry) for entry in kept)
        (tmp_path / f"sent-{number}").write_bytes(data)
    log = read_log([tmp_path / "sent-0", tmp_path / "sent-1"], ["a", "b"])
    # The second one's first two sends are overwritten.
    assert sorted(zip(log.source, log.target, log.sizes, strict=True)) == [
        (0, 1, 100), (0, 1, 101), (1, 0, 102), (1, 0, 103), (1, 0, 104), (1, 0, 105),
    ]  # fmt: skip
    assert log.since_s == 2.0


def test_loaded_rows_and_targets_go_by_the_bound_beside_the_traffic(made_run: MakeRun) -> None:
    run = made_run(lambda *_: 0.9, placements=("random:1",), collectives=("gather",), sizes=(65536,))
    for job in run.jobs:
        job.traffic = "alltoall:half:64K"
        for one in job.cells:
            assert one.bound
            one.alone_bound_s = [time_s / 1.5 for time_s in one.alone_s]
            one.palmette_bound_s = [time_s / 1.1 for time_s in one.palmette_s]
    (row,) = evaluate(run)
    assert row.palmette_multiple == pytest.approx(1.1)
    assert row.alone_multiple == pytest.approx(1.5)
    assert row.bound
    document = row.to_json()
    assert (document["beside_traffic"], document["bound_s"]) == (True, row.bound.seconds)
    (outcome,) = outcomes(run, [Target("gain_or_bound", 1.2, placements=("random:1",), gain=1.5)])
    assert outcome.answer == "met"
