"""The bound of a call under background traffic: the bytes that its links carried for others count."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from palmette import _core
from palmette.bench.evaluate import evaluate
from palmette.bench.loaded_bounds import count_own_bytes, planned_bytes, set_loaded_bounds
from palmette.bench.results import Cell, Limit, OwnBytes, OwnTraffic, Run
from palmette.bench.targets import Target, outcomes
from palmette.bench.text import summary_lines
from palmette.measure.links import LinkLog
from palmette.topology.model import Topology
from palmette_lab.lab import Lab
from palmette_lab.lab.spec import PAYLOAD_SHARE, read_spec

MakeRun = Callable[..., Run]
KB = 1000 / PAYLOAD_SHARE
"""A thousand bytes of payload with their frames."""


@pytest.fixture
def job() -> _core.Job:
    """Two switches of two hosts, a rank each: 10 MB/s a host, 1 MB/s between the switches."""
    topology = Topology("test", machine=read_spec("2leaf@8Mbit/s:2node@80Mbit/s:1core").machine)
    return _core.Job(_core.Machine.from_json(topology.to_json()), "block")


def log_of(job: _core.Job, moves: dict[str, list[tuple[float, float, float, float]]]) -> LinkLog:
    """A log of 20 s, by group (begin, end, kilobytes out, kilobytes into) of what moved evenly in between."""
    times = np.linspace(0.0, 20.0, 2001)
    names = [name for level in job.levels[:2] for name in level.names]
    counted = [{name: np.zeros(len(times)) for name in names} for _ in range(2)]
    for name, stretches in moves.items():
        for begin, end, *both in stretches:
            share = np.clip((times - begin) / (end - begin), 0, 1)
            for direction, kilobytes in enumerate(both):
                counted[direction][name] = counted[direction][name] + share * kilobytes * KB
    return LinkLog(times, counted[0], counted[1])


def cell(collective: str, size_bytes: int, start_s: float, time_s: float) -> Cell:
    """One pair of calls that are alike, from or to rank 0."""
    made = Cell(collective, size_bytes, 0, 0, 0, 0.0, [True], [time_s], [time_s], [0.0], [0.0])
    made.alone_start_s, made.palmette_start_s = [start_s], [start_s]
    made.bound = Limit(0.001, "made up")
    return made


def bounds(job: _core.Job, one: Cell, log: LinkLog, own: OwnTraffic | None, algorithm: str | None = "mpi") -> Cell:
    set_loaded_bounds(job, [one], log, lambda _: own, lambda _: algorithm)
    return one


def sends(job: _core.Job, kilobytes_into_first: float) -> OwnBytes:
    return dict.fromkeys(job.levels[0].names[:1], (0.0, kilobytes_into_first * KB))


def test_what_others_moved_counts_on_links_and_directions_that_the_call_must_cross(job: _core.Job) -> None:
    first = job.levels[0].names[0]
    # A gather takes 0.5 s: 300 KB come into the root's switch, 200 of them its own; 700 KB leave it, which it needn't.
    log = log_of(job, {first: [(10.0, 10.5, 700, 300), (11, 12, 0, 900)]})
    own = OwnTraffic(sends(job, 200), sends(job, 200), "mpi")
    found = bounds(job, cell("gather", 100_000, 10.0, 0.5), log, own)
    assert found.palmette_bound_s == [pytest.approx(0.3, rel=1e-3)]
    assert found.alone_bound_s == found.palmette_bound_s


def test_what_a_call_sends_beyond_what_must_cross_is_no_part_of_its_bound(job: _core.Job) -> None:
    first = job.levels[0].names[0]
    log = log_of(job, {first: [(10.0, 10.5, 0, 450)]})
    own = OwnTraffic(sends(job, 200), sends(job, 400), "mpi")
    found = bounds(job, cell("gather", 100_000, 10.0, 0.5), log, own)
    # 50 KB of others' beside palmette's, 250 beside the MPI's.
    assert found.palmette_bound_s == [pytest.approx(0.25, rel=1e-3)]
    assert found.alone_bound_s == [pytest.approx(0.45, rel=1e-3)]


def test_without_traffic_in_its_time_the_bound_is_that_of_the_empty_network(job: _core.Job) -> None:
    own = OwnTraffic(sends(job, 0.008), sends(job, 0.008), "mpi")
    found = bounds(job, cell("gather", 4, 10.0, 0.5), log_of(job, {}), own)
    assert found.palmette_bound_s == [0.001]


def test_calls_outside_of_the_log_or_of_unknown_bytes_have_no_bound(job: _core.Job) -> None:
    own = OwnTraffic(sends(job, 200), sends(job, 200), "mpi")
    assert bounds(job, cell("gather", 100_000, 19.9, 0.5), log_of(job, {}), own).palmette_bound_s == [None]
    assert bounds(job, cell("gather", 100_000, 10.0, 0.5), log_of(job, {}), None).palmette_bound_s == []


def test_the_plan_tells_what_another_algorithm_than_the_quiet_one_sends(job: _core.Job) -> None:
    first, second = job.levels[0].names
    one = cell("bcast", 100_000, 10.0, 0.5)
    # A star: each of the two ranks behind the other switch gets its own copy.
    planned = planned_bytes(job, one, "linear")
    assert planned is not None
    assert planned[second] == pytest.approx((0.0, 200 * KB))
    assert planned[first] == pytest.approx((200 * KB, 0.0))
    log = log_of(job, {second: [(10.0, 10.5, 0, 330)]})
    found = bounds(job, one, log, OwnTraffic({}, {}, "chain"), "linear")
    assert found.palmette_bound_s == [pytest.approx(0.23, rel=1e-3)]
    assert planned_bytes(job, one, "no such algorithm") is None


def test_the_plan_tells_what_blocks_of_different_lengths_take(job: _core.Job) -> None:
    first, second = job.levels[0].names
    uneven = cell("gatherv", 2500, 10.0, 0.5)
    uneven.block_bytes = [1000, 2000, 3000, 4000]
    planned = planned_bytes(job, uneven, "linear")
    assert planned is not None
    assert planned[first] == pytest.approx((0.0, 7 * KB))
    assert planned[second] == pytest.approx((7 * KB, 0.0))
    pairs = cell("alltoallv", 4, 10.0, 0.5)
    pairs.block_bytes = list(range(16))
    assert planned_bytes(job, pairs, "pairwise") is None


def test_own_bytes_are_the_median_of_the_quiet_calls(job: _core.Job) -> None:
    first = job.levels[0].names[0]
    quiet = cell("gather", 100_000, 2.0, 0.2)
    quiet.alone_s, quiet.palmette_s = [0.2, 0.2, 0.2], [0.1, 0.1, 0.1]
    quiet.alone_start_s, quiet.palmette_start_s = [2.0, 4.0, 6.0], [3.0, 5.0, 7.0]
    moves = [(begin, begin + 0.1, 0.0, 200.0) for begin in (2.0, 4.0, 6.0, 3.0, 5.0)] + [(7.0, 7.1, 0.0, 900.0)]
    own = count_own_bytes(quiet, "linear", log_of(job, {first: moves}))
    assert own is not None
    assert own.algorithm == "linear"
    assert own.alone[first] == pytest.approx((0.0, 200 * KB))
    assert own.palmette[first] == pytest.approx((0.0, 200 * KB))
    quiet.alone_start_s = []
    assert count_own_bytes(quiet, "linear", log_of(job, {})) is None


def loaded_run(made_run: MakeRun, times_the_bound: float) -> Run:
    """A cell whose calls take so many bounds of the empty network, and with palmette 1.1 loaded bounds."""
    run = made_run(lambda *_: 0.9, placements=("random:1",), collectives=("gather",), sizes=(65536,))
    for one_job in run.jobs:
        one_job.traffic = "alltoall:half:64K"
        for one in one_job.cells:
            one.bound = Limit(float(np.median(one.palmette_s)) / times_the_bound, "made up")
            one.alone_bound_s = [time_s / 1.5 for time_s in one.alone_s]
            one.palmette_bound_s = [time_s / 1.1 for time_s in one.palmette_s]
    return run


def test_loaded_rows_and_targets_use_the_bound_under_traffic(made_run: MakeRun) -> None:
    run = loaded_run(made_run, 1.6)
    (row,) = evaluate(run)
    assert row.palmette_multiple == pytest.approx(1.1)
    assert row.alone_multiple == pytest.approx(1.5)
    assert row.bound
    document = row.to_json()
    assert (document["palmette_beside_traffic"], document["bound_s"]) == (pytest.approx(1.1), row.bound.seconds)
    (outcome,) = outcomes(run, [Target("gain_or_bound", 1.2, placements=("random:1",), gain=1.5)])
    assert outcome.answer == "met"


def test_full_links_excuse_no_call_that_had_to_move_little_itself(made_run: MakeRun) -> None:
    run = loaded_run(made_run, 2.3)
    (row,) = evaluate(run)
    assert row.palmette_multiple == pytest.approx(2.3)
    assert row.palmette_loaded_multiple == pytest.approx(1.1)
    assert max(map(len, summary_lines(run, [row]))) <= 80
    (outcome,) = outcomes(run, [Target("gain_or_bound", 1.2, placements=("random:1",), gain=1.5)])
    assert outcome.answer == "missed"


_TAKE = """
import socket, sys
listener = socket.create_server(("", 5000))
print("ready", flush=True)
taker, _ = listener.accept()
while taker.recv(65536): pass
"""
_GIVE = """
import socket, sys
with socket.create_connection((sys.argv[1], 5000)) as giver: giver.sendall(bytes(100_000))
"""


@pytest.mark.root
def test_what_goes_over_links_is_logged_with_its_time(make_lab: Callable[[str, str], Lab]) -> None:
    lab = make_lab("2leaf@40Mbit/s:2node@100Mbit/s:1core", "link-log-test")
    giver, taker = lab.state.hosts[0], lab.state.hosts[-1]
    taking = subprocess.Popen(
        lab.exec_command(taker.name, [sys.executable, "-c", _TAKE]), stdout=subprocess.PIPE, text=True
    )
    with taking, lab.logging_links(2e-3) as read:
        assert taking.stdout is not None
        assert taking.stdout.readline() == "ready\n"
        before_s = time.monotonic()
        subprocess.run(
            lab.exec_command(giver.name, [sys.executable, "-c", _GIVE, taker.address]), check=True, timeout=20
        )
        after_s = time.monotonic() + 0.05
        time.sleep(0.3)
        log = read()
    out, into = log.between("leaf0", np.array([before_s, after_s]), np.array([after_s, after_s + 0.1]))
    # 100 KB in frames of 1514 bytes with 1448 of payload; acknowledgements come back.
    assert out[0] == pytest.approx(100_000 / PAYLOAD_SHARE, rel=0.05)
    assert 0 < into[0] < 10_000
    assert out[1] < 1000
    assert np.isnan(log.between("leaf0", np.array([before_s - 100]), np.array([after_s]))[0][0])


@pytest.mark.root
def test_links_of_a_lab_whose_counters_the_kernel_tells_in_several_parts_are_logged(
    make_lab: Callable[[str, str], Lab],
) -> None:
    lab = make_lab("6leaf@50Mbit/s:8node@100Mbit/s:1core", "link-log-large")
    with lab.logging_links(2e-3) as read:
        log = read()
    assert len(log.out) == 6 + 48
