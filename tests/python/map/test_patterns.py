"""Patterns of messages agree with the plans of the collectives that they stand for."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from palmette import _core
from palmette.map.errors import MapError
from palmette.map.pattern import Pattern, parse_pattern
from palmette.map.traffic import count_traffic
from palmette.map.traffic_file import read_traffic


def edges(pattern: Pattern) -> dict[tuple[int, int], float]:
    found: Counter[tuple[int, int]] = Counter()
    for source, target, size in zip(pattern.source, pattern.target, pattern.bytes, strict=True):
        found[int(source), int(target)] += float(size)
    return dict(found)


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 8, 13, 16])
@pytest.mark.parametrize(
    ("name", "collective", "algorithm"),
    [
        ("ring", "allgather", "ring:nested=no"),
        ("recursive_doubling", "allgather", "recursive_doubling"),
        ("gather", "gather", "k_nomial:radix=2"),
        ("bcast", "bcast", "k_nomial:radix=2"),
    ],
)
def test_a_pattern_is_its_plans_messages(ranks: int, name: str, collective: str, algorithm: str) -> None:
    if name == "recursive_doubling" and ranks & (ranks - 1):
        pytest.skip("the plan needs a power of two")
    plan = _core.Plan(_core.Job.flat(ranks), collective, algorithm, 0, 64)
    messages: Counter[tuple[int, int]] = Counter()
    for message in plan.messages():
        messages[message.sender, message.receiver] += plan.bytes_of(message)
    assert edges(parse_pattern(name, ranks, 64)) == dict(messages)


def test_ranks_past_a_power_of_two_hand_in_their_block_and_get_the_result() -> None:
    assert edges(parse_pattern("recursive_doubling", 3, 10)) == {(2, 0): 10.0, (0, 1): 20.0, (1, 0): 10.0, (0, 2): 30.0}


def test_a_stencils_neighbours_are_those_of_the_grid() -> None:
    found = edges(parse_pattern("stencil:3x2", 6, 10))
    assert found == {
        pair: 10.0 for a, b in [(0, 1), (2, 3), (4, 5), (0, 2), (2, 4), (1, 3), (3, 5)] for pair in ((a, b), (b, a))
    }


def test_a_periodic_stencil_wraps_round_and_two_cells_meet_twice() -> None:
    found = edges(parse_pattern("stencil:3x2,periodic", 6, 10))
    assert found[0, 4] == 10.0
    assert found[0, 1] == 20.0
    assert len(found) == 6 * 3


def test_traffic_is_counted_at_every_group_on_the_way() -> None:
    job = _core.Job(_core.Machine.synthetic("2leaf@1KB/s:2node@4KB/s:2core"))
    one = np.array([0, 0], dtype=np.int32)
    pattern = Pattern("two", 8, one, np.array([7, 1], dtype=np.int32), np.array([1000.0, 500.0]))
    traffic = count_traffic(job, pattern, range(8))
    assert traffic.busiest is not None
    assert (traffic.busiest.level, traffic.busiest.group, traffic.busiest.outwards) == ("leaf", "leaf0", True)
    assert traffic.busiest.seconds == 1.0
    leaf, node = traffic.levels
    assert leaf.out.tolist() == [1000.0, 0.0] and leaf.into.tolist() == [0.0, 1000.0]
    assert node.out.tolist() == [1000.0, 0.0, 0.0, 0.0]


def test_sparse_traffic_is_read_from_json(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    document = {"format": "palmette-traffic", "version": 1, "ranks": 3, "messages": [[0, 2, 5], [2, 2, 9], [0, 2, 1.5]]}
    file.write_text(json.dumps(document))
    pattern = read_traffic(file).pattern
    assert pattern.ranks == 3
    assert edges(pattern) == {(0, 2): 6.5}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "no traffic of version 1"),
        ('{"format": "palmette-traffic", "version": 1, "ranks": true, "messages": []}', "`ranks` is True"),
        ('{"format": "palmette-traffic", "version": 1, "ranks": 2, "messages": 0}', "`messages` is no list"),
        ('{"format": "palmette-traffic", "version": 1, "ranks": 2, "messages": [[0, 1]]}', "messages[0] is not"),
        ('{"format": "palmette-traffic", "version": 1, "ranks": 2, "messages": [[0, 2, 1]]}', "0 to 2 are not ranks"),
        ('{"format": "palmette-traffic", "version": 1, "ranks": 2, "messages": [[0, 1, -1]]}', "-1 is no number"),
    ],
)
def test_traffic_that_is_none_is_told_by_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "traffic.json"
    file.write_text(text)
    with pytest.raises(MapError, match=re.escape(complaint)):
        read_traffic(file)
