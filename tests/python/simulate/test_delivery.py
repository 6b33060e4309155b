"""How soon a vector can be everywhere: what is known by hand, and no schedule that ranks can follow is faster."""

from __future__ import annotations

import random

import pytest

from palmette import _core
from palmette_lab.simulate.delivery import Costs, Gaps, Shape, least_delivery_s, least_of_job_s

US = 1e-6
COSTS = Costs(Gaps(0.1 * US, 0.3 * US, 0.5 * US), 1.5 * US, 2.5 * US, 1e9)


def test_one_message_takes_its_latency_and_bytes_their_links() -> None:
    assert least_delivery_s(Shape(1, 1, 1, 1, 1, 1), COSTS, 0) == pytest.approx(2.5 * US)
    # Sixteen copies of 100 ns each leave the root's host, until others have heard and help.
    assert least_delivery_s(Shape(16, 1, 16, 16, 1, 1), COSTS, 100) > 2.5 * US + 16 * 0.1 * US


def test_ranks_of_one_host_hear_of_it_as_in_the_postal_model() -> None:
    # The host is entered after 2.5 us; N(t) = N(t - 0.1) + N(t - 0.5) reaches 16 after another 1.3.
    found_s = least_delivery_s(Shape(1, 1, 1, 1, 16, 16), COSTS, 0)
    assert 3.3 * US < found_s <= 3.8 * US


def test_more_hosts_and_more_bytes_take_longer() -> None:
    times = [least_delivery_s(Shape(16, 1, 16, hosts, 16, 16), COSTS, 512) for hosts in (1, 4, 16, 64, 256)]
    assert times == sorted(set(times))
    times = [least_delivery_s(Shape(16, 4, 16, 29, 8, 8), COSTS, size) for size in (8, 64, 512, 4096)]
    assert times == sorted(set(times))


def test_nothing_follows_where_a_message_costs_nothing_or_everybody_is_at_home() -> None:
    assert least_delivery_s(Shape(2, 1, 2, 3, 2, 2), Costs(Gaps(0, 1, 1), 1, 1, 1e9), 8) == 0
    assert least_delivery_s(Shape(2, 1, 2, 3, 2, 2), Costs(Gaps(1e-12, 1, 1), 1, 1, 1e9), 8) == 0
    assert least_delivery_s(Shape(2, 4, 2, 0, 0, 0), COSTS, 8) == 0


def test_a_long_way_is_bounded_as_far_as_it_is_looked_at() -> None:
    # 400 copies of a second each.
    assert 50 * US < least_delivery_s(Shape(1, 1, 1, 400, 1, 1), COSTS, 1_000_000_000) < 1.0


def told_s(seats: list[tuple[int, int]], size_bytes: int, dice: random.Random) -> float:
    """The time of some schedule: each message has the whole vector, and those of a host leave one after the other."""
    heard_s = {0: 0.0}
    free_s, link_s = {0: 0.0}, dict.fromkeys(set(seats), 0.0)
    while len(heard_s) < len(seats):
        senders = sorted(heard_s, key=lambda rank: free_s[rank])
        source = dice.choice(senders[: 1 + dice.randrange(3)])
        target = dice.choice([rank for rank in range(len(seats)) if rank not in heard_s])
        if seats[source] == seats[target]:
            heard_s[target] = free_s[source] + COSTS.gaps.inside_latency_s
            free_s[source] += COSTS.gaps.inside_s
        else:
            leaves_s = max(free_s[source], link_s[seats[source]]) + size_bytes / COSTS.link_bytes_per_s
            near = seats[source][0] == seats[target][0]
            link_s[seats[source]] = leaves_s
            heard_s[target] = leaves_s + (COSTS.near_latency_s if near else COSTS.far_latency_s)
            free_s[source] += COSTS.gaps.between_s
        free_s[target] = heard_s[target]
    return max(heard_s.values())


@pytest.mark.parametrize("size_bytes", [0, 64, 1000])
@pytest.mark.parametrize("shape", [(1, 5, 3), (2, 3, 2), (3, 2, 2), (1, 4, 1), (2, 4, 4)])
def test_no_schedule_is_faster(shape: tuple[int, int, int], size_bytes: int) -> None:
    groups, hosts, ranks = shape
    machine = f"{groups}leaf@10GB/s~2.5us:{hosts}node@1GB/s~1.5us:{ranks}core"
    seats = [(group, host) for group in range(groups) for host in range(hosts) for _ in range(ranks)]
    job = _core.Job(_core.Machine.synthetic(machine), "block")
    least_s = least_of_job_s(job, 0, COSTS.gaps, size_bytes)
    dice = random.Random(3)
    best_s = min(told_s(seats, size_bytes, dice) for _ in range(2000))
    assert 0.3 * best_s < least_s <= best_s
