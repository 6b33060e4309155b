"""Verdicts on samples."""

from __future__ import annotations

import numpy as np
import pytest

from palmette.measure.statistics import FEWEST_PAIRS, compare_groups, compare_pairs, in_time, judge, summarize


def scattered(median: float, noise: float, count: int, random: np.random.Generator) -> np.ndarray:
    return np.asarray(median * np.exp(noise * random.standard_normal(count)))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.50, 0.95, "faster"),
        (0.90, 0.96, "ambiguous"),
        (0.96, 1.04, "same"),
        (0.96, 1.06, "ambiguous"),
        (1.04, 1.20, "ambiguous"),
        (1.06, 1.20, "slower"),
        (0.50, 2.00, "ambiguous"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side_of_the_margin(low: float, high: float, verdict: str) -> None:
    assert judge(low, high) == verdict


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.5, "faster"), (0.8, "faster"), (1.0, "same"), (1.02, "same"), (1.3, "slower")]
)
def test_clear_differences_are_found_and_small_ones_are_the_same(factor: float, verdict: str) -> None:
    random = np.random.default_rng(1)
    alone, palmette = scattered(1e-2, 0.03, 40, random), scattered(factor * 1e-2, 0.03, 40, random)
    ratio = compare_pairs([(alone, palmette)])
    assert ratio.verdict == verdict
    assert ratio.low <= ratio.value <= ratio.high


@pytest.mark.parametrize("noise", [0.05, 0.2])
@pytest.mark.parametrize("pairs", [5, 8, 30])
def test_an_mpi_against_itself_is_hardly_ever_faster_or_slower(noise: float, pairs: int) -> None:
    random = np.random.default_rng(2)
    trials = 200
    judged = 0
    for _ in range(trials):
        ratio = compare_pairs([(scattered(1e-3, noise, pairs, random), scattered(1e-3, noise, pairs, random))])
        judged += ratio.verdict in ("faster", "slower")
    assert judged <= 0.05 * trials


def test_a_difference_at_the_margin_is_ambiguous_while_samples_are_few_and_noisy() -> None:
    random = np.random.default_rng(3)
    ratio = compare_pairs([(scattered(1e-3, 0.1, 8, random), scattered(1.05e-3, 0.1, 8, random))])
    assert ratio.verdict == "ambiguous"


def test_fewer_pairs_than_an_interval_needs_are_ambiguous_however_far_apart() -> None:
    few = FEWEST_PAIRS - 1
    assert compare_pairs([(np.full(few, 1.0), np.full(few, 0.1))]).verdict == "ambiguous"
    assert compare_pairs([(np.full(few + 1, 1.0), np.full(few + 1, 0.1))]).verdict == "faster"


def test_no_samples_at_all_are_ambiguous() -> None:
    assert compare_pairs([]).verdict == "ambiguous"
    assert compare_pairs([(np.empty(0), np.empty(0))]).verdict == "ambiguous"


def test_a_disturbance_that_hits_both_calls_of_a_pair_does_not_widen_the_interval_much() -> None:
    random = np.random.default_rng(4)
    disturbance = np.exp(0.5 * random.standard_normal(60))
    paired = compare_pairs([(1e-3 * disturbance, 0.7e-3 * disturbance)])
    apart = compare_groups(0.7e-3 * disturbance, 1e-3 * disturbance)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)
    assert paired.verdict == "faster"


def test_the_same_samples_give_the_same_interval() -> None:
    random = np.random.default_rng(5)
    jobs = [(scattered(1.0, 0.1, 10, random), scattered(0.9, 0.1, 10, random)) for _ in range(2)]
    assert compare_pairs(jobs) == compare_pairs(jobs)


def test_the_median_and_not_the_mean_is_compared() -> None:
    alone = np.full(30, 1e-3)
    palmette = alone.copy()
    palmette[:5] = 1.0
    assert compare_pairs([(alone, palmette)]).verdict == "same"


def test_a_start_is_late_beyond_two_milliseconds_and_ten_percent_of_the_sample() -> None:
    times = np.array([1e-3, 1e-3, 0.1, 0.1])
    late = np.array([1.9e-3, 2.1e-3, 9.9e-3, 10.1e-3])
    assert in_time(times, late).tolist() == [True, False, True, False]


def test_a_summary_holds_median_and_quartiles() -> None:
    summary = summarize(np.array([1.0, 2.0, 3.0, 4.0, 100.0]))
    assert (summary.low_s, summary.median_s, summary.high_s, summary.count) == (2.0, 3.0, 4.0, 5)
    assert summary.spread == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no samples"):
        summarize(np.empty(0))
