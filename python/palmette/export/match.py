"""The nearest algorithm of a library, and what one export consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette.export.decisions import Decision, Place, Spec
from palmette.units import plural


@dataclass(frozen=True)
class Match:
    """What a library has for an algorithm. `name` None: nothing near, and `remark` says why.

    `parameters` are the library's. `remark`: how it differs, empty where it is the same. `commutative`: results are right only
    for operations that commute, and the library doesn't look.
    """

    name: str | None
    parameters: dict[str, str] = field(default_factory=dict)
    remark: str = ""
    commutative: bool = False


def nothing(remark: str) -> Match:
    """Return a match that leaves the library's default."""
    return Match(None, {}, remark)


IN_RANK_ORDER = "in the order of ranks, whatever link that crosses"


def order_remark(place: Place) -> str:
    """What to say of an algorithm that goes by the numbers of ranks; nothing where these are in topology order."""
    return "in the order of ranks, which isn't that of hosts here" if place.scattered else ""


Matcher = Callable[[str, Spec, Place], Match]
"""(function, algorithm, place) -> what the library has."""


@dataclass(frozen=True)
class Line:
    """One range of sizes of one function: what palmette takes, and what the library was told."""

    decision: Decision
    match: Match

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON knows it."""
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
    """One kind of file: `files` by name, the variables that make a library use them, and what became of each decision.

    A value of `variables` that is the name of a file stands for its path.
    """

    form: str
    library: str
    files: dict[str, str]
    variables: dict[str, str]
    lines: list[Line]
    notes: list[str] = field(default_factory=list)

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables for files that lie in `folder`."""
        return {name: str(folder / value) if value in self.files else value for name, value in self.variables.items()}

    @property
    def told(self) -> list[Line]:
        """The lines that the library was told about."""
        return [line for line in self.lines if line.match.name is not None]


UNSAFE = "only for operations that commute, which the library doesn't check: --commutative takes it"


def match_all(decisions: Sequence[Decision], matcher: Matcher, place: Place, *, commutative: bool) -> list[Line]:
    """Return the lines of a library; neighbours that come out the same are joined.

    `commutative`: the program's operations all commute, so that what the library doesn't check may be taken.
    """
    lines: list[Line] = []
    for decision in decisions:
        if decision.spec is None:
            match = nothing("palmette leaves it to the MPI, too")
        elif decision.spec.name == "shared":
            match = nothing("in a node's memory: the library's own way")
        else:
            match = matcher(decision.function, decision.spec, place)
        if match.name is not None and match.commutative and not commutative:
            match = nothing(f"{match.name} is {UNSAFE}")
        lines.append(Line(decision, match))
    return lines


def scope(place: Place) -> str:
    """Return for which communicators rules are written."""
    return f"communicators of {plural(place.ranks, 'rank')}"
