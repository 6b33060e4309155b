"""Placements for launchers."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from palmette.topology.placement import PlacementError, hosts_of_ranks, splitmix64

HOSTS = [("h0", 2), ("h1", 1), ("h2", 3)]


def test_block_fills_host_after_host() -> None:
    assert hosts_of_ranks(HOSTS, "block") == ["h0", "h0", "h1", "h2", "h2", "h2"]


def test_cyclic_goes_round_and_leaves_out_full_hosts() -> None:
    assert hosts_of_ranks(HOSTS, "cyclic") == ["h0", "h1", "h2", "h0", "h2", "h2"]


def test_a_smaller_job_takes_the_first_places() -> None:
    assert hosts_of_ranks(HOSTS, "cyclic", 4) == ["h0", "h1", "h2", "h0"]


def test_splitmix64_gives_its_published_numbers() -> None:
    assert list(islice(splitmix64(1234567), 5)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_random_shuffles_all_slots_from_the_end() -> None:
    hosts = [(f"h{i}", 1) for i in range(4)]
    expected = [name for name, _ in hosts]
    numbers = splitmix64(42)
    for i in (3, 2, 1):
        j = next(numbers) % (i + 1)
        expected[i], expected[j] = expected[j], expected[i]
    assert hosts_of_ranks(hosts, "random:42") == expected


def test_random_keeps_the_slots_of_every_host_and_depends_on_the_seed() -> None:
    hosts = [(f"h{i}", 2) for i in range(8)]
    one, other = (hosts_of_ranks(hosts, f"random:{seed}") for seed in (1, 2))
    assert Counter(one) == Counter(other) == Counter({name: 2 for name, _ in hosts})
    assert one != other
    assert one == hosts_of_ranks(hosts, "random:1")


def test_random_with_less_ranks_than_slots_is_the_front_of_the_whole_shuffle() -> None:
    assert hosts_of_ranks(HOSTS, "random:5", 3) == hosts_of_ranks(HOSTS, "random:5")[:3]


def test_named_hosts_may_carry_more_ranks_than_slots_and_match_up_to_the_first_dot() -> None:
    hosts = [("n1.cluster", 1), ("n2", 1)]
    assert hosts_of_ranks(hosts, "hosts=n2,n1,n2.local,n2") == ["n2", "n1.cluster", "n2", "n2"]


def test_a_file_names_hosts_with_counts_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# rank 0 first\nh2:2\n\nh0  # one\nh2 : 1\n")
    assert hosts_of_ranks(HOSTS, str(file)) == ["h2", "h2", "h0", "h2"]


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ("random:x", "the seed must be a whole number"),
        ("random:18446744073709551616", "the seed must be a whole number"),
        ("hosts=h0,h9", "rank 1 sits on host 'h9'"),
        ("scattered", "neither block, cyclic, random:SEED"),
    ],
)
def test_a_form_that_cannot_be_read_is_named(form: str, complaint: str) -> None:
    with pytest.raises(PlacementError, match=complaint):
        hosts_of_ranks(HOSTS, form)


def test_a_bad_line_of_a_file_is_named_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("h0\nh1:none\n")
    with pytest.raises(PlacementError, match="line 2: 'none' is not a count"):
        hosts_of_ranks(HOSTS, str(file))


@pytest.mark.parametrize("ranks", [0, 7])
def test_a_job_that_does_not_fit_is_refused(ranks: int) -> None:
    with pytest.raises(PlacementError, match="has 6 places"):
        hosts_of_ranks(HOSTS, "block", ranks)
