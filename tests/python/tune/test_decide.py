"""Verdicts on candidates that were measured in turns."""

from __future__ import annotations

from palmette.tune.decide import beats, judge, paired, ranked
from palmette.tune.results import Cell, CellResult

from .samples import cell, measured


def test_five_wins_of_five_by_more_than_the_margin_beat() -> None:
    slow, fast = [1.0] * 5, [0.9] * 5
    assert beats(measured("a", fast), measured("b", slow))
    assert not beats(measured("a", fast[:4]), measured("b", slow[:4])), "four rounds prove nothing"


def test_a_lower_median_within_the_margin_doesnt_beat() -> None:
    assert not beats(measured("a", [0.96] * 40), measured("b", [1.0] * 40))


def test_a_lower_median_by_chance_doesnt_beat() -> None:
    mine, other = [0.5, 0.5, 0.5, 2.0, 2.0], [1.0] * 5
    assert not beats(measured("a", mine), measured("b", other))


def test_rounds_that_started_late_dont_count() -> None:
    first = measured("a", [0.01] * 6)
    second = measured("b", [0.02] * 6, late=0.5)
    assert paired(first, second) == ([], [])
    assert not beats(first, second)


def test_the_fastest_of_those_that_beat_the_present_choice_is_taken() -> None:
    verdict = judge(cell({"table": [1.0] * 9, "mpi": [1.3] * 9, "ring": [0.8] * 9, "direct": [0.7] * 9}))
    assert (verdict.outcome, verdict.spec) == ("better", "direct")
    assert (verdict.time_s, verdict.present_s, verdict.mpi_s) == (0.7, 1.0, 1.3)


def test_the_mpi_alone_is_a_candidate() -> None:
    assert judge(cell({"table": [1.0] * 9, "mpi": [0.5] * 9, "ring": [0.8] * 9})).spec == "mpi"


def test_nothing_better_leaves_the_present_choice() -> None:
    verdict = judge(cell({"table": [1.0] * 9, "mpi": [1.3] * 9, "ring": [0.97] * 9}))
    assert (verdict.outcome, verdict.spec) == ("present", "table")


def test_few_samples_are_told_as_such() -> None:
    assert judge(cell({"table": [1.0] * 3, "ring": [0.5] * 3})).outcome == "unsure"
    assert judge(cell({"ring": [0.5] * 9})).outcome == "unsure", "without the present choice nothing is compared"


def test_wrong_results_and_what_was_left_to_the_mpi_are_never_taken() -> None:
    result = CellResult(
        Cell("allreduce", 8),
        [measured("table", [1.0] * 9), measured("ring", [0.1] * 9, wrong=1), measured("direct", [0.2] * 9)],
    )  # fmt: skip
    result.candidates[2].served = False
    assert judge(result).spec == "table"
    assert [one.spec for one in ranked(result)] == ["table"]
