"""The specifications to force: the samples of all algorithms, which the C++ tests go through, too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from palmette import _core

COLLECTIVE_OF = {
    "gather": "gather",
    "gatherv": "gather",
    "scatter": "scatter",
    "scatterv": "scatter",
    "allgather": "allgather",
    "allgatherv": "allgather",
    "bcast": "bcast",
    "alltoall": "alltoall",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "barrier": "barrier",
    "reduce": "reduce",
    "allreduce": "allreduce",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_block": "reduce_scatter",
    "scan": "scan",
    "exscan": "exscan",
}
"""Function -> collective. These are all functions that are served."""

SEGMENT_FACTOR = 48
"""Samples are made for blocks of some bytes; a program's have up to a megabyte."""


def _grown(spec: str) -> str:
    return re.sub(r"\b(segment|direct)=(\d+)", lambda m: f"{m[1]}={int(m[2]) * SEGMENT_FACTOR}", spec)


@cache
def every_spec() -> Mapping[str, tuple[str, ...]]:
    """Return collective -> specifications, in the order of the registry."""
    found: dict[str, list[str]] = {collective: [] for collective in COLLECTIVE_OF.values()}
    for row in _core.algorithms():
        found[row.collective] += [_grown(spec) for spec in row.samples]
    return {collective: tuple(specs) for collective, specs in found.items()}


def number_of_sets() -> int:
    """Return how many runs it takes until each specification was forced."""
    return max(len(specs) for specs in every_spec().values())


def spec_set(index: int) -> dict[str, str]:
    """Return function -> specification: the one with this index, lists beginning anew where they end.

    The functions of a collective that has several begin at different places.
    """
    chosen: dict[str, str] = {}
    for function, collective in COLLECTIVE_OF.items():
        specs = every_spec()[collective]
        shift = sum(1 for other in chosen if COLLECTIVE_OF[other] == collective) * (len(specs) // 3)
        chosen[function] = specs[(index + shift) % len(specs)]
    return chosen
