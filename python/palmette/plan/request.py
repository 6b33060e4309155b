"""The core's parameters of a plan besides job, collective, algorithm and size; an estimate of its steps."""

from __future__ import annotations

from typing import TypedDict

from palmette import _core

ELEMENT_BYTES = 4
"""Element size of reductions: no cut of a plan goes through an element."""
_ALWAYS_FITS = 1024
"""Ranks up to which plans always fit in memory."""


class Details(TypedDict):
    """Keywords of the core's functions that make programs, plans and predictions."""

    ordered: bool
    shared_memory: bool
    element_bytes: int


def details_of(collective: str, *, ordered: bool = False, shared_memory: bool = True) -> Details:
    """Return the keywords for a collective. `ordered`: its operation isn't commutative."""
    element_bytes = ELEMENT_BYTES if _core.is_reduction(collective) else 1
    return {"ordered": ordered, "shared_memory": shared_memory, "element_bytes": element_bytes}


def is_in_network(collective: str, algorithm: str) -> bool:
    """Whether aggregators take part in the algorithm's plans."""
    name = algorithm.partition(":")[0]
    return any(row.in_network and (row.collective, row.name) == (collective, name) for row in _core.algorithms())


def about_steps(
    job: _core.Job, collective: str, algorithm: str, root: int, block_bytes: int, details: Details
) -> float:
    """Return an estimate of the steps of all ranks' programs, from those of a few; 0 for a job of few ranks."""
    p = job.size
    if p <= _ALWAYS_FITS:
        return 0
    sample = sorted({root, *(p * i // 7 for i in range(7))})
    steps = [len(_core.make_program(job, rank, collective, algorithm, root, block_bytes, **details)) for rank in sample]
    return max(min(steps) * p, max(steps)) if _core.is_rooted(collective) else sum(steps) / len(steps) * p
