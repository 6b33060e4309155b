"""Outputs of two runs are the same but for what changes between runs of the MPI alone."""

from __future__ import annotations

import re

import pytest

from palmette.app.output import compare, reference

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
