"""One order for the levels inside of all hosts: on one a NUMA node may hold sockets, on another the reverse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from palmette.topology.cpus import ORDER, NodeGroups, inside_name, level_names, nesting, without_level
from palmette.topology.found import SourceResult
from palmette.topology.model import InsideGroup, Level, Machine

_KEPT = ("core", "socket")
"""Levels that stay where two can't both stay."""


class _Order:
    """Pairs of levels, the outer one first, without a circle."""

    def __init__(self) -> None:
        self.below: dict[str, set[str]] = {}

    def reaches(self, start: str, goal: str) -> bool:
        """Whether `goal` must come behind `start`, or is it."""
        seen, waiting = {start}, [start]
        while waiting:
            name = waiting.pop()
            if name == goal:
                return True
            waiting += [other for other in self.below.get(name, ()) if other not in seen]
            seen |= self.below.get(name, set())
        return False

    def add(self, groups: Sequence[InsideGroup]) -> str | None:
        """Take the nesting of an inside, or return a level without which it may fit."""
        pairs = nesting(groups)
        for outer, inner in pairs:
            if self.reaches(inner, outer):
                return inner if outer in _KEPT else outer
        for outer, inner in pairs:
            self.below.setdefault(outer, set()).add(inner)
        return None

    def sorted(self, names: Iterable[str]) -> list[str]:
        """Return the names, outer ones first; in the order that most machines have where nothing says more."""
        met = list(dict.fromkeys(names))
        rank = {name: (ORDER.index(name) if name in ORDER else -1, at) for at, name in enumerate(met)}
        left = sorted(met, key=lambda name: rank[name])
        if not set(left) <= set(ORDER):
            left = met
        result = []
        while left:
            first = next(one for one in left if not any(one in self.below.get(other, ()) for other in left))
            left.remove(first)
            result.append(first)
        return result


def order_levels(machine: Machine, founds: Sequence[SourceResult]) -> None:
    """Put the levels of all insides behind the level node, so that every inside is nested in their order.

    What doesn't fit is taken out of the insides of `founds`, and told: a level that is outside of another one here and
    inside of it elsewhere, and one that has the name of a level of switches.
    """
    at = next(index for index, level in enumerate(machine.levels) if level.name == "node") + 1
    switches = {level.name for level in machine.levels[:at]}
    known = {level.name: level for level in machine.levels[at:]}
    order = _Order()
    names = list(known)
    for groups in machine.insides.values():
        order.add(groups)
        names += level_names(groups)
    for found in founds:
        if found.inside is None:
            continue
        for name in switches & set(level_names(found.inside.groups)):
            _drop(found, name, "a level of switches has that name")
        while (wrong := order.add(found.inside.groups)) is not None:
            _drop(found, wrong, "on other hosts it is on the other side of the levels next to it")
        names += level_names(found.inside.groups)
        if not found.inside.groups:
            found.inside = None
    machine.levels[at:] = [known.get(name, Level(name)) for name in order.sorted(names)]


def tell_left_out(nested: NodeGroups, sets: Mapping[str, Sequence[int]], found: SourceResult) -> None:
    """Tell of the levels that aren't among the groups."""
    for level in nested.crossing:
        found.leave_out(len(set(sets[level])), f"{level} groups", "they overlap or cut across another level")
    found.leave_out(
        len(nested.same), "level" if len(nested.same) == 1 else "levels", f"no own groups: {nested.same_text()}"
    )


def _drop(found: SourceResult, level: str, why: str) -> None:
    assert found.inside is not None
    found.leave_out(_count(found.inside.groups, level), f"{level} groups", why)
    found.inside.groups = without_level(found.inside.groups, level)
    found.source.detail = f"{inside_name(found.inside.groups)}, without {level}"


def _count(groups: Sequence[InsideGroup], level: str) -> int:
    return sum(group.count * ((group.level == level) + _count(group.children, level)) for group in groups)
