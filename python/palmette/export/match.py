"""Data model of exports: the match of an algorithm with a library's nearest one, lines, and exported files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.export.decisions import Decision, Place, Spec
from palmette.units import plural


@dataclass(frozen=True)
class Match:
    """A library's nearest algorithm. `name` None: there is none, for the reason in `remark`.

    `parameters` are the library's. `remark`: how it differs, empty where it is the same. `commutative`: results are
    right only for operations that commute, and the library doesn't check.
    """

    name: str | None
    parameters: dict[str, str] = field(default_factory=dict)
    remark: str = ""
    commutative: bool = False


def nothing(remark: str) -> Match:
    """Return a match that keeps the library's default."""
    return Match(None, {}, remark)


IN_RANK_ORDER = "in the order of ranks, whatever link that crosses"


def order_remark(place: Place) -> str:
    """The remark on an algorithm that uses rank order; empty where this is topology order."""
    return "in the order of ranks, which isn't that of hosts here" if place.scattered else ""


Matcher = Callable[[str, Spec, Place], Match]
"""(function, algorithm, place) -> the library's nearest algorithm."""

Kin = Callable[[Spec, Place], Match | None]
"""(algorithm, place) -> the library's algorithm of that kin, or None where this specification or place has none."""


def same(
    name: str,
    remark: str | None = None,
    *,
    radix: int | None = None,
    power_of_two: bool = False,
    commutes: bool = False,
) -> Kin:
    """Return a kin without parameters: `name`, for that radix and numbers of ranks only; `commutes` as in Match.

    `remark`: by default that on the order of ranks.
    """

    def found(spec: Spec, place: Place) -> Match | None:
        if (radix and spec.number("radix", 2) != radix) or (power_of_two and not place.power_of_two):
            return None
        return Match(name, {}, order_remark(place) if remark is None else remark, commutes)

    return found


@cache
def kin_of(function: str, name: str) -> str:
    """Return what the registry's row says: the nearest algorithm that other MPIs have."""
    collective = _core.collective_of(function)
    return next(row.kin for row in _core.algorithms() if (row.collective, row.name) == (collective, name))


def nearest(function: str, spec: Spec, place: Place, known: Mapping[str, Kin], otherwise: str) -> Match:
    """Return the match by the kin of an algorithm, or nothing, for the reason `otherwise`."""
    found = known.get(kin_of(function, spec.name))
    return (found(spec, place) if found else None) or nothing(otherwise)


@dataclass(frozen=True)
class Line:
    """One range of sizes of one function: palmette's choice, and what is exported for it."""

    decision: Decision
    match: Match

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON values."""
        return {
            "function": self.decision.function,
            "min_bytes": self.decision.min_bytes,
            "max_bytes": self.decision.max_bytes,
            "palmette": self.decision.algorithm,
            "reason": self.decision.reason,
            "library": self.match.name,
            "parameters": self.match.parameters,
            "remark": self.match.remark,
        }


@dataclass(frozen=True)
class Export:
    """One export: `files` by name, the environment variables that make a library use them, and each decision's match.

    A value of `variables` that is the name of a file is replaced by its path.
    """

    form: str
    library: str
    files: dict[str, str]
    variables: dict[str, str]
    lines: list[Line]
    notes: list[str] = field(default_factory=list)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables for files in `folder`."""
        return {name: str(folder / value) if value in self.files else value for name, value in self.variables.items()}

    @property
    def mapped(self) -> list[Line]:
        """The lines that have a match."""
        return [line for line in self.lines if line.match.name is not None]


UNSAFE = "only for operations that commute, which the library doesn't check: --commutative takes it"


def match_all(decisions: Sequence[Decision], matcher: Matcher, place: Place, *, commutative: bool) -> list[Line]:
    """Return the lines of a library, one per decision.

    `commutative`: the program's operations all commute, so that matches may be used that the library doesn't check.
    """
    lines: list[Line] = []
    for decision in decisions:
        if decision.spec is None:
            match = nothing("palmette leaves it to the MPI, too")
        elif decision.spec.name == "shared":
            match = nothing("in shared memory: the library's own algorithm")
        else:
            match = matcher(decision.function, decision.spec, place)
        if match.name is not None and match.commutative and not commutative:
            match = nothing(f"{match.name} is {UNSAFE}")
        lines.append(Line(decision, match))
    return lines


def scope(place: Place) -> str:
    """Return the communicators that rules apply to."""
    return f"communicators of {plural(place.ranks, 'rank')}"
