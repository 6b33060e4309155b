"""Tuning part by part: where an algorithm is composed of parts whose times add up, each of them is tuned separately.

In a tree of leaders whose blocks or vectors aren't cut in segments, a leader sends up after all of its group has
arrived (down: the other way round), so the time along a path is the sum of its levels' times, each of which depends
on that level's shape alone; levels use links of their own. Where the groups of a level are equal, the best shapes of
the levels by themselves make the best tree: n levels of k shapes need 1 + n (k - 1) measurements instead of k^n. With
uneven groups the critical path may change with the shapes, and with segments levels overlap: there the result is a
candidate like others, which is measured against the best one found otherwise.

An algorithm with leaders has two parts, the exchange among leaders and the one inside of their groups. These overlap by
some per cent, as ranks finish one at different times, so here, too, the combination of the best parts is only a
candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palmette import _core
from palmette.tune.candidates import Levels
from palmette.tune.decide import ranked, typical_s
from palmette.tune.results import CellResult
from palmette.tune.specs import read, written

TREES = ("by_topology", "reduce_bcast")
"""Algorithms that take a shape for each level. A level whose key is left out has no leaders."""
STAGES = {"leaders": ("between", "inside")}
"""Keys of algorithms whose stages mostly run in sequence. A key that is left out has its default."""


def part_keys(job: _core.Job, spec: str) -> tuple[str, ...]:
    """Return the keys that each name a part of this specification: of a tree its levels, outermost first; or none."""
    name = read(spec)[0]
    return ("top", *Levels.of(job).leading) if name in TREES else STAGES.get(name, ())


def has_parts(spec: str) -> bool:
    """Whether parts of this specification can be tuned separately."""
    return read(spec)[0] in (*TREES, *STAGES)


def is_exact(job: _core.Job, spec: str) -> bool:
    """Whether part by part finds the optimum: a tree without segments, with equal groups at every level of leaders."""
    name, options = read(spec)
    leading = Levels.of(job).leading
    equal = all(len(set(level.sizes)) == 1 for level in job.levels if level.name in leading)
    return name in TREES and "segment" not in options and equal


def star(spec: str, keys: Sequence[str], grid: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Return `spec` and those that differ from it in one part."""
    name, options = read(spec)
    found = [spec]
    for key in keys:
        if key not in options and name in TREES:
            continue
        for shape in grid.get(key, ()):
            changed = {**options, key: shape}
            # In the grid's order of keys, as candidates are written.
            other = written(name, {one: changed[one] for one in dict.fromkeys([*grid, *changed]) if one in changed})
            if other not in found:
                found.append(other)
    return found


def combined(result: CellResult, base: str, keys: Sequence[str]) -> str | None:
    """Return `base` with the best measured of each part; None where that was measured itself or nothing was."""
    name, options = read(base)
    best: dict[str, str | None] = dict(options)
    order = ranked(result)
    for key in keys:
        if key not in options and name in TREES:
            continue
        alike = [one for one in order if _differs_at_most_in(one.spec, name, options, key)]
        if alike:
            best[key] = read(min(alike, key=typical_s).spec)[1].get(key)
    spec = written(name, best)
    return None if any(read(one.spec) == read(spec) for one in result.candidates if one.time_s) else spec


def _differs_at_most_in(spec: str, name: str, options: Mapping[str, str], key: str) -> bool:
    other_name, other = read(spec)
    same_levels = name not in TREES or other.keys() == options.keys()
    return other_name == name and same_levels and _without(other, (key,)) == _without(options, (key,))


def _without(options: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key not in keys}
