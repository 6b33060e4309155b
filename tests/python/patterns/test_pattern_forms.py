"""Patterns as they are written, who sends to whom, and where bytes lie."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from palmette import _core
from palmette.patterns.errors import PatternError
from palmette.patterns.form import parse
from palmette.patterns.groups import pairs
from palmette.patterns.seats import Seats
from palmette.patterns.transfers import plan

MACHINE = "2leaf@50Mbit/s:2node@100Mbit/s:2core"
GROUPS = [[0, 1, 2], [3, 4, 5], [6, 7]]


def seats(placement: str = "block") -> Seats:
    machine = _core.Machine.synthetic(MACHINE)
    return Seats.on(machine, _core.Job(machine, placement).hosts)


@pytest.mark.parametrize(
    ("kind", "way", "width", "expected"),
    [
        ("rail", "one", 1, [(0, 3), (0, 6)]),
        ("rail", "one", 3, [(0, 3), (1, 4), (2, 5), (0, 6), (1, 7)]),
        ("rail", "in", 1, [(3, 0), (6, 0)]),
        ("rail", "both", 1, [(0, 3), (0, 6), (3, 0), (6, 0)]),
        ("rail", "all", 1, [(0, 3), (3, 6), (6, 0), (0, 6), (3, 0), (6, 3)]),
        ("fan", "one", 1, [(0, 3), (0, 4), (0, 5), (0, 6), (0, 7)]),
        ("dense", "one", 2, [(0, 3), (0, 4), (1, 3), (1, 4), (0, 6), (0, 7), (1, 6), (1, 7)]),
        ("self", "one", 1, [(0, 0), (3, 3), (6, 6)]),
        ("self", "both", 1, [(0, 0), (3, 3), (6, 6)] * 2),
    ],
)
def test_groups_send_to_each_other_as_kind_width_and_way_say(
    kind: str, way: str, width: int, expected: list[tuple[int, int]]
) -> None:
    assert pairs(kind, GROUPS, width, way) == expected


def test_all_ways_send_once_between_any_two_groups() -> None:
    found = pairs("dense", GROUPS, None, "all")
    assert set(Counter(found).values()) == {1}
    assert len(found) == 2 * (3 * 3 + 3 * 2 + 3 * 2)


def test_groups_are_hosts_or_levels_or_even_cuts_in_topology_order() -> None:
    assert seats().groups(None, 8) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert seats().groups("leaf", 8) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert seats().groups("3", 8) == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert seats().groups(None, 5) == [[0, 1], [2, 3], [4]]
    assert seats("cyclic").groups(None, 8) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_levels_tell_how_far_two_ranks_are_apart() -> None:
    here = seats("cyclic")
    assert [here.level_between(0, other) for other in (0, 4, 1, 2)] == ["self", "inside", "node", "leaf"]


def test_a_message_is_one_transfer_of_its_own_bytes() -> None:
    made = plan(parse("rail:way=both"), seats(), 1000)
    assert len(made.transfers) == 12
    for rank in range(8):
        ranges = [(t.source_at, t.source_at + t.bytes) for t in made.transfers if t.source == rank]
        ranges += [(t.target_at, t.target_at + t.bytes) for t in made.transfers if t.target == rank]
        ranges.sort()
        assert all(end <= first for (_, end), (first, _) in itertools.pairwise(ranges)), "no byte twice"
    assert {(kind.part, kind.level) for kind in made.kinds} == {("rail", "leaf"), ("rail", "node")}


def test_stripes_go_over_the_ranks_of_both_hosts_and_come_together_again() -> None:
    made = plan(parse("pair:from=1,to=6,stripes=2@shm/rma"), seats(), 1001)
    assert made.steps == 3
    hops = [(t.step, t.source, t.target, t.bytes, t.library) for t in made.transfers]
    assert hops == [(0, 1, 0, 501, "shm"), (1, 1, 6, 500, "rma"), (1, 0, 7, 501, "rma"), (2, 7, 6, 501, "shm")]
    split, direct, across, join = made.transfers
    assert {t.origin for t in made.transfers} == {1}
    assert (split.target_at, across.target_at) == (across.source_at, join.source_at), "what came is what goes on"
    assert split.origin_at == across.origin_at == join.origin_at == direct.origin_at + 500


def test_steps_follow_each_other_and_parts_of_one_step_are_labelled_apart() -> None:
    made = plan(parse("rail + self then dense:groups=leaf,width=1"), seats(), 64)
    assert made.steps == 2
    assert [(kind.step, kind.part) for kind in made.kinds] == [
        (0, "rail"), (0, "rail"), (0, "self"), (1, "dense:groups=leaf,width=1"),
    ]  # fmt: skip
    assert [t.step for t in made.transfers] == sorted(t.step for t in made.transfers)


def test_a_matrix_says_what_each_rank_sends(tmp_path: Path) -> None:
    file = tmp_path / "bytes.txt"
    file.write_text("\n".join(" ".join("512" if c == (r + 1) % 8 else "0" for c in range(8)) for r in range(8)))
    made = plan(parse(f"matrix:{file}@shm/mpi"), seats(), 1)
    assert sorted((t.source, t.target, t.bytes) for t in made.transfers) == [(r, (r + 1) % 8, 512) for r in range(8)]
    assert {t.library for t in made.transfers if t.source % 2 == 0} == {"shm"}
    assert {t.library for t in made.transfers if t.source % 2 == 1} == {"mpi"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("trail", "pattern 'trail' is unknown"),
        ("rail:depth=2", "'depth=2' is none of ranks="),
        ("rail:width", "'width' is none of"),
        ("rail:width=0", "width=0: expected a whole number"),
        ("rail:width=3", "width=3: the largest group has 2 ranks"),
        ("rail:groups=9", "8 ranks make 1 to 8 groups"),
        ("rail:groups=rack", "no such level; give a number of groups, or a level: leaf, node"),
        ("rail:groups=1", "there is one group only"),
        ("rail:ranks=9", "the job has 8 ranks only"),
        ("rail:way=up", "way=up: expected one, in, both, all"),
        ("rail:width=1,width=2", "width is given twice"),
        ("rail@tcp", "'tcp' is none of mpi, rma, shm, single_copy"),
        ("rail@shm", "which shm doesn't reach; write @shm/mpi"),
        ("rail@mpi/shm", "shm doesn't reach another host"),
        ("rail:size=many", "many"),
        ("pair:from=0", "to= is missing"),
        ("pair:from=0,to=8", "there is no rank 8"),
        ("matrix", "file= is missing"),
        ("matrix:none.txt", "none.txt: can't be read"),
        ("rail +  + self", "a pattern is missing"),
        ("rail:size=1G,window=4", "take smaller messages"),
    ],
)
def test_what_cant_be_is_an_error_that_says_what_does(text: str, complaint: str) -> None:
    with pytest.raises(PatternError) as error:
        plan(parse(text), seats(), 64)
    assert complaint in str(error.value)
