"""Comparing what a program printed in two runs: text word by word, numbers within a tolerance."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?|(?:(?![-+]?\.?\d)\S)+")
"""A number (Fortran's 1.0D0 as well), or what is none."""


def _number(word: str) -> float | None:
    try:
        return float(word.replace("d", "e").replace("D", "e"))
    except ValueError:
        return None


@dataclass(frozen=True)
class Comparison:
    """Of one run's output with another's."""

    same: bool
    difference: str = ""
    """The first one, in a sentence."""


@dataclass(frozen=True)
class Reference:
    """What the MPI alone printed, and which of it changes from run to run: times, dates, process ids."""

    lines: tuple[tuple[str, ...], ...]
    varying: frozenset[tuple[int, int]]
    """(line, word) that differ between runs of the MPI alone."""
    ordered: bool
    """False: lines come in another order in each run, and are compared sorted."""

    @property
    def numbers(self) -> int:
        """How many numbers are compared."""
        return sum(
            _number(word) is not None and (line, at) not in self.varying
            for line, words in enumerate(self.lines)
            for at, word in enumerate(words)
        )


def split_lines(text: str, ignored: Sequence[re.Pattern[str]] = ()) -> list[tuple[str, ...]]:
    """Return the words of each line; lines that `ignored` match are left out."""
    kept = (line for line in text.splitlines() if not any(pattern.search(line) for pattern in ignored))
    return [words for line in kept if (words := tuple(_WORD.findall(line)))]


def reference(outputs: Sequence[str], tolerance: float, ignored: Sequence[re.Pattern[str]] = ()) -> Reference:
    """Return what runs of the MPI alone have in common. Words that differ between them can't be compared.

    `outputs`: one or more, each a run's. Cost: O(their length).
    """
    runs = [split_lines(text, ignored) for text in outputs]
    ordered = all(_shape(run) == _shape(runs[0]) for run in runs)
    if not ordered:
        runs = [sorted(run, key=_sorting) for run in runs]
    lines = runs[0]
    varying = set()
    for run in runs[1:]:
        for number, words in enumerate(lines):
            other = run[number] if number < len(run) else ()
            varying |= {
                (number, at)
                for at, word in enumerate(words)
                if at >= len(other) or not _same(word, other[at], tolerance)
            }
    return Reference(tuple(lines), frozenset(varying), ordered)


def compare(expected: Reference, text: str, tolerance: float, ignored: Sequence[re.Pattern[str]] = ()) -> Comparison:
    """Compare a run's output with the reference; `tolerance` is relative, and absolute below 1. Cost: O(length)."""
    lines = split_lines(text, ignored)
    if not expected.ordered:
        lines.sort(key=_sorting)
    if len(lines) != len(expected.lines):
        return Comparison(False, f"{len(lines)} lines instead of {len(expected.lines)}")
    for number, (words, wanted) in enumerate(zip(lines, expected.lines, strict=True)):
        if len(words) != len(wanted):
            if any(line == number for line, _ in expected.varying):
                continue
            return Comparison(False, f"'{' '.join(words)[:60]}' instead of '{' '.join(wanted)[:60]}'")
        for at, (word, want) in enumerate(zip(words, wanted, strict=True)):
            if (number, at) not in expected.varying and not _same(word, want, tolerance):
                return Comparison(False, f"{word} instead of {want} in '{' '.join(wanted)[:60]}'")
    return Comparison(True)


def _same(a: str, b: str, tolerance: float) -> bool:
    if a == b:
        return True
    first, second = _number(a), _number(b)
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)):
        return False
    return abs(first - second) <= tolerance * max(1.0, abs(first), abs(second))


def _shape(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the lines with their numbers taken out."""
    return [tuple(word for word in words if _number(word) is None) for words in lines]


def _sorting(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(word for word in words if _number(word) is None), words
