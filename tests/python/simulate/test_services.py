"""Aggregators in simulated time: each is a process more, which runs its part of an allreduce's plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette_lab.simulate import cluster, job, limits, parameters, run

Call = Callable[..., Any]
VALUES = parameters.read()
SWITCH = "aggregator:8node@50Mbit/s:2core"
SPLIT = "aggregator@100Mbit/s:8node@50Mbit/s:2core"
UNEVEN = "aggregator:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
TWO = "aggregator@50Mbit/s+aggregator@150Mbit/s:5node@50Mbit/s:2core"
LEAVES = "3leaf@50Mbit/s+aggregator@1Gbit/s:4node@100Mbit/s"
FAST = "aggregator@6GB/s:3leaf@3GB/s:4node@1.5GB/s:4core"


def on(spec: str, placement: str = "block", ranks: int | None = None) -> job.Job:
    return job.make_job(cluster.prepared(cluster.from_spec(spec), VALUES), placement, ranks)


def simulated(smpirun: str, seats: job.Job, algorithm: str, *sizes: int) -> run.Outcome:
    """An allreduce by this algorithm, its results compared; in place, too, where there are services."""
    environment = {"PALMETTE_FORCE": f"allreduce={algorithm}"}
    found = run.simulate(smpirun, seats, VALUES, run.PALMETTE, "allreduce", sizes, environment=environment)
    assert found.trouble == ""
    assert found.wrong_ranks == dict.fromkeys(sizes, 0)
    return found


@pytest.mark.parametrize("placement", ["block", "random:1"])
@pytest.mark.parametrize(
    ("machine", "algorithm", "services"),
    [
        (SWITCH, "in_network", 1),
        (SPLIT, "in_network", 1),
        (SPLIT, "in_network:share=30,segment=4K", 1),
        (UNEVEN, "in_network", 1),
        (UNEVEN, "in_network:level=node,share=70", 1),
        (TWO, "in_network", 2),
        (LEAVES, "in_network", 3),
    ],
)
def test_results_are_right(machine: str, algorithm: str, services: int, placement: str, smpirun: str) -> None:
    seats = on(machine, placement)
    assert len(seats.services()) == services
    sizes = (4, 1000, 100_000)
    found = simulated(smpirun, seats, algorithm, *sizes)
    if machine == LEAVES:
        assert set(found.algorithms.values()) == {"mpi"}
        assert "no aggregator stands above all groups" in found.reasons[4]
        return
    assert found.algorithms == dict.fromkeys(sizes, algorithm)
    assert found.served == 3 * len(sizes), "checked, checked in place, timed"


def test_the_aggregator_at_the_jobs_own_leaf_serves_it(smpirun: str) -> None:
    seats = on(LEAVES, "hosts=h4,h5,h6,h7")
    assert seats.services() == ("aggregator!aggregator1",)
    assert simulated(smpirun, seats, "in_network", 10_000).algorithms == {10_000: "in_network"}


def test_a_topology_file_with_limits_is_simulated_with_them(smpirun: str, tmp_path: Path) -> None:
    topology = cluster.from_spec(SWITCH).topology
    document = topology.to_json()
    document["machine"]["tree"]["aggregators"][0]["limits"] = {"bytes": 64 << 10}
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    limited = job.make_job(cluster.prepared(cluster.from_file(str(path)), VALUES), "block", None)
    limited_s, free_s = (
        simulated(smpirun, seats, "in_network:segment=8K", 256 << 10).times_s[256 << 10]
        for seats in (limited, on(SWITCH))
    )
    assert limited_s > 1.2 * free_s


@pytest.mark.parametrize(
    ("machine", "within"), [(SWITCH, 0.02), (SPLIT, 0.02), ("aggregator:8node@1.5GB/s:1core", 0.2)]
)
def test_times_are_those_predicted(machine: str, within: float, smpirun: str) -> None:
    seats, sizes = on(machine), (64 << 10, 1 << 20)
    core = _core.Job(_core.Machine.from_json(seats.cluster.topology.to_json()), "hosts=" + ",".join(seats.seats))
    costs = _core.Costs.of(core)
    found = simulated(smpirun, seats, "in_network", *sizes)
    for size in sizes:
        predicted = _core.predict_algorithm(core, "allreduce", "in_network", costs, block_bytes=size, element_bytes=4)
        assert found.times_s[size] == pytest.approx(predicted.seconds, rel=within), size


def test_eight_nodes_behind_a_switch_are_faster_through_an_unlimited_aggregator(smpirun: str) -> None:
    seats, size = on(SWITCH), 1 << 20
    through_s = simulated(smpirun, seats, "in_network", size).times_s[size]
    hosts_s = simulated(smpirun, seats, "ring", size).times_s[size]
    # An adapter carries the vector once each way, instead of 2 (k-1) / k times.
    assert hosts_s / through_s == pytest.approx(1.75, rel=0.1)
    for contender in ("mpich", "ompi"):
        other = run.simulate(smpirun, seats, VALUES, contender, "allreduce", (size,))
        assert other.times_s[size] > 1.3 * through_s
    chosen = run.simulate(smpirun, seats, VALUES, run.PALMETTE, "allreduce", (size,))
    assert chosen.algorithms == {size: "in_network"}
    assert chosen.times_s[size] == through_s


@pytest.mark.parametrize("machine", [SWITCH, SPLIT, UNEVEN, FAST])
def test_no_time_is_below_the_bound(machine: str, smpirun: str) -> None:
    seats, sizes = on(machine), (4, 1024, 12_000)
    for algorithm in ("in_network", "ring"):
        found = simulated(smpirun, seats, algorithm, *sizes)
        for size in sizes:
            assert found.times_s[size] >= limits.bound_s(seats, VALUES, "allreduce", size, 0) > 0, (algorithm, size)


def test_only_palmettes_allreduce_has_services(smpirun: str) -> None:
    """All but palmette's allreduce takes as long as on a machine without services."""
    machine, without = SPLIT, SPLIT.split(":", 1)[1]
    for contender, collective in ((run.PALMETTE, "bcast"), (run.PALMETTE, "allreduce"), ("mpich", "allreduce")):
        times = [run.simulate(smpirun, on(it), VALUES, contender, collective, (10_000,)) for it in (machine, without)]
        assert times[0].times_s == pytest.approx(times[1].times_s, rel=1e-4)
    loaded = job.Job(on(machine).cluster, "block", on(machine, ranks=8).seats, job.Background(("h4", "h5"), 4096))
    assert "no aggregator serves the job" in simulated(smpirun, loaded, "in_network", 1000).reasons[1000]


def test_the_command_shows_a_plan_through_aggregators(smpirun: str, palmette_lab: Call) -> None:
    asked = ("--machine", SWITCH, "--collectives", "allreduce", "--sizes", "256K", "--rivals", "mpich",
             "--env", "PALMETTE_FORCE=allreduce=in_network", "--json")  # fmt: skip
    result = palmette_lab("simulate", *asked)
    assert result.status == 0, result.err
    (cell,) = json.loads(result.out)["cells"]
    assert (cell["algorithm"], cell["slower"]) == ("in_network", False)
    assert 1 <= cell["multiple_of_bound"] < 1.2
