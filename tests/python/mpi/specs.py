"""The specifications to force: those that the C++ tests of algorithms go through, read from their lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from palmette import _core

SUPPORT = Path(__file__).resolve().parents[2] / "cpp" / "support"

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
"""The lists are made for blocks of some bytes; a program's have up to a megabyte."""


def _texts(body: str) -> list[str]:
    return re.findall(r'"([^"]+)"', body)


def _grown(spec: str) -> str:
    return re.sub(r"\b(segment|direct)=(\d+)", lambda m: f"{m[1]}={int(m[2]) * SEGMENT_FACTOR}", spec)


@cache
def every_spec() -> Mapping[str, tuple[str, ...]]:
    """Return collective -> specifications, in the order of the lists."""
    found: dict[str, list[str]] = {collective: [] for collective in COLLECTIVE_OF.values()}
    main = (SUPPORT / "specs.hpp").read_text(encoding="utf-8")
    loops = re.findall(r"for \(const char\* text\s*:\s*\{(.*?)\}\)\s*out\.emplace_back\((\S+?),", main, re.DOTALL)
    for body, where in loops:
        for collective in ("gather", "scatter") if where == "c" else (where.rpartition(":")[2],):
            found[collective] += _texts(body)
    lists: dict[str, list[str]] = {}
    for path in sorted(SUPPORT.glob("specs_*.hpp")):
        text = path.read_text(encoding="utf-8")
        for name, body in re.findall(r"> (\w+)\(\) \{\s*return \{(.*?)\};\s*\}", text, re.DOTALL):
            lists[name] = _texts(body)
    for collective, name in re.findall(r"add\(Collective::(\w+), (\w+)\(\)\)", main):
        found[collective] += lists[name]
    for algorithm in _core.algorithms():
        if algorithm.name == "shared":
            found[str(algorithm.collective)].append("shared")
    return {collective: tuple(_grown(spec) for spec in dict.fromkeys(specs)) for collective, specs in found.items()}


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
