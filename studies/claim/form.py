"""What a claim's command finds: a verdict computed from its figures, tables, raw samples."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHOWN, DIRECTION, REFUTED = "shown", "shown in direction", "refuted"
MODEL, SIMULATED, MEASURED = "model", "simulation", "measured here"


@dataclass(frozen=True)
class Table:
    """A Markdown table under a sentence."""

    says: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def markdown(self) -> str:
        """The sentence and the table."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return f"{self.says}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim's outcome. `ours` is the figure beside the slides'; `cause` says why it is as it is."""

    verdict: str
    ours: str
    cause: str
    tables: Sequence[Table]
    samples: Any = field(default_factory=dict)
    refuted_cause: str = "this run's figures say otherwise; their spread is in the table"

    @property
    def why(self) -> str:
        """The cause, which was written for the claim's being true, or for its being refuted."""
        return self.cause if self.verdict != REFUTED else self.refuted_cause


@dataclass(frozen=True)
class Claim:
    """What the slides say. `figure`: its own; `chart`: whether only a chart has the figure, which its text lacks."""

    name: str
    says: str
    figure: str
    chart: bool
    by: str
    run: Callable[[Options], ClaimOutcome]

    @property
    def theirs(self) -> str:
        """The slides' figure, marked where it comes from a chart."""
        return f"{self.figure} (chart)" if self.chart else self.figure


@dataclass(frozen=True)
class Options:
    """How much to run: `small` for a test."""

    small: bool = False
    root: bool = True


class CannotRunError(RuntimeError):
    """This machine lacks what a claim's command needs."""


def middle(samples: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(samples)


def quiet(samples: Sequence[float]) -> float:
    """Return the first quartile: calls that no other load held up."""
    return statistics.quantiles(samples, n=4)[0] if len(samples) > 1 else samples[0]


def us(seconds: float) -> str:
    """Return a time in microseconds."""
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e6:,.0f} us"
