"""Outputs of two runs are the same but for what changes between runs of the MPI alone."""

from __future__ import annotations

import random
import re

import pytest

from palmette.app.output import LINES_MERGED, LINES_MOVED, compare, reference

FIRST = "energy  -1.2345678E+02 after 100 steps\nwall time 3.21 s\n"
SECOND = "energy  -1.2345678E+02 after 100 steps\nwall time 3.87 s\n"


def test_what_changes_between_runs_alone_is_not_compared() -> None:
    common = reference([FIRST, SECOND], 1e-9)
    assert (common.numbers, len(common.varying)) == (2, 1)
    assert compare(common, FIRST.replace("3.21", "9.99"), 1e-9).same
    told = compare(common, FIRST.replace("-1.2345678E+02", "-1.2345699E+02"), 1e-9)
    assert not told.same and "-1.2345699E+02 instead of -1.2345678E+02" in told.difference


@pytest.mark.parametrize(
    ("text", "tolerance", "same"),
    [
        (FIRST.replace("5678E", "5679E"), 1e-6, True),
        (FIRST.replace("5678E", "5679E"), 1e-9, False),
        (FIRST.replace("-1.2345678E+02", "-1.2345678D+02"), 0.0, True),
        (FIRST.replace("energy", "entropy"), 1.0, False),
        (FIRST + "one line more\n", 1.0, False),
        (FIRST.replace("100 steps", "100 steps too many"), 1.0, False),
        (FIRST.replace("-1.2345678E+02", "nan"), 1.0, False),
        (FIRST.replace("-1.2345678E+02", "inf"), 1.0, False),
    ],
)
def test_numbers_are_compared_within_the_tolerance(text: str, tolerance: float, same: bool) -> None:
    assert compare(reference([FIRST], tolerance), text, tolerance).same is same


def test_lines_that_come_in_any_order_are_sorted() -> None:
    first, second = "rank 0: 1.5\nthe rank 1 has 2.5\n", "the rank 1 has 2.5\nrank 0: 1.5\n"
    common = reference([first, second], 0)
    assert not common.ordered
    assert compare(common, second, 0).same
    assert not compare(common, second.replace("2.5", "2.6"), 0).same


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("x=.05", "x=.5", False),
        ("err=-1e-15", "err=1e-15", True),
        ("a1b", "a2b", False),
        ("(1.5,-2)", "(1.5,-2.0)", True),
    ],
)
def test_numbers_are_found_wherever_they_stand(first: str, second: str, same: bool) -> None:
    assert compare(reference([first], 1e-9), second, 1e-9).same is same


def test_ignored_lines_count_nowhere() -> None:
    ignored = [re.compile("wall")]
    common = reference([FIRST], 0, ignored)
    assert compare(common, SECOND, 0, ignored).same
    assert compare(common, "energy  -1.2345678E+02 after 100 steps", 0, ignored).same


RANKS = "".join(f"rank {rank} says line {line} of it\n" for rank in range(2) for line in range(3))


def moved(text: str, seed: int) -> str:
    lines = text.splitlines(keepends=True)
    random.Random(seed).shuffle(lines)
    return "".join(lines)


def test_another_order_of_lines_than_in_all_runs_of_the_mpi_alone_is_told_as_that() -> None:
    common = reference([RANKS] * 3, 0)
    assert compare(common, RANKS, 0).order == ""
    for seed in range(5):
        found = compare(common, moved(RANKS, seed), 0)
        assert (found.same, found.order) == (True, LINES_MOVED)
    assert not compare(common, moved(RANKS.replace("line 2", "line 3", 1), 1), 0).same, "another number in one line"
    assert not compare(common, moved(RANKS + "one more\n", 1), 0).same
    assert not compare(common, moved(RANKS, 1).replace("says", "said", 1), 0).same


def test_what_varies_does_so_in_another_order_too() -> None:
    runs = [f"{RANKS}rank 0 took {a} s\nrank 1 took {b} s\n" for a, b in ((1.5, 1.25), (1.625, 1.75))]
    common = reference(runs, 0)
    assert compare(common, moved(runs[0].replace("1.5", "9.0"), 3), 0).order == LINES_MOVED
    assert not compare(common, moved(runs[0].replace("line 2", "line 9"), 3), 0).same


def test_lines_that_run_into_each_other_are_told_as_that() -> None:
    pieces = [(f"rank {rank} says line ", f"{line} of it\n") for rank in "ab" for line in "xyz"]
    whole = "".join(head + tail for head, tail in pieces)
    merged = "".join(pieces[0][0] + pieces[3][0] + pieces[0][1] + pieces[3][1])
    merged += "".join(head + tail for at, (head, tail) in enumerate(pieces) if at not in (0, 3))
    common = reference([whole, whole], 0)
    found = compare(common, merged, 0)
    assert (found.same, found.order) == (True, LINES_MERGED)
    assert not compare(common, merged.replace("x of", "w of"), 0).same
    # Runs of the MPI alone in which lines run into each other are compared by their words.
    common = reference([whole, merged, whole], 0)
    assert compare(common, merged, 0).same and compare(common, whole, 0).same
    assert not compare(common, whole.replace("b says", "c says"), 0).same
    assert not compare(common, whole + "more\n", 0).same


def test_numbers_that_change_places_are_no_order_of_lines() -> None:
    assert not compare(reference(["1 2 3\n"], 0), "3 2 1\n", 0).same
    assert not compare(reference(["a 1\nb 2\n"], 0), "a 2\nb 1\n", 0).same
    assert not compare(reference(["norm nan\nnorm 1\n"], 0), "norm 1\nnorm inf\n", 0).same
    assert compare(reference(["norm nan\nnorm 1\n"], 0), "norm 1\nnorm nan\n", 0).order == LINES_MOVED


def test_a_first_run_that_differs_from_all_later_ones_is_told() -> None:
    fresh, again = "computing 100 steps\nenergy 1.5\n", "restart found: nothing left to do\nenergy 1.5\n"
    common = reference([fresh, again, again], 0)
    assert "computing" in common.first_differs
    assert compare(common, again, 0).same and not compare(common, fresh, 0).same
    common = reference(["steps 100\n", "steps 0\n", "steps 0\n"], 0)
    assert common.first_differs == "100 instead of 0 in 'steps 0'"
    assert compare(common, "steps 3\n", 0).same, "a number that changes may be a time: it isn't compared"
    for runs in (
        [FIRST] * 3,
        [SECOND, FIRST, FIRST],
        [FIRST, SECOND, FIRST.replace("3.21", "3.5")],
        [fresh, again],
        [fresh, again, fresh],
    ):
        assert reference(runs, 0).first_differs == ""
