"""Tuning level by level: where an algorithm is put together from one shape a level, its levels are tuned one at a time.

In a tree of leaders whose blocks or vectors aren't cut in segments, a leader sends up after all of its group has
arrived (down: the other way round), so the time along a path is the sum of its levels' times, each of which depends
on that level's shape alone; levels use links of their own. Where the groups of a level are equal, the best shapes of
the levels by themselves make the best tree: n levels of k shapes need 1 + n (k - 1) measurements instead of k^n. With
uneven groups the slowest path may change with the shapes, and with segments levels overlap: there the result is a
candidate like others, which is measured against the best found otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palmette import _core
from palmette.tune.candidates import Levels
from palmette.tune.decide import ranked, typical_s
from palmette.tune.results import CellResult
from palmette.tune.specs import read, written

FAMILIES = ("by_topology", "reduce_bcast")
"""Algorithms that take a shape for each level."""


def level_keys(job: _core.Job) -> tuple[str, ...]:
    """Return the keys that name a level's shape on this job, outermost first."""
    return ("top", *Levels.of(job).leading)


def has_parts(spec: str) -> bool:
    """Whether levels of this specification can be tuned one at a time."""
    return read(spec)[0] in FAMILIES


def is_exact(job: _core.Job, spec: str) -> bool:
    """Whether level by level surely finds the best shapes: no segments, and equal groups at every level that leaders are at."""
    leading = Levels.of(job).leading
    equal = all(len(set(level.sizes)) == 1 for level in job.levels if level.name in leading)
    return has_parts(spec) and "segment" not in read(spec)[1] and equal


def star(spec: str, keys: Sequence[str], grid: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Return `spec` and those that differ from it in the shape of one level."""
    name, options = read(spec)
    found = [spec]
    for key in keys:
        if key not in options:
            continue
        for shape in grid.get(key, ()):
            other = written(name, {**options, key: shape})
            if other not in found:
                found.append(other)
    return found


def combined(result: CellResult, base: str, keys: Sequence[str]) -> str | None:
    """Return `base` with the best shape measured at each level; None where that was measured itself or nothing was."""
    name, options = read(base)
    best = dict(options)
    order = ranked(result)
    for key in keys:
        if key not in options:
            continue
        alike = [one for one in order if _differs_at_most_in(one.spec, name, options, key)]
        if alike:
            best[key] = read(min(alike, key=typical_s).spec)[1][key]
    spec = written(name, best)
    return None if result.of(spec) is not None else spec


def _differs_at_most_in(spec: str, name: str, options: Mapping[str, str], key: str) -> bool:
    other_name, other = read(spec)
    return other_name == name and other.keys() == options.keys() and all(
        other[one] == options[one] for one in options if one != key
    )  # fmt: skip
