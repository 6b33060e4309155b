"""Named comparisons: the platform, placements, collectives and sizes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palmette_lab.simulate.errors import SimulateError

ALL = ("gather", "scatter", "allgather", "bcast", "reduce", "allreduce", "alltoall")
_FROM_8B = (8, 64, 512, 4096, 16_384, 65_536)
_THREE = ("block", "cyclic", "random:1")


@dataclass(frozen=True, slots=True)
class SimulatedSet:
    """A platform with its placements, and the sizes of each collective."""

    name: str
    sentence: str
    platform: str
    placements: Sequence[str]
    sizes_of: Mapping[str, Sequence[int]]
    rivals: Sequence[str] = ("ompi", "mpich", "mvapich2", "impi")
    rivals_from: Mapping[str, tuple[int, Sequence[str]]] = field(default_factory=dict)
    """First size and the rivals from it on: flat exchanges of small blocks are slow to simulate."""
    cpu_limit_s: int = 60
    takes: str = ""
    """How long it takes, roughly, on two cores."""

    def only(self, collectives: Sequence[str], placements: Sequence[str], sizes: Sequence[int] = ()) -> SimulatedSet:
        """Return a part of it; empty: all. `sizes` replace its own.

        Raises SimulateError for a collective that it doesn't have.
        """
        missing = [name for name in collectives if name not in self.sizes_of]
        if missing:
            raise SimulateError(f"--set {self.name}: no {missing[0]} in it; there are {', '.join(self.sizes_of)}")
        sizes_of = {name: tuple(sizes) or self.sizes_of[name] for name in collectives or self.sizes_of}
        return replace(self, sizes_of=sizes_of, placements=tuple(placements) or self.placements)

    def to_json(self) -> dict[str, Any]:
        """As an object."""
        return {
            "sentence": self.sentence,
            "platform": self.platform,
            "placements": list(self.placements),
            "sizes_bytes": {name: list(sizes) for name, sizes in self.sizes_of.items()},
            "rivals": list(self.rivals),
            "rivals_from": {name: [size, list(rivals)] for name, (size, rivals) in self.rivals_from.items()},
            "cpu_limit_s": self.cpu_limit_s,
            "takes": self.takes,
        }


_SETS = (
    SimulatedSet(
        "test-bed",
        "The gather paper's test bed, 296 ranks, 8 to 64K bytes.",
        "gather-paper",
        _THREE,
        dict.fromkeys(ALL, _FROM_8B),
        cpu_limit_s=400,
        takes="an hour",
    ),
    SimulatedSet(
        "clos-1024",
        "64 nodes of 16 ranks behind leaves and spines, 1,024 ranks, 8 to 64K bytes.",
        "ranger-64",
        _THREE,
        dict.fromkeys(ALL, _FROM_8B),
        rivals_from={"allgather": (512, ("ompi",)), "alltoall": (512, ("pair",))},
        cpu_limit_s=1800,
        takes="an hour and a half",
    ),
    SimulatedSet(
        "trees-4096",
        "Trees on the three-tier fat tree, 4,096 ranks, 64 to 64K bytes, block and random placement.",
        "fat-tree-256",
        ("block", "random:1"),
        dict.fromkeys(("gather", "scatter", "bcast", "reduce"), (64, 4096, 65_536)),
        rivals=("ompi", "mpich"),
        cpu_limit_s=3600,
        takes="some hours",
    ),
)


def set_named(name: str) -> SimulatedSet:
    """Return a set. Raises SimulateError naming those that there are."""
    for one in _SETS:
        if one.name == name:
            return one
    raise SimulateError(f"'{name}' is no set; there are {', '.join(one.name for one in _SETS)}")


def sets() -> Sequence[SimulatedSet]:
    """Return all sets."""
    return _SETS
