"""Communication patterns: source, target and bytes of each message of one iteration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from palmette.map.errors import MapError
from palmette.map.matrix import Matrix

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

FORMS = "ring, recursive_doubling, gather, bcast, stencil:8x2, stencil:8x2,periodic or a file of messages"
HEURISTICS = ("ring", "recursive_doubling", "gather", "bcast")
"""Patterns for which there is a heuristic of its own."""


@dataclass(frozen=True)
class Pattern:
    """Messages between ranks: source[i] sends bytes[i] to target[i]. The three arrays have the same length."""

    name: str
    ranks: int
    source: Ints
    target: Ints
    bytes: Floats
    extents: tuple[int, ...] = ()
    """Extents of a stencil's grid, whose cells the ranks are row by row."""
    periodic: tuple[bool, ...] = ()
    exchanged: float = 0.0
    """Bytes of a recorded run that were in all-to-all exchanges."""


def parse_pattern(form: str, ranks: int, size: int) -> Pattern:
    """Return the messages of a pattern among `ranks` ranks, with blocks of `size` bytes.

    ring: an allgather of one block a rank, p - 1 blocks cross each edge. recursive_doubling: the same, 2^k blocks in
    stage k; ranks past the largest power of two send their block to a partner and receive the result. gather: binomial,
    to rank 0. bcast: binomial, from rank 0. stencil: one block to each neighbour in the grid, both ways.

    Raises MapError for another form, or a grid with more cells than ranks.
    """
    kind, _, rest = form.partition(":")
    if kind == "stencil":
        return _stencil(form, rest, ranks, size)
    if rest or kind not in HEURISTICS:
        raise MapError(f"'{form}' is no pattern; it is one of {FORMS}")
    edges = {"ring": _ring, "recursive_doubling": _recursive_doubling, "gather": _gather, "bcast": _bcast}[kind]
    source, target, blocks = edges(ranks)
    return Pattern(kind, ranks, source.astype(np.int32), target.astype(np.int32), blocks.astype(np.float64) * size)


def pattern_of_messages(
    name: str, ranks: int, rows: Iterable[tuple[int, int, float]], exchanged: float = 0.0
) -> Pattern:
    """Return the messages of rows (source, target, bytes), without what ranks send themselves."""
    apart = np.array([row for row in rows if row[0] != row[1]], dtype=np.float64).reshape(-1, 3)
    return Pattern(
        name, ranks, apart[:, 0].astype(np.int32), apart[:, 1].astype(np.int32), apart[:, 2], exchanged=exchanged
    )


def pattern_of_matrix(matrix: Matrix, name: str) -> Pattern:
    """Return the messages of a communication matrix: row i, column j is what rank i sends to rank j, in bytes."""
    source, target = np.nonzero(matrix)
    apart = source != target
    source, target = source[apart], target[apart]
    return Pattern(name, len(matrix), source.astype(np.int32), target.astype(np.int32), matrix[source, target])


_Edges = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _ring(p: int) -> _Edges:
    ranks = np.arange(p if p > 1 else 0)
    return ranks, (ranks + 1) % p, np.full(len(ranks), p - 1)


def _recursive_doubling(p: int) -> _Edges:
    whole = 1 << (p.bit_length() - 1)
    ranks, surplus = np.arange(whole), np.arange(whole, p)
    held = 1 + (ranks + whole < p)
    parts = [(surplus, surplus - whole, np.ones(p - whole, dtype=np.int64))]
    step = 1
    while step < whole:
        groups = held.reshape(-1, step).sum(axis=1).repeat(step)
        parts.append((ranks, ranks ^ step, groups))
        step *= 2
    parts.append((surplus - whole, surplus, np.full(p - whole, p)))
    return _joined(parts)


def _binomial(p: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]]:
    """Return (parents, children, step) of each stage, the longest step first."""
    stages = []
    step = 1 << max((p - 1).bit_length() - 1, 0)
    while step >= 1:
        parents = np.arange(0, max(p - step, 0), 2 * step)
        stages.append((parents, parents + step, step))
        step //= 2
    return stages


def _gather(p: int) -> _Edges:
    return _joined([(child, parent, np.minimum(step, p - child)) for parent, child, step in _binomial(p)])


def _bcast(p: int) -> _Edges:
    return _joined([(parent, child, np.ones(len(child), dtype=np.int64)) for parent, child, _ in _binomial(p)])


def _joined(parts: list[_Edges]) -> _Edges:
    one, two, three = zip(*parts, strict=True)
    return np.concatenate(one), np.concatenate(two), np.concatenate(three)


def _stencil(form: str, rest: str, ranks: int, size: int) -> Pattern:
    match = re.fullmatch(r"([1-9][0-9]*(?:x[1-9][0-9]*)*)(,periodic)?", rest)
    if match is None:
        raise MapError(f"'{form}' is no stencil; give the grid's extents, like stencil:8x2 or stencil:8x2,periodic")
    extents = tuple(int(word) for word in match[1].split("x"))
    cells = prod(extents)
    if cells > ranks:
        raise MapError(f"'{form}' has {cells} cells, more than the {ranks} ranks; make it smaller or add ranks")
    periodic = match[2] is not None
    grid = np.arange(cells).reshape(extents)
    source, target = [], []
    for axis, extent in enumerate(extents):
        if extent < 2:
            continue
        for step in (1, -1):
            there = np.roll(grid, -step, axis=axis)
            inside = np.ones(extents, dtype=bool)
            if not periodic:
                edge = [slice(None)] * len(extents)
                edge[axis] = slice(-1, None) if step == 1 else slice(0, 1)
                inside[tuple(edge)] = False
            source.append(grid[inside])
            target.append(there[inside])
    sources = np.concatenate(source) if source else np.zeros(0, dtype=np.int64)
    targets = np.concatenate(target) if target else np.zeros(0, dtype=np.int64)
    return Pattern(
        form,
        ranks,
        sources.astype(np.int32),
        targets.astype(np.int32),
        np.full(len(sources), float(size)),
        extents,
        (periodic,) * len(extents),
    )
