"""Formulas over contexts: what they give, and that nothing but arithmetic is a formula."""

from __future__ import annotations

import numpy as np
import pytest

from palmette.record.formulas import evaluate
from palmette.record.reading import RecordError

COLUMNS = {"most_s": np.array([4.0, 2, 0]), "mean_s": np.array([2.0, 2, 0])}


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("most_s / mean_s", [2, 1, np.nan]),
        ("100 * (most_s - mean_s)", [200, 0, 0]),
        ("max(most_s, 3) ** 2", [16, 9, 9]),
        ("-sqrt(abs(-most_s))", [-2, -np.sqrt(2), 0]),
        ("7", [7, 7, 7]),
        ("most_s ** 100000", [np.nan, np.nan, 0]),
    ],
)
def test_formulas_give_a_value_for_each_row(formula: str, values: list[float]) -> None:
    assert evaluate(formula, COLUMNS) == pytest.approx(values, nan_ok=True)
    assert COLUMNS["most_s"].tolist() == [4, 2, 0]


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("most_s /", "no formula"),
        ("", "no formula"),
        ("cpu / 2", "there is no cpu; take most_s, mean_s"),
        ("exp(most_s)", r"there is no exp\(\); take abs"),
        ("min(most_s)", r"min\(\) takes 2 values, not 1"),
        ("most_s.__class__", "character 1"),
        ("__import__('os')", r"there is no __import__\(\)"),
        ("[1, 2]", "character 1"),
        ("most_s if 1 else 2", "character 1"),
        ("True", "character 1"),
        ("'a' * 9", "character 1"),
        ("9" * 400, "too large"),
        ("(" * 400 + "1" + ")" * 400, "no formula"),
        ("1+" * 600 + "1", "at most"),
        ("-" * 990 + "1", "nested too deeply|no formula"),
    ],
)
def test_what_is_no_formula_is_told_in_a_line(formula: str, says: str) -> None:
    with pytest.raises(RecordError, match=says) as error:
        evaluate(formula, COLUMNS)
    assert "\n" not in str(error.value)
