"""Predicted against measured order of algorithms, on samples made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from palmette.tune.forecast import Forecast
from palmette.tune.ranking import pairs_of, spread, within
from palmette.tune.results import CellResult
from palmette.tune.store import TuneJob, open_tunings

from .samples import cell

ROUNDS = 8


def result(predicted_s: dict[str, float | None]) -> CellResult:
    """Three algorithms of 1.0, 1.1 and 2.0 ms, and the MPI alone."""
    made = cell({"ring": [1.0e-3] * ROUNDS, "direct": [1.1e-3] * ROUNDS, "linear": [2.0e-3] * ROUNDS,
                 "mpi": [9e-3] * ROUNDS})  # fmt: skip
    for one in made.candidates:
        one.predicted_s = predicted_s.get(one.spec)
    return made


def ranked(made: CellResult) -> list[tuple[str, str, bool, bool]]:
    pairs = pairs_of("mpich", "block", made, lambda one: one.predicted_s)
    return [(pair.faster, pair.slower, pair.right, pair.sure) for pair in pairs]


def test_pairs_within_15_percent_and_the_mpi_alone_are_no_ranking() -> None:
    made = result({"ring": 1e-3, "direct": 2e-3, "linear": 1.5e-3, "mpi": 1.0})
    assert ranked(made) == [("ring", "linear", True, True), ("direct", "linear", False, True)]


def test_a_predicted_tie_is_wrong_and_what_nobody_predicts_is_left_out() -> None:
    assert ranked(result({"ring": 1e-3, "linear": 1e-3})) == [("ring", "linear", False, True)]


def test_a_pair_whose_order_changes_from_round_to_round_is_told_apart() -> None:
    made = cell({"ring": [1e-3, 3e-3] * 4 + [1e-3], "linear": [2e-3] * 9})
    for one in made.candidates:
        one.predicted_s = 1e-3 if one.spec == "ring" else 2e-3
    assert ranked(made) == [("ring", "linear", True, False)]


def test_algorithms_with_wrong_results_are_left_out() -> None:
    made = result({"ring": 1e-3, "linear": 2e-3})
    made.candidates[0].wrong_ranks = 1
    assert ranked(made) == []


def test_candidates_are_the_best_of_each_family_and_then_those_farthest_from_the_best() -> None:
    found = [Forecast("ring", 1.0), Forecast("ring:segment=4K", 1.1), Forecast("ring:segment=8K", 1.2),
             Forecast("bruck", 2.0), Forecast("linear", 4.1), Forecast("unknown", None)]  # fmt: skip
    assert [one.spec for one in spread(found, 2)] == ["ring", "bruck"]
    assert [one.spec for one in spread(found, 3)] == ["ring", "ring:segment=8K", "bruck"]
    assert spread([], 3) == []


def test_candidates_that_do_not_fit_into_the_time_go_from_the_slowest_on() -> None:
    found = [Forecast(str(i), float(i)) for i in (1, 2, 3, 4, 5)]
    assert len(within(found, 1, 1000.0)) == 5
    assert [one.spec for one in within(found, 1, 19.0)] == ["1", "2", "3", "4"]  # 10 of their own, 9 beside them
    assert len(within(found, 1, 0.0)) == 3


@pytest.fixture(scope="module")
def script(bench_program: Callable[[str], ModuleType]) -> ModuleType:
    return bench_program("rank_against_measured")


def store_with(path: Path, made: CellResult) -> Path:
    with open_tunings(path, create=True) as store:
        store.begin("2026-11-21", {}, "a lab", None, {})
        store.add(TuneJob("mpich", "MPICH", "block", "rank", ["h0", "h1"], 1.0, None, [made]))
        store.add(TuneJob("mpich", "MPICH", "block", "search", ["h0", "h1"], 1.0, None, [made]))
    return path


def test_the_script_judges_what_a_store_holds_of_its_own_step(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = store_with(tmp_path / "rank.sqlite", result({"ring": 1e-3, "direct": 2e-3, "linear": 1.5e-3}))
    assert script.main(["--evaluate", "--store", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["pairs"], document["right"], document["unsure"]) == (2, 1, 0)
    # 1, 1.5 and 2 ms predicted, 1, 2 and 1.1 measured
    assert (document["predicted"], document["within_25_percent"], document["median_error"]) == (3, 2, 0.25)
    assert script.main(["--evaluate", "--store", str(path), "--target", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "ranked as measured where over 15 % apart: 1 of 2 pairs" in out
    assert "allreduce 1024, mpich block, 1.82 apart" in out
    assert "off by 25.0% in the median of 3, 2 within 25%" in out


def test_the_script_says_what_is_missing_in_one_line(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--evaluate", "--store", str(tmp_path / "none.sqlite")]) == 2
    assert "no such file" in capsys.readouterr().err
    path = store_with(tmp_path / "rank.sqlite", result({}))
    assert script.main(["--evaluate", "--store", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
