"""Python interface to compositions: buffers by name, regions of blocks by index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from palmette import _core

Ranks = Iterable[int] | Literal["all"]
Hierarchy = str | Sequence[int | Sequence[int]]


@dataclass(frozen=True)
class Region:
    """Consecutive blocks of a buffer."""

    buffer: Buffer
    first: int
    count: int


@dataclass(frozen=True)
class Buffer:
    """A buffer on every rank, which holds the blocks that the rank accesses. `x[3]` and `x[0:4]` are regions."""

    name: str
    blocks: int
    """Number of blocks of the composition."""

    def __getitem__(self, index: int | slice) -> Region:
        """Return the region of one block, or of consecutive ones. Raises IndexError and ValueError."""
        if isinstance(index, slice):
            first, end, step = index.indices(self.blocks)
            if step != 1:
                raise ValueError(f"{self.name}[::{step}]: a region is consecutive blocks; add one primitive a block")
            return Region(self, first, max(0, end - first))
        if not -self.blocks <= index < self.blocks:
            raise IndexError(f"{self.name}[{index}]: there are only the blocks 0 to {self.blocks - 1}")
        return Region(self, index % self.blocks, 1)


class Composition:
    """Multicasts, reductions and fences over a number of ranks, and the plans made from them.

    `bytes` is the length of every block, or a list with one for each; with `vector=True` it is the length of all blocks
    together, cut as evenly as elements of `element_bytes` bytes allow. A block has the same length in every buffer, and
    the blocks that a rank accesses in a buffer are stored there in ascending order without gaps.
    """

    def __init__(
        self,
        ranks: int,
        *,
        bytes: int | Sequence[int],
        blocks: int | None = None,
        vector: bool = False,
        element_bytes: int = 1,
    ) -> None:
        """Raises `palmette._core.Error` on invalid numbers."""
        self.core = _core.Composition(
            ranks, bytes if isinstance(bytes, int) else list(bytes), blocks, vector, element_bytes
        )
        self.name = "composition"
        self._operations: dict[tuple[str, bool], int] = {}

    @classmethod
    def of_core(cls, core: _core.Composition, name: str) -> Composition:
        """Wrap what the core made."""
        made = cls.__new__(cls)
        made.core = core
        made.name = name
        made._operations = {operation: index for index, operation in enumerate(core.operations)}
        return made

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.core.ranks

    def buffer(self, name: str) -> Buffer:
        """Return the buffer of that name; the first call creates it."""
        self.core.buffer(name)
        return Buffer(name, self.core.blocks)

    def multicast(self, root: int, to: Ranks, region: Region, into: Buffer) -> None:
        """Copy `root`'s region to the same blocks of buffer `into` of all ranks `to`. Raises `_core.Error`."""
        self.core.multicast(root, _ranks(to), region.buffer.name, region.first, region.count, into.name)

    def reduce(
        self,
        sources: Ranks,
        root: int,
        region: Region,
        into: Buffer,
        operation: str = "sum",
        *,
        commutative: bool = True,
    ) -> None:
        """Reduce the region of all `sources`, in rank order, into buffer `into` of `root`.

        Operations are named here; at run time each name is bound to an MPI operation. Raises `_core.Error`.
        """
        key = (operation, commutative)
        if key not in self._operations:
            self._operations[key] = self.core.operation(operation, commutative)
        self.core.reduce(
            _ranks(sources), root, region.buffer.name, region.first, region.count, into.name, self._operations[key]
        )

    def fence(self) -> None:
        """End a phase: later primitives see the results of earlier ones, with dependencies tracked per block."""
        self.core.fence()

    def hold(self, rank: int, region: Region) -> None:
        """Declare that a rank's buffer contains a region even where no primitive accesses it."""
        self.core.hold(rank, region.buffer.name, region.first, region.count)

    def factor(
        self,
        job: _core.Job | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        methods: str | Sequence[str] = "direct",
        stripes: int = 1,
        pipeline: int = 1,
        landings: int = 4,
    ) -> _core.Plan:
        """Return the plan of all ranks over the levels of `job`, or over an explicit `hierarchy`.

        `hierarchy=[3, 8]` means 3 groups of 8 ranks, `[2, [4, 3]]` a group of 4 and one of 3; without a job it is also
        the placement of ranks. `methods`: `direct`, `tree.K` or `ring`, with `/LANES` where fewer than all ranks of a
        group communicate with other groups, and `@copy`, `@ipc` or `@nccl` for another transport than messages; one for
        all levels or one for each, the outermost first. Raises `_core.Error`.
        """
        return self.core.factor(*self._place(job, hierarchy), methods_list(methods), stripes, pipeline, landings)

    def program(
        self,
        rank: int,
        job: _core.Job | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        methods: str | Sequence[str] = "direct",
        stripes: int = 1,
        pipeline: int = 1,
        landings: int = 4,
    ) -> _core.Program:
        """Return the program of one rank of what `factor` makes, without making the others'."""
        on, groups = self._place(job, hierarchy)
        return self.core.program(on, rank, groups, methods_list(methods), stripes, pipeline, landings)

    def _place(self, job: _core.Job | None, hierarchy: Hierarchy | None) -> tuple[_core.Job, str | None]:
        if job is not None:
            return job, None if hierarchy is None else hierarchy_text(hierarchy)
        text = str(self.ranks) if hierarchy is None else hierarchy_text(hierarchy)
        return _core.hierarchy_job(text, self.ranks), None


def _ranks(ranks: Ranks) -> list[int] | None:
    if isinstance(ranks, str):
        if ranks != "all":
            raise ValueError(f"ranks {ranks!r}: expected numbers, or 'all'")
        return None
    return list(ranks)


def hierarchy_text(hierarchy: Hierarchy) -> str:
    """[3, 8] -> "3:8", [2, [4, 3]] -> "2:4+3"."""
    if isinstance(hierarchy, str):
        return hierarchy
    return ":".join(
        str(level) if isinstance(level, int) else "+".join(str(size) for size in level) for level in hierarchy
    )


def methods_list(methods: str | Sequence[str]) -> list[str]:
    """Turn `ring,direct` into `["ring", "direct"]`."""
    return methods.split(",") if isinstance(methods, str) else list(methods)


def named(name: str, ranks: int, bytes: int | Sequence[int], **details: Any) -> Composition:
    """Return one of MPI's collectives as a composition: `palmette compose --list` names them.

    Details are `root`, `element_bytes`, `operation` (a name) and `commutative`. Raises `_core.Error`.
    """
    core = _core.named_composition(name, ranks, bytes if isinstance(bytes, int) else list(bytes), **details)
    return Composition.of_core(core, name)
