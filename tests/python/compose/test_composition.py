"""Compositions in Python and in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palmette import _core
from palmette.compose import ComposeError, Composition, named
from palmette.compose.composition import hierarchy_text
from palmette.compose.files import from_json, read


def sum_of(ranks: int) -> Composition:
    """Return an allreduce written by hand."""
    made = Composition(ranks, bytes=4096, blocks=ranks, vector=True, element_bytes=8)
    x, y = made.buffer("x"), made.buffer("y")
    for rank in range(ranks):
        made.reduce("all", rank, x[rank], y, "sum")
    made.fence()
    for rank in range(ranks):
        made.multicast(rank, "all", y[rank], y)
    return made


def test_a_composition_of_two_lines_is_factored_and_proved() -> None:
    made = Composition(24, bytes=1 << 20)
    x = made.buffer("x")
    made.multicast(0, "all", x[0], x)
    plan = made.factor(hierarchy=[3, 8], methods=["ring", "tree.2"], stripes=4, pipeline=4)
    assert plan.verify() is None
    assert plan.count().levels[0].bytes == 2 << 20


def test_one_written_by_hand_makes_the_plan_of_the_one_by_name() -> None:
    by_hand = sum_of(8).factor(hierarchy=[2, 4])
    by_name = named("allreduce", 8, 4096, element_bytes=8).factor(hierarchy=[2, 4])
    assert [by_hand.text(rank) for rank in range(8)] == [by_name.text(rank) for rank in range(8)]
    assert by_hand.count().messages == 64


def test_a_rank_makes_its_program_without_the_others() -> None:
    made = sum_of(9)
    plan = made.factor(hierarchy=[2, [4, 5]], stripes=2, pipeline=3)
    for rank in range(9):
        program = made.program(rank, hierarchy=[2, [4, 5]], stripes=2, pipeline=3)
        assert program.text() == plan.text(rank)


def test_a_hierarchy_groups_the_positions_of_a_job() -> None:
    job = _core.Job(_core.Machine.synthetic("2leaf:2node:3core"), "cyclic")
    made = named("allgather", 12, 100)
    assert made.factor(job).verify() is None
    assert made.factor(job, hierarchy=[4, 3]).verify() is None
    with pytest.raises(_core.Error, match=r"'5:3' makes 15 ranks where there are 12; 12 fits|5:3\+3\+2\+2\+2 fits"):
        made.factor(job, hierarchy=[5, 3])


def test_hierarchies_are_written_as_text_for_the_core() -> None:
    assert hierarchy_text([3, 8]) == "3:8"
    assert hierarchy_text([2, [4, 3]]) == "2:4+3"
    assert hierarchy_text("2:4+3") == "2:4+3"


def test_regions_are_blocks_that_there_are() -> None:
    made = Composition(2, bytes=8, blocks=4)
    x = made.buffer("x")
    assert (x[1:3].first, x[1:3].count) == (1, 2)
    assert x[-1].first == 3
    with pytest.raises(IndexError, match="only the blocks 0 to 3"):
        x[4]
    with pytest.raises(ValueError, match="consecutive"):
        x[::2]
    with pytest.raises(_core.Error, match="multicast from rank 0: blocks 3 to 2 are none"):
        made.multicast(0, [1], x[3:3], x)


def test_blocks_lie_in_ascending_order_where_a_rank_touches_them() -> None:
    made = Composition(3, bytes=[4, 8, 12, 16])
    x = made.buffer("x")
    made.multicast(0, [1], x[3], x)
    made.multicast(1, [2], x[0:2], x)
    made.hold(2, x[3])
    assert made.core.held(1, "x") == [(0, 2), (3, 1)]
    assert made.core.held(2, "x") == [(0, 2), (3, 1)]
    assert made.core.held(0, "x") == [(3, 1)]


DOCUMENT = {
    "ranks": 4,
    "bytes": 8,
    "blocks": 2,
    "phases": [
        [{"reduce": [0, 1, 2], "to": 3, "source": "x", "blocks": [0, 2], "target": "y", "operation": "max"}],
        [{"multicast": 3, "to": "all", "source": "y", "blocks": [0, 1], "target": "y"}],
    ],
}


def test_a_json_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "most.json"
    file.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    made = read(file, None, 0)
    assert (made.name, made.ranks, made.core.phases) == ("most", 4, 2)
    assert made.factor(hierarchy=[2, 2]).verify() is None


def test_a_python_file_is_run(tmp_path: Path) -> None:
    file = tmp_path / "ring.py"
    file.write_text(
        "from palmette.compose import Composition\n"
        "def composition(ranks, bytes):\n"
        "    c = Composition(ranks, bytes=bytes, blocks=ranks)\n"
        "    x, y = c.buffer('x'), c.buffer('y')\n"
        "    for r in range(ranks):\n"
        "        c.multicast(r, [(r + 1) % ranks], x[r], y)\n"
        "    return c\n",
        encoding="utf-8",
    )
    made = read(file, 6, 64)
    assert made.name == "ring"
    plan = made.factor(hierarchy=[2, 3])
    assert plan.verify() is None
    assert plan.count().messages == 6, "neighbours speak to each other without relays"
    with pytest.raises(ComposeError, match="doesn't say for how many ranks"):
        read(file, None, 64)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"rank": 3}, "'rank' is unknown"),
        ({"ranks": "four"}, "a value has the wrong type"),
        ({"phases": [{}]}, "must be a list of lists"),
        ({"phases": [[{"multicast": 9, "to": [1], "source": "x", "blocks": [0, 1], "target": "y"}]]}, "ranks 0 to 3"),
        ({"phases": [[{"multicast": 0, "to": [1], "source": "x", "blocks": [1, 5], "target": "y"}]]}, "blocks 0 to 1"),
        ({"phases": [[{"multicast": 0, "to": [1], "source": "x", "blocks": [0, 1]}]]}, "'target' is missing"),
        ({"phases": [[{"multicast": 0, "to": "some", "source": "x", "blocks": [0, 1], "target": "y"}]]}, "or 'all'"),
        ({"bytes": -1}, "-1 bytes"),
    ],
)
def test_a_document_that_is_wrong_is_told_with_its_place(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ComposeError, match=complaint) as raised:
        from_json(DOCUMENT | change, "most.json")
    assert str(raised.value).startswith("most.json")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def composition(:", "can't be run: SyntaxError"),
        ("x = 1", "defines no function composition"),
        ("def composition(r, b): return 3", "returns a int"),
        ("def composition(r, b): return 1 / 0", "fails: division by zero"),
    ],
)
def test_a_python_file_that_is_wrong_is_told_with_its_name(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ComposeError, match=complaint):
        read(file, 4, 8)
