"""The least times of simulated collectives: what they say, and that no simulated time is below them."""

from __future__ import annotations

import pytest

from palmette.settings import force
from palmette_lab.simulate import cluster, job, limits, parameters, run

VALUES = parameters.read()
SMALL = "2leaf@3GB/s~2.45us:3+2node@1.5GB/s~1.57us:4core"
SIZES = (4, 1024, 12_000, 100_000)
FORCED = {
    "bcast": ("linear", "by_topology:node=binomial,top=linear,relays=all", "chain", "k_ary:radix=2,segment=4K"),
    "reduce": ("linear", "by_topology:node=binomial,top=linear,relays=all", "k_nomial"),
    "gather": ("linear", "by_topology:node=linear,top=linear"),
    "scatter": ("by_topology:node=linear,top=linear",),
    "allgather": ("ring", "leaders:leaders=2,between=bruck"),
    "allreduce": ("node_aware", "all", "ring", "rabenseifner"),
    "alltoall": ("linear", "leaders:leaders=2"),
    "reduce_scatter_block": ("direct", "ring"),
}


def on(spec: str = SMALL, placement: str = "block") -> job.Job:
    """Ranks on all places."""
    return job.make_job(cluster.prepared(cluster.from_spec(spec), VALUES), placement, None)


@pytest.mark.parametrize(
    "collective",
    [one if one in ("bcast", "allgather") else pytest.param(one, marks=pytest.mark.long) for one in FORCED],
)
def test_no_time_of_any_algorithm_or_rival_is_below_the_bound(collective: str, smpirun: str) -> None:
    for placement in ("block", "random:1"):
        seats = on(SMALL, placement)
        bounds = {size: limits.bound_s(seats, VALUES, collective, size, 0) for size in SIZES}
        assert all(bound_s > 1e-6 for bound_s in bounds.values())
        for name in ("", "mpich", *FORCED[collective]):
            own = name != "mpich"
            environment = force(**{collective: name}) if own and name else None
            contender = run.PALMETTE if own else name
            found = run.simulate(smpirun, seats, VALUES, contender, collective, SIZES, environment=environment)
            assert not found.trouble
            for size, time_s in found.times_s.items():
                assert time_s >= bounds[size] * (1 - 1e-9), (placement, name, size)


def test_a_broadcast_among_two_ranks_takes_its_latency_which_is_the_bound(smpirun: str) -> None:
    seats = on("2node@1.5GB/s~1.57us:1core")
    found = run.simulate(smpirun, seats, VALUES, run.PALMETTE, "bcast", (4,))
    assert limits.bound_s(seats, VALUES, "bcast", 4, 0) == pytest.approx(1.57e-6, rel=0.01)
    assert found.times_s[4] == pytest.approx(1.57e-6, rel=0.02)


def test_small_messages_are_bounded_by_how_soon_all_can_have_heard() -> None:
    few, many = (limits.bound_s(on(f"{nodes}node@1.5GB/s~1.57us:8core"), VALUES, "bcast", 8, 0) for nodes in (2, 64))
    assert 1.57e-6 < few < 2.5e-6
    assert many > 4e-6
    # A receiver is busy for longer than a sender.
    assert limits.bound_s(on("64node@1.5GB/s~1.57us:8core"), VALUES, "reduce", 8, 0) > many


def test_messages_beyond_the_eager_limit_have_only_their_bytes_and_wires() -> None:
    nodes = on("64node@1.5GB/s~1.57us:8core")
    bound_s = limits.bound_s(nodes, VALUES, "bcast", 20_000, 0)
    assert bound_s == pytest.approx(8 * 20_000 / 6.5e9 + 0.3e-6, rel=1e-6)


def test_a_hosts_ranks_hand_out_and_take_in_through_one_memory_and_one_link() -> None:
    seats = on("4node@1.5GB/s~1.57us:16core")
    vector = 1 << 20
    through_s = 16 * vector / 6.5e9
    for collective in ("bcast", "reduce"):
        assert limits.bound_s(seats, VALUES, collective, vector, 0) == pytest.approx(through_s, rel=0.01)
    # There and back, and the link carries both ways at once.
    assert limits.bound_s(seats, VALUES, "allreduce", vector, 0) == pytest.approx(32 * vector / 8e9, rel=0.01)
    alone = on("1node@1.5GB/s~1.57us:16core")
    assert limits.bound_s(alone, VALUES, "reduce", vector, 0) == pytest.approx(15 * vector / 5e9, rel=0.01)


def test_a_link_carries_its_first_byte_after_a_latency() -> None:
    seats = on("4node@1.5GB/s~1.57us:16core")
    assert limits.bound_s(seats, VALUES, "gather", 100, 0) == pytest.approx(48 * 100 / 1.5e9 + 1.57e-6, rel=1e-6)


def test_where_groups_are_joined_pairwise_no_level_tells_the_latency_of_a_way() -> None:
    bed = cluster.prepared(cluster.from_stored("dragonfly-9"), VALUES)
    seats = job.make_job(bed, "block", 64)
    far = job.make_job(bed, "cyclic", 64)
    for one in (seats, far):
        assert 1.2e-6 < limits.bound_s(one, VALUES, "bcast", 4, 0) < 5e-6
