"""What many runs say together: two side by side, growth, variation, and whether the newest is slower than the others.

Seconds of calls are per rank: those of all ranks together divided by their number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palmette.measure.statistics import Ratio, compare_groups
from palmette.record.changes import Change, Rows, changes, rows_from
from palmette.runs.archive import COMPUTING, Archive, RowKey, Run
from palmette.runs.growth import Growth, fitted
from palmette.runs.schema import ArchiveError

LEAST_SHARE = 0.01
"""Rows that take a smaller share of the run's time aren't judged."""
FEWEST_BEFORE = 5
"""Runs that a gate compares with."""
DEVIATIONS, MARGIN = 5.0, 1.05
"""Deviations of other runs beyond which a run is slower than they, if also by 5 % at least."""
MAD_TO_DEVIATION = 1.4826
"""Standard deviations in a median absolute deviation of normal noise."""
EXTRAPOLATION = 2
"""Multiple of the most ranks measured for which it is told what doesn't scale."""
UNSCALED_SHARE, CERTAIN = 0.1, 0.2
"""The share of the run, at so many ranks, from which on growth beyond a tree's is told; of fits with errors below."""


def compared(archive: Archive, before: Run, after: Run) -> list[Change]:
    """Return two runs side by side, the largest change first."""
    return changes(_all_rows(archive, before), _all_rows(archive, after))


def _all_rows(archive: Archive, run: Run) -> Rows:
    sums = archive.sums(run)
    calls = ((*key, one.seconds, one.calls) for key, one in sums.items() if key[0] != COMPUTING)
    functions = (
        (f"{function}()", file, own_s) for (function, file), own_s in archive.samples(run).items()
        if not function.startswith("MPI")
    )  # fmt: skip
    return rows_from(run.computing_s, calls, functions, run.ranks)


@dataclass(frozen=True)
class RowGrowth:
    """How one row's seconds per rank grow."""

    key: RowKey
    growth: Growth
    samples: Sequence[tuple[int, float]]
    """(ranks, or bytes a call; seconds)."""
    share: float
    """Share of the run's time at EXTRAPOLATION times the most ranks; for growth over bytes, of all calls' time."""

    @property
    def is_unscaled(self) -> bool:
        """Whether it grows faster than a tree's depth, for certain, and matters."""
        return self.growth.outgrows_logarithm and self.growth.error < CERTAIN and self.share >= UNSCALED_SHARE


def scaling(archive: Archive, runs: Sequence[Run]) -> list[RowGrowth]:
    """Return how each row grows with the number of ranks, the largest share first.

    Raises ArchiveError where there are too few numbers of ranks. Cost: O(rows of all runs).
    """
    samples: dict[RowKey, list[tuple[int, float]]] = defaultdict(list)
    for run in runs:
        for key, one in archive.sums(run).items():
            samples[key].append((run.ranks, one.seconds / run.ranks))
    fits = {key: fit for key, points in samples.items() if (fit := fitted(points))}
    if not fits:
        counts = sorted({run.ranks for run in runs})
        raise ArchiveError(
            f"{archive.path}: growth over ranks needs runs with four numbers of ranks; {runs[0].program} has "
            + ", ".join(str(count) for count in counts)
        )
    most = EXTRAPOLATION * max(run.ranks for run in runs)
    whole = sum(max(0.0, fit.at(most)) for fit in fits.values())
    found = [RowGrowth(key, fit, samples[key], max(0.0, fit.at(most)) / whole) for key, fit in fits.items()]
    return sorted(found, key=lambda one: -one.share)


def scaling_by_size(archive: Archive, runs: Sequence[Run]) -> list[RowGrowth]:
    """Return how a call's seconds grow with its bytes, by function; as `scaling`."""
    samples: dict[str, list[tuple[int, float]]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    for run in runs:
        for function, size_class, calls, taken in archive.sizes(run):
            seconds[function] += taken
            if size_class >= 0:
                samples[function].append((2**size_class, taken / calls))
    fits = {function: fit for function, points in samples.items() if (fit := fitted(points))}
    if not fits:
        raise ArchiveError(f"{archive.path}: growth over bytes needs calls of four sizes of one function")
    whole = sum(seconds.values())
    found = [RowGrowth((name, ""), fit, samples[name], seconds[name] / whole) for name, fit in fits.items()]
    return sorted(found, key=lambda one: -one.share)


@dataclass(frozen=True)
class RunGroup:
    """Runs of one program with one number of ranks."""

    program: str
    ranks: int
    times_s: Sequence[float]
    placements: int
    explained: float | None
    """The share of the variance that placement explains; None: no placement ran twice, or there is only one."""

    @property
    def quartiles_s(self) -> tuple[float, float, float]:
        """Quartiles of the run times, seconds."""
        low, median, high = np.percentile(self.times_s, [25, 50, 75])
        return float(low), float(median), float(high)


def variation(runs: Iterable[Run]) -> list[RunGroup]:
    """Return how run times vary, programs with most runs first.

    What placement explains is epsilon squared (Kelley 1935): the variance between placements, less what chance alone
    would put there, over all of it.
    """
    groups: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        if run.time_s is not None:
            groups[run.program, run.ranks].append(run)
    found = []
    for (program, ranks), own in groups.items():
        by_placement: dict[str, list[float]] = defaultdict(list)
        for run in own:
            if run.placement and run.time_s is not None:
                by_placement[run.placement].append(run.time_s)
        times = [run.time_s for run in own if run.time_s is not None]
        found.append(RunGroup(program, ranks, times, len(by_placement), _explained(list(by_placement.values()))))
    return sorted(found, key=lambda one: (-len(one.times_s), one.program, one.ranks))


def _explained(groups: Sequence[Sequence[float]]) -> float | None:
    values = np.concatenate([np.array(group) for group in groups]) if groups else np.empty(0)
    inside = len(values) - len(groups)
    if len(groups) < 2 or inside < 1:
        return None
    whole = float(np.sum((values - values.mean()) ** 2))
    if whole == 0:
        return None
    within = float(sum(np.sum((np.array(group) - np.mean(group)) ** 2) for group in groups))
    between = whole - within
    return min(1.0, max(0.0, (between - (len(groups) - 1) * within / inside) / whole))


@dataclass(frozen=True)
class Slowdown:
    """What took longer in a run than in those before."""

    key: RowKey
    """Function and place; ("", ""): the run; COMPUTING; ("", file) functions of samples."""
    seconds: float
    usual_s: float
    limit_s: float

    @property
    def ratio(self) -> float:
        """To what is usual."""
        return self.seconds / self.usual_s if self.usual_s > 0 else float("inf")


@dataclass(frozen=True)
class RunVerdict:
    """A run beside those before it."""

    run: Run
    before: Sequence[Run]
    same_placement: bool
    """Whether only runs of its placement are compared."""
    slower: Sequence[Slowdown]
    """The whole run first, then what has grown most."""


def gate(archive: Archive, run: Run) -> RunVerdict:
    """Compare a run with the earlier ones of its program with as many ranks, on the same placement where there are
    enough of them.

    Slower is what lies beyond the others' median by 5 (1 + 4 / runs) robust deviations (median absolute deviation) and
    by 5 %; what takes less than 1 % of the run isn't judged. Raises ArchiveError where fewer than FEWEST_BEFORE are
    there.
    """
    earlier = []
    for one in archive.runs(run.program):
        if one.id == run.id:
            break
        if one.ranks == run.ranks and one.kind == run.kind:
            earlier.append(one)
    placed = [one for one in earlier if one.placement == run.placement]
    same = len(placed) >= FEWEST_BEFORE
    before = placed if same else earlier
    if len(before) < FEWEST_BEFORE:
        raise ArchiveError(
            f"{archive.path}: {len(before)} earlier runs of {run.program} with {run.ranks} ranks as a {run.kind}; "
            f"at least {FEWEST_BEFORE} say what is usual"
        )
    history = [_rows(archive, one) for one in before]
    own = _rows(archive, run)
    whole_s = own["", ""]
    found = [
        slower for key, seconds in own.items() if seconds >= LEAST_SHARE * whole_s
        if (slower := _judged(key, seconds, [rows.get(key, 0.0) for rows in history]))
    ]  # fmt: skip
    found.sort(key=lambda one: (one.key != ("", ""), one.usual_s - one.seconds))
    return RunVerdict(run, before, same, found)


def _rows(archive: Archive, run: Run) -> Mapping[RowKey, float]:
    """Seconds per rank of a run: the whole, its calls less waiting, what it computes, its functions."""
    rows: dict[RowKey, float] = {
        key: (one.seconds - (one.waiting_s or 0.0)) / run.ranks for key, one in archive.sums(run).items()
    }
    for (function, file), own_s in archive.samples(run).items():
        rows[f"{function}()", file] = own_s / run.ranks
    rows["", ""] = (
        run.time_s if run.time_s is not None else sum(one.seconds for one in archive.sums(run).values()) / (run.ranks)
    )
    return rows


def _judged(key: RowKey, seconds: float, usual: Sequence[float]) -> Slowdown | None:
    median = float(np.median(usual))
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(np.array(usual) - median)))
    limit = max(median + DEVIATIONS * (1 + 4 / len(usual)) * deviation, MARGIN * median)
    return Slowdown(key, seconds, median, limit) if seconds > limit else None


@dataclass(frozen=True)
class RowChange:
    """A row's seconds from a date on over those before."""

    program: str
    ranks: int
    key: RowKey
    ratio: Ratio
    before: int
    after: int


def slower_since(archive: Archive, runs: Sequence[Run], date: str) -> list[RowChange]:
    """Return what got slower: whose ratio of medians, 95 % interval, lies above 1.05; the whole runs first.

    `date`: ISO 8601, as 2026-11-01. Raises ArchiveError where no program ran before and after.
    """
    groups: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.program, run.ranks].append(run)
    found, could = [], False
    for (program, ranks), own in groups.items():
        sides = [[run for run in own if (run.began >= date) == late] for late in (False, True)]
        if not all(sides):
            continue
        could = True
        rows = [[_rows(archive, run) for run in side] for side in sides]
        whole = float(np.median([one["", ""] for one in rows[1]]))
        for key in {key for side in rows for one in side for key in one}:
            before, after = (np.array([one.get(key, 0.0) for one in side]) for side in rows)
            if float(np.median(after)) < LEAST_SHARE * whole:
                continue
            ratio = compare_groups(after, before)
            if ratio.verdict == "slower":
                found.append(RowChange(program, ranks, key, ratio, len(before), len(after)))
    if not could:
        raise ArchiveError(f"{archive.path}: no program ran before and after {date}")
    return sorted(found, key=lambda one: (one.key != ("", ""), -one.ratio.value))


def name_of(key: RowKey) -> str:
    """Return a row's name for people."""
    function, place = key
    if not function:
        return "the whole run"
    if function == COMPUTING:
        return "computing"
    return f"{function} at {place}" if place else function
