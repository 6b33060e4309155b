"""Plans by the memory of a node in simulated time: right results, and the times that the method page gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from palmette.settings import force
from palmette_lab.simulate import cluster, job, limits, parameters, run
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.platform import platform_xml

VALUES = parameters.read(parameters.file_named("servers"))
FLAG_S, CORE, SINGLE = VALUES.flag_latency_s, VALUES.core_bytes_per_s, VALUES.single_copy_bytes_per_s
CLOCK_S = 2e-9
"""SimGrid's clock, each time that it is read."""


def on(spec: str, placement: str = "block", values: parameters.Parameters = VALUES) -> job.Job:
    return job.make_job(cluster.prepared(cluster.from_spec(spec), values), placement, None)


def simulated(
    smpirun: str, seats: job.Job, collective: str, algorithm: str, *sizes: int, **more: Any
) -> dict[int, float]:
    """The times by this algorithm, all of its results compared."""
    values = more.pop("values", VALUES)
    environment = force(**{collective: algorithm})
    found = run.simulate(smpirun, seats, values, run.PALMETTE, collective, sizes, environment=environment, **more)
    assert found.trouble == ""
    assert found.wrong_ranks == dict.fromkeys(sizes, 0)
    assert all(name.startswith(algorithm) for name in found.algorithms.values()), found.reasons
    return found.times_s


@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"])
def test_results_on_one_node_are_right_and_no_faster_than_the_bound(collective: str, smpirun: str) -> None:
    seats = on("1node:7core")
    sizes = (4, 20_000, 300_000)
    for root in (0, 5) if collective in ("bcast", "reduce", "gather", "scatter") else (0,):
        times = simulated(smpirun, seats, collective, "shared", *sizes, root=root)
        for size in sizes:
            assert times[size] >= limits.bound_s(seats, VALUES, collective, size, root)


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("allreduce", "leaders:leaders=all,inside=shared"),
        ("allreduce", "leaders:between=ring,inside=shared"),
        ("bcast", "by_topology:node=shared,top=linear,segment=8K"),
        ("reduce", "by_topology:node=shared,segment=8K"),
    ],
)
def test_results_on_several_nodes_are_right(collective: str, algorithm: str, smpirun: str) -> None:
    seats = on("2leaf@6GB/s:2node@3GB/s:6core", "random:1")
    sizes = (4, 5000, 40_000)
    times = simulated(smpirun, seats, collective, algorithm, *sizes)
    for size in sizes:
        assert times[size] >= limits.bound_s(seats, VALUES, collective, size, 0)


def test_two_ranks_take_what_the_page_says(smpirun: str) -> None:
    two = on("1node:2core")
    assert simulated(smpirun, two, "barrier", "shared", 0)[0] == pytest.approx(FLAG_S, abs=CLOCK_S)
    ring = simulated(smpirun, two, "bcast", "shared:single=1G", 8, 10_000)
    assert ring[8] == pytest.approx(FLAG_S, abs=CLOCK_S), "in the cache line of the flag"
    assert ring[10_000] == pytest.approx(10_000 / CORE + FLAG_S + 10_000 / CORE, abs=4 * CLOCK_S)
    single = simulated(smpirun, two, "bcast", "shared:single=4K", 40_960)
    assert single[40_960] == pytest.approx(FLAG_S + 40_960 / SINGLE + FLAG_S, abs=4 * CLOCK_S)
    assert pytest.approx(10 * VALUES.page_s) == 40_960 / SINGLE - 40_960 / CORE


def test_copies_of_a_host_share_its_memory(smpirun: str) -> None:
    slow = replace(VALUES, memory_bytes_per_s=2 * CORE)
    seats = on("1node:9core", values=slow)
    took = simulated(smpirun, seats, "bcast", "shared:single=1G", 10_000, values=slow)[10_000]
    assert took == pytest.approx(10_000 / CORE + FLAG_S + 8 * 10_000 / (2 * CORE), abs=4 * CLOCK_S)


def test_a_leader_that_waits_for_a_flag_and_for_messages_goes_on_with_either(smpirun: str) -> None:
    seats = on("4node@3GB/s:4core")
    algorithm = "by_topology:node=shared,top=binomial,segment=16K"
    slow = simulated(smpirun, seats, "bcast", algorithm, 128 << 10, values=replace(VALUES, core_bytes_per_s=0.5e9))
    fast = simulated(smpirun, seats, "bcast", algorithm, 128 << 10)
    assert fast[128 << 10] < slow[128 << 10]
    assert simulated(smpirun, seats, "bcast", algorithm, 128 << 10) == fast, "the same to the last digit"


def test_messages_inside_a_host_are_single_copies_by_one_core() -> None:
    made = cluster.prepared(cluster.from_spec("1node:2core"), VALUES)
    xml = platform_xml(made.topology, VALUES)
    assert f'<link id="h0!core" bandwidth="{SINGLE:.9g}Bps" latency="0s" sharing_policy="FATPIPE"/>' in xml
    assert '<link_ctn id="h0!memory"/><link_ctn id="h0!core"/>' in xml


def test_where_parameters_have_no_shared_memory_it_cannot_be_asked_for(smpirun: str) -> None:
    values = parameters.read()
    assert not values.share_memory
    seats = on("1node:2core", values=values)
    assert "prop" not in platform_xml(seats.cluster.topology, values)
    with pytest.raises(SimulateError, match="core_bytes_per_s"):
        run.simulate(smpirun, seats, values, run.PALMETTE, "bcast", [8], environment={"PALMETTE_SHARED": "1"})


def test_shared_memory_can_be_left_out(smpirun: str) -> None:
    environment = {"PALMETTE_SHARED": "0", "PALMETTE_FORCE": "bcast=shared"}
    found = run.simulate(smpirun, on("1node:4core"), VALUES, run.PALMETTE, "bcast", [8], environment=environment)
    assert found.algorithms == {8: "mpi"}
