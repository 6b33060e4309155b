"""How times grow with the number of ranks: the simplest term that fits.

The terms are those of Calotoiu, Hoefler, Poke and Wolf (Using automated performance modeling to find scalability bugs
in complex codes, SC13): p^i log2(p)^j, one of them beside a constant. Which one is chosen by leaving out one number of
ranks after the other and predicting it: a term with more growth must predict better than the constant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

EXPONENTS = ((-1, 0), (0, 1), (0, 2), (0.5, 0), (1, 0), (1, 1), (1.5, 0), (2, 0), (2, 1), (3, 0))
"""(i, j) of p^i log2(p)^j; the constant is tried besides."""
MIN_RANK_COUNTS = 4
"""Numbers of ranks that a fit needs."""
ERROR_FACTOR = 0.8
"""The factor by which a term's error must be smaller than the error of one that grows less."""


@dataclass(frozen=True)
class Growth:
    """seconds = constant_s + factor_s p^power log2(p)^logs."""

    constant_s: float
    factor_s: float
    power: float
    logs: int
    error: float
    """Mean relative error of each number of ranks, predicted from the others."""

    @property
    def name(self) -> str:
        """The growth as it is written: O(p log p)."""
        if self.factor_s == 0:
            return "O(1)"
        power = {0: "", 1: "p", 0.5: "sqrt p", -1: "1/p"}.get(self.power, f"p^{self.power:g}")
        logs = {0: "", 1: "log p"}.get(self.logs, f"log^{self.logs} p")
        return f"O({f'{power} {logs}'.strip()})"

    @property
    def outgrows_logarithm(self) -> bool:
        """Whether it grows faster than log p: a tree's depth."""
        return self.factor_s > 0 and (self.power > 0 or (self.power == 0 and self.logs > 1))

    def at(self, ranks: float) -> float:
        """Return the seconds that it takes with so many ranks."""
        return self.constant_s + self.factor_s * float(_term(np.array([float(ranks)]), self.power, self.logs)[0])


def fitted(samples: Sequence[tuple[int, float]]) -> Growth | None:
    """Fit (ranks, seconds) of runs; None: fewer than MIN_RANK_COUNTS numbers of ranks, or nothing but zeros.

    The median of each number of ranks is fitted, by relative errors. Cost: O(terms points^2).
    """
    by_ranks: dict[int, list[float]] = defaultdict(list)
    for ranks, seconds in samples:
        by_ranks[ranks].append(seconds)
    if len(by_ranks) < MIN_RANK_COUNTS:
        return None
    p = np.array(sorted(by_ranks), dtype=float)
    y = np.array([float(np.median(by_ranks[int(ranks)])) for ranks in p])
    if not np.all(y > 0):
        return None
    best = _left_out(p, y, None)
    for power, logs in sorted(EXPONENTS, key=lambda one: (one[0] < 0, one)):
        tried = _left_out(p, y, (power, logs))
        if tried is not None and (best is None or tried.error < ERROR_FACTOR * best.error):
            best = tried
    return best


def _term(p: np.ndarray, power: float, logs: int) -> np.ndarray:
    return np.asarray(p**power * np.log2(np.maximum(p, 1)) ** logs)


def _left_out(p: np.ndarray, y: np.ndarray, exponents: tuple[float, int] | None) -> Growth | None:
    """Fit a term; None: a coefficient is negative. Its error is that of points that the fit hasn't seen."""
    whole = _coefficients(p, y, exponents)
    if whole is None:
        return None
    errors = []
    for i in range(len(p)):
        kept = np.arange(len(p)) != i
        fit = _coefficients(p[kept], y[kept], exponents)
        if fit is None:
            return None
        predicted = fit[0] + (fit[1] * float(_term(p[i : i + 1], *exponents)[0]) if exponents else 0.0)
        errors.append(abs(predicted - y[i]) / (abs(predicted) + abs(y[i])) * 2)
    power, logs = exponents or (0.0, 0)
    return Growth(whole[0], whole[1], power, logs, float(np.mean(errors)))


def _coefficients(p: np.ndarray, y: np.ndarray, exponents: tuple[float, int] | None) -> tuple[float, float] | None:
    if exponents is None:
        return float(np.exp(np.mean(np.log(y)))), 0.0
    term = _term(p, *exponents)
    columns = np.stack([1 / y, term / y], axis=1)  # relative errors
    (constant, factor), *_ = np.linalg.lstsq(columns, np.ones(len(y)), rcond=None)
    if constant < 0:
        constant, factor = 0.0, float(np.sum(term / y) / np.sum((term / y) ** 2))
    return (float(constant), float(factor)) if factor > 0 else None
