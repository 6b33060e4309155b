"""Comparing what a program printed in two runs: text word by word, numbers within a tolerance.

Lines of several ranks come in whatever order the launcher reads them, and run into each other where they are written in
pieces. What differs in nothing but that is the same output in another order.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

_WORD = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?|(?:(?![-+]?\.?\d)\S)+")
"""A number (Fortran's 1.0D0 as well), or what is none."""

_TIMES = re.compile(r"\S*\d[.eE]\d*\S* instead of \S+ in |\S+ instead of \S*\d[.eE]\d*\S* in ")
"""A number that may be a time: the first run often takes longer."""

Line = tuple[str, ...]

LINES_MOVED = "lines come in another order"
LINES_MERGED = "lines of several ranks run into each other; the words are the same"


def _number(word: str) -> float | None:
    """Return the number that a word is; `nan` is a word like others."""
    try:
        number = float(word.replace("d", "e").replace("D", "e"))
    except ValueError:
        return None
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class Comparison:
    """Result of comparing one run's output with another's."""

    same: bool
    difference: str = ""
    """The first difference, in a sentence; empty: none."""
    order: str = ""
    """LINES_MOVED or LINES_MERGED where the lines are the same in an order that no run of the MPI alone has."""


@dataclass(frozen=True)
class _Bag:
    """Words without their order: those that every run has, and how many others there may be."""

    text: Counter[str]
    numbers: tuple[float, ...]
    """Ascending."""
    others: tuple[int, int]
    """Fewest and most words besides."""


@dataclass(frozen=True)
class Reference:
    """What the MPI alone printed, and which of it changes from run to run: times, dates, process ids."""

    lines: tuple[Line, ...]
    varying: frozenset[tuple[int, int]]
    """(line, word) that differ between runs of the MPI alone."""
    ordered: bool
    """False: lines come in another order in each run."""
    bag: _Bag | None = None
    """Words without their order, where runs of the MPI alone have no lines in common to compare one by one."""
    first_differs: str = ""
    """What the first run printed otherwise than all later ones, which agree; it isn't compared then."""
    at: dict[int, set[int]] = field(default_factory=dict, compare=False)
    """`varying` by line."""

    @property
    def numbers(self) -> int:
        """How many numbers are compared."""
        if self.bag is not None:
            return len(self.bag.numbers)
        return sum(
            _number(word) is not None and (line, at) not in self.varying
            for line, words in enumerate(self.lines)
            for at, word in enumerate(words)
        )


def split_lines(text: str, ignored: Sequence[re.Pattern[str]] = ()) -> list[Line]:
    """Return the words of each line; lines that `ignored` match are left out."""
    kept = (line for line in text.splitlines() if not any(pattern.search(line) for pattern in ignored))
    return [words for line in kept if (words := tuple(_WORD.findall(line)))]


def reference(outputs: Sequence[str], tolerance: float, ignored: Sequence[re.Pattern[str]] = ()) -> Reference:
    """Return what runs of the MPI alone have in common. Words that differ between them can't be compared.

    `outputs`: one or more, each a run's, in their order. A first one that differs from all later ones is told; with
    other words than theirs it isn't compared with. Cost: O(their length).
    """
    found = _common([split_lines(text, ignored) for text in outputs], tolerance)
    if len(outputs) < 3:
        return found
    later = _common([split_lines(text, ignored) for text in outputs[1:]], tolerance)
    first = compare(later, outputs[0], tolerance, ignored)
    if first.same or _TIMES.match(first.difference):
        return found
    return replace(later if found.bag is not None else found, first_differs=first.difference)


def _common(runs: list[list[Line]], tolerance: float) -> Reference:
    ordered = all(_shapes(run) == _shapes(runs[0]) for run in runs)
    if not ordered:
        runs = [sorted(run, key=_sorting) for run in runs]
        if any(_shapes(run) != _shapes(runs[0]) for run in runs):
            return Reference(tuple(runs[0]), frozenset(), False, _bag_of(runs, tolerance))
    lines = runs[0]
    varying = {
        (number, at)
        for run in runs[1:]
        for number, (words, other) in enumerate(zip(lines, run, strict=True))
        for at, (word, its) in enumerate(zip(words, other, strict=True))
        if not _same(word, its, tolerance)
    }
    by_line: dict[int, set[int]] = defaultdict(set)
    for number, at in varying:
        by_line[number].add(at)
    return Reference(tuple(lines), frozenset(varying), ordered, at=dict(by_line))


def compare(expected: Reference, text: str, tolerance: float, ignored: Sequence[re.Pattern[str]] = ()) -> Comparison:
    """Compare a run's output with the reference; `tolerance` is relative, and absolute below 1. Cost: O(length)."""
    lines = split_lines(text, ignored)
    if expected.bag is not None:
        wrong = _outside(expected.bag, (word for line in lines for word in line), tolerance)
        return Comparison(not wrong, wrong)
    wrong = _in_order(expected, lines, tolerance) if expected.ordered else "another order"
    if not wrong:
        return Comparison(True)
    theirs, ours = _unmatched(expected, lines, tolerance)
    if not theirs and not ours:
        return Comparison(True, order=LINES_MOVED if expected.ordered else "")
    if _are_merged(expected, theirs, ours, tolerance):
        return Comparison(True, order=LINES_MERGED)
    if len(lines) == len(expected.lines) and (not expected.ordered or _shapes(lines) != _shapes(expected.lines)):
        wrong = f"{_quoted(ours[0])} instead of {_quoted(expected.lines[theirs[0]])}"
    elif len(lines) != len(expected.lines):
        wrong = f"{len(lines)} lines instead of {len(expected.lines)}"
    return Comparison(False, wrong)


def _in_order(expected: Reference, lines: Sequence[Line], tolerance: float) -> str:
    """Return the first difference line by line, or nothing."""
    if len(lines) != len(expected.lines):
        return f"{len(lines)} lines instead of {len(expected.lines)}"
    for number, (words, wanted) in enumerate(zip(lines, expected.lines, strict=True)):
        varying = expected.at.get(number, ())
        if len(words) != len(wanted):
            if varying:
                continue
            return f"{_quoted(words)} instead of {_quoted(wanted)}"
        for at, (word, want) in enumerate(zip(words, wanted, strict=True)):
            if at not in varying and not _same(word, want, tolerance):
                return f"{word} instead of {want} in {_quoted(wanted)}"
    return ""


def _unmatched(expected: Reference, lines: Sequence[Line], tolerance: float) -> tuple[list[int], list[Line]]:
    """Return the lines of the reference and of `lines` that have no counterpart, wherever it stands."""
    by_shape: dict[Line, tuple[list[int], list[Line]]] = defaultdict(lambda: ([], []))
    for number, words in enumerate(expected.lines):
        by_shape[_shape(words)][0].append(number)
    for words in lines:
        by_shape[_shape(words)][1].append(words)
    theirs: list[int] = []
    ours: list[Line] = []
    for numbers, mine in by_shape.values():
        # What varies in one of several lines that differ in their numbers alone isn't known to be theirs alone.
        varying: set[int] = set().union(*(expected.at.get(number, ()) for number in numbers))

        wanted = sorted((_fixed(expected.lines[number], varying), number) for number in numbers)
        given = sorted((_fixed(words, varying), words) for words in mine)
        at = 0
        for values, number in wanted:
            while at < len(given) and given[at][0] < values and not _close(given[at][0], values, tolerance):
                ours.append(given[at][1])
                at += 1
            if at < len(given) and _close(given[at][0], values, tolerance):
                at += 1
            else:
                theirs.append(number)
        ours += [words for _, words in given[at:]]
    return theirs, ours


def _fixed(words: Line, varying: set[int]) -> tuple[float, ...]:
    """Return the numbers of a line that don't vary."""
    found = (_number(word) for at, word in enumerate(words) if at not in varying)
    return tuple(number for number in found if number is not None)


def _are_merged(expected: Reference, theirs: Sequence[int], ours: Sequence[Line], tolerance: float) -> bool:
    """Whether lines without a counterpart have the same words, and some are no lines at all but parts of several."""
    shapes = {_shape(expected.lines[number]) for number in theirs}
    if len(theirs) < 2 or all(_shape(words) in shapes for words in ours):
        return False
    fixed, others = [], 0
    for number in theirs:
        varying = expected.at.get(number, ())
        fixed += [word for at, word in enumerate(expected.lines[number]) if at not in varying]
        others += len(varying)
    bag = _Bag(Counter(_texts(fixed)), tuple(sorted(_numbers(fixed))), (others, others))
    return not _outside(bag, (word for words in ours for word in words), tolerance)


def _bag_of(runs: Sequence[Sequence[Line]], tolerance: float) -> _Bag:
    """Return the words that all runs have, in whatever lines."""
    words = [[word for line in run for word in line] for run in runs]
    text = Counter(_texts(words[0]))
    numbers = sorted(_numbers(words[0]))
    for run in words[1:]:
        text &= Counter(_texts(run))
        numbers = _matching(numbers, sorted(_numbers(run)), tolerance)
    known = text.total() + len(numbers)
    others = [len(run) - known for run in words]
    return _Bag(text, tuple(numbers), (min(others), max(others)))


def _outside(bag: _Bag, given: Iterable[str], tolerance: float) -> str:
    """Return what keeps words from being those of the bag, or nothing."""
    words = list(given)
    missing = bag.text - Counter(_texts(words))
    if missing:
        return f"'{next(iter(missing))}' is missing"
    numbers = _matching(bag.numbers, sorted(_numbers(words)), tolerance)
    if len(numbers) < len(bag.numbers):
        lost = next((one for one, its in zip(bag.numbers, numbers, strict=False) if one != its), bag.numbers[-1])
        return f"the number {lost:g} is missing"
    others = len(words) - bag.text.total() - len(bag.numbers)
    fewest, most = bag.others
    return "" if fewest <= others <= most else f"{len(words):,} words instead of {len(words) - others + most:,}"


def _matching(some: Sequence[float], others: Sequence[float], tolerance: float) -> list[float]:
    """Return those of `some` that have a counterpart in `others`; both ascending."""
    found, at = [], 0
    for one in some:
        while at < len(others) and others[at] < one and not _close((others[at],), (one,), tolerance):
            at += 1
        if at < len(others) and _close((others[at],), (one,), tolerance):
            found.append(one)
            at += 1
    return found


def _same(a: str, b: str, tolerance: float) -> bool:
    if a == b:
        return True
    first, second = _number(a), _number(b)
    return first is not None and second is not None and _close((first,), (second,), tolerance)


def _close(some: Sequence[float], others: Sequence[float], tolerance: float) -> bool:
    return len(some) == len(others) and all(
        one == other
        or (
            math.isfinite(one)
            and math.isfinite(other)
            and abs(one - other) <= tolerance * max(1.0, abs(one), abs(other))
        )
        for one, other in zip(some, others, strict=True)
    )


def _numbers(words: Iterable[str]) -> list[float]:
    return [number for word in words if (number := _number(word)) is not None]


def _texts(words: Iterable[str]) -> list[str]:
    return [word for word in words if _number(word) is None]


def _shape(words: Line) -> Line:
    """Return a line with its numbers taken out."""
    return tuple(word if _number(word) is None else "" for word in words)


def _shapes(lines: Sequence[Line]) -> list[Line]:
    return [_shape(words) for words in lines]


def _sorting(words: Line) -> tuple[Line, Line]:
    return _shape(words), words


def _quoted(words: Line) -> str:
    return f"'{' '.join(words)[:60]}'"
