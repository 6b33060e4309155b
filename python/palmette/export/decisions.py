"""The decision table's choices for one job, as size ranges per function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palmette import _core

FUNCTIONS = (
    "gather", "scatter", "allgather", "allgatherv", "bcast", "reduce", "allreduce", "reduce_scatter",
    "reduce_scatter_block", "alltoall", "alltoallv", "barrier", "scan", "exscan",
)  # fmt: skip
"""Functions that libraries can be tuned for: gatherv, scatterv and alltoallw have one algorithm nearly everywhere."""

WITHOUT_SIZE = ("barrier", "alltoallv")
"""Functions with one range for all sizes: a barrier has none, and ranks don't know each other's lengths."""

_LARGEST_BITS = 24
"""Sizes are sampled up to 16 MiB; the choice there holds beyond."""


@dataclass(frozen=True)
class Spec:
    """An algorithm as in docs/reference/algorithm-spec.md, in parts: `bruck:radix=4,order=rank`."""

    name: str
    keys: dict[str, str]

    @staticmethod
    def parse(text: str) -> Spec:
        """Parse a text that the core has validated."""
        name, _, rest = text.partition(":")
        words = (word.partition("=") for word in rest.split(",") if word)
        return Spec(name, {key: value for key, _, value in words})

    def number(self, key: str, default: int) -> int:
        """The value of a key as a whole number; sizes are in bytes."""
        return _core.parse_size(self.keys[key]) if key in self.keys else default

    @property
    def segment(self) -> int:
        """Bytes of a segment, 0 for none."""
        return self.number("segment", 0)


@dataclass(frozen=True)
class Decision:
    """The algorithm of a function for blocks from `min_bytes` to `max_bytes` (None: unlimited).

    Sizes are palmette's: bytes that a rank contributes or receives, or sends to each other; of bcast, reduce, allreduce
    and scans the vector. `spec` None: the table leaves it to the MPI.
    """

    function: str
    min_bytes: int
    max_bytes: int | None
    spec: Spec | None
    algorithm: str | None
    reason: str


@dataclass(frozen=True)
class Place:
    """Properties of a job that matching depends on. `scattered`: ranks are not numbered in topology order."""

    ranks: int
    nodes: int
    ranks_of_node: tuple[int, ...]
    scattered: bool

    @property
    def power_of_two(self) -> bool:
        """Whether the number of ranks is a power of two."""
        return self.ranks & (self.ranks - 1) == 0

    @property
    def even_nodes(self) -> bool:
        """Whether all nodes hold the same number of ranks."""
        return len(set(self.ranks_of_node)) == 1


def place_of(job: _core.Job) -> Place:
    """Return the placement properties of a job."""
    counts: dict[str, int] = {}
    for rank in range(job.size):
        host = job.host_of(rank)
        counts[host] = counts.get(host, 0) + 1
    return Place(job.size, len(counts), tuple(counts.values()), _core.is_scattered(job))


def decide(table: _core.Table, job: _core.Job, mpi: str, functions: Sequence[str] = FUNCTIONS) -> list[Decision]:
    """Return the choices of `table` for blocking calls under `mpi` on `job`, by function and increasing size.

    The table is evaluated at the size limits of its rows and at powers of two. Operations commute. Raises _core.Error.
    """
    found: list[Decision] = []
    for function in functions:
        starts = [-1] if function in WITHOUT_SIZE else _starts(table, function)
        mine: list[Decision] = []
        for index, start in enumerate(starts):
            chosen = table.choose(function, job, 0, 0 if function == "barrier" else start, mpi=mpi)
            text = chosen.algorithm
            end = starts[index + 1] - 1 if index + 1 < len(starts) else None
            if mine and mine[-1].algorithm == text:
                before = mine.pop()
                mine.append(Decision(function, before.min_bytes, end, before.spec, text, before.reason))
            else:
                spec = Spec.parse(text) if text is not None else None
                mine.append(Decision(function, max(start, 0), end, spec, text, chosen.reason))
        found += mine
    return found


def _starts(table: _core.Table, function: str) -> list[int]:
    """Sizes at which the choice may change, from 0 on."""
    starts = {0, *(1 << bit for bit in range(_LARGEST_BITS + 1))}
    for row in table.rows:
        if row.function == function:
            starts |= {row.min_bytes, row.max_bytes + 1}
    return sorted(start for start in starts if 0 <= start <= 1 << 30)
