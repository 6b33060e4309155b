"""Regions that the program says itself, over all ranks: exact calls and times, with the MPI calls inside of them.

A region is what lies between palmette_region_begin and palmette_region_end, or a function that was compiled with
-finstrument-functions. The same ones are in the tree of samples and in call paths, as what is outside of all frames.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palmette import _core
from palmette.record.reading import Job, Process
from palmette.record.symbols import REGION, Frame, FrameLike, Resolver
from palmette.units import plural

MOST_ROWS = 500
"""Rows of a document: the heaviest regions."""
COST_SHARE = 0.01
"""The share of all ranks' time from which on it is said that counting regions took it."""


@dataclass
class Region:
    """A region within another one, over all ranks and their threads; times with all that is inside."""

    name: str
    kind: str
    """named, function (compiled with -finstrument-functions), or unbegun: ended and never begun."""
    file: str
    parent: int
    """Number of the region around it; 0: outside of all."""
    calls: int = 0
    inner: int = 0
    """Regions begun in it that lie too deep for a place of their own."""
    longest_s: float = 0.0
    unclosed: int = 0
    """How often it ended with a region outside of it, or with its thread."""
    open_in: list[str] = field(default_factory=list)
    """Processes in which it hasn't ended."""
    by_rank_s: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    mpi_s: float | None = None
    """Part of inclusive_s in MPI calls; None: a function, or a name that stands in several places among functions."""
    exclusive_s: float = 0.0

    @property
    def inclusive_s(self) -> float:
        """Seconds of all ranks and threads together, with all that is inside."""
        return sum(self.by_rank_s.values())


def chain_of(path: Sequence[FrameLike]) -> tuple[str, ...]:
    """Return the regions that a call path lies in, the outermost first."""
    return tuple(frame.module.removeprefix(REGION) for frame in path[::-1] if frame.module.startswith(REGION))


def regions_of(job: Job) -> list[Region]:
    """Return the tree, [0] outside of all, parents before what is inside of them; only [0] where there are none.

    Cost: O(regions of all processes), and a reading of each module with functions among them.
    """
    resolver = Resolver()
    resolver.add(_at(one) for process in job.processes for one in process.recorded.regions if one.module)
    found = [Region("", "thread", "", 0)]
    numbers: dict[tuple[int, str, str, str], int] = {}
    for process in job.processes:
        own = [0]
        found[0].inner += sum(one.inner for one in process.recorded.regions[:1])
        for one in process.recorded.regions[1:]:
            kind = one.kind.name
            name, file = (one.name, "") if kind != "function" else _function(one, resolver)
            key = (own[one.parent], kind, name, file)
            number = numbers.setdefault(key, len(found))
            own.append(number)
            if number == len(found):
                found.append(Region(name, kind, file, own[one.parent]))
            _add(found[number], one, process)
    inside = [0.0] * len(found)
    for region in found[1:]:
        inside[region.parent] += region.inclusive_s
    for number, region in enumerate(found):
        region.exclusive_s = max(0.0, region.inclusive_s - inside[number])
    _count_mpi(job, found)
    return found


def _add(to: Region, one: _core.RecordedRegion, process: Process) -> None:
    to.calls += one.calls
    to.inner += one.inner
    to.longest_s = max(to.longest_s, one.longest_s)
    to.unclosed += one.unclosed
    to.by_rank_s[process.recorded.rank] += one.seconds
    if one.open:
        to.open_in.append(process.name)


def _at(one: _core.RecordedRegion) -> Frame:
    """Return a function's address as return addresses are: looked up right before."""
    return Frame(one.module, one.build_id, one.offset + 1)


def _function(one: _core.RecordedRegion, resolver: Resolver) -> tuple[str, str]:
    place = resolver.places(_at(one))[-1]
    return place.function, place.file or Path(one.module).name


def _count_mpi(job: Job, found: list[Region]) -> None:
    """Add the time of MPI calls to the regions that they lie in."""
    chains: list[tuple[str, ...]] = [()]
    at: dict[tuple[str, ...], list[Region]] = defaultdict(list)
    for one in found[1:]:
        chains.append((*chains[one.parent], one.name) if one.kind == "named" else chains[one.parent])
        if one.kind == "named":
            at[chains[-1]].append(one)
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for process in job.processes:
        inside = [chain_of(path) for path in process.recorded.paths]
        for call in process.recorded.aggregates:
            if call.is_request or call.path >= len(inside):
                continue
            chain = inside[call.path]
            for depth in range(1, len(chain) + 1):
                sums[chain[:depth]] += call.seconds
    for chain, named in at.items():
        if len(named) == 1:
            named[0].mpi_s = sums[chain]


def rows(found: Sequence[Region]) -> list[dict[str, Any]]:
    """Return the tree as a document: each region before those in it, the heaviest first; times of all ranks."""
    kept = sorted((n for n in range(1, len(found)) if found[n].kind != "unbegun"), key=lambda n: -found[n].inclusive_s)
    inside: dict[int, list[int]] = defaultdict(list)
    for number in sorted(kept[:MOST_ROWS], key=lambda n: found[n].inclusive_s):
        inside[found[number].parent].append(number)
    out = []
    left = [(number, 0) for number in inside[0]]
    while left:
        number, depth = left.pop()
        one = found[number]
        least, most = (choose(one.by_rank_s, key=lambda rank: one.by_rank_s[rank]) for choose in (min, max))
        out.append({
            "depth": depth, "name": one.name, "kind": one.kind, "file": one.file or None, "calls": one.calls,
            "inner_calls": one.inner, "inclusive_s": one.inclusive_s, "exclusive_s": one.exclusive_s,
            "mpi_s": one.mpi_s, "longest_s": one.longest_s, "ranks": len(one.by_rank_s),
            "least_s": one.by_rank_s[least], "least_rank": least, "most_s": one.by_rank_s[most], "most_rank": most,
            "open": len(one.open_in), "unclosed": one.unclosed,
        })  # fmt: skip
        left += [(inner, depth + 1) for inner in inside[number]]
    return out


def notes(job: Job, found: Sequence[Region]) -> list[str]:
    """Return what is wrong with regions, and what isn't counted in a place of its own."""
    out = []
    for one in found[1:]:
        if one.kind == "unbegun":
            out.append(
                f"region {one.name}: {plural(one.calls, 'end')} found no beginning in their thread "
                f"({_ranks(one.by_rank_s)}); palmette_region_end names what palmette_region_begin began there"
            )
        elif one.kind == "named" and one.unclosed:
            out.append(
                f"region {one.name}: of {one.calls:,}, {one.unclosed:,} had no end of their own and ended with the "
                "region around them or with their thread; each way out of one needs palmette_region_end"
            )
        if one.kind == "named" and (ended := [name for name in one.open_in if name in _ended(job)]):
            more = f" and {len(ended) - 1:,} more" if len(ended) > 1 else ""
            out.append(f"region {one.name} hadn't ended when {ended[0]}{more} did; its time goes up to there")
    if left := sum(one.unclosed for one in found if one.kind == "function"):
        out.append(f"{left:,} calls of instrumented functions were left by a jump: they end where their caller did")
    if inner := sum(one.inner for one in found):
        out.append(f"{inner:,} regions were too deep or too many for places of their own: part of those around them")
    if missed := sum(one.recorded.missed_regions for one in job.processes):
        out.append(f"{missed:,} regions aren't counted: signal handlers began them in the midst of another's begin")
    if (share := _cost_share(job)) >= COST_SHARE:
        out.append(
            f"counting regions took about {share:.0%} of all ranks' time, which is in the regions around them; longer "
            "regions and fewer instrumented functions take less"
        )
    return out


def _ended(job: Job) -> set[str]:
    return {one.name for one in job.processes if one.state in ("finalized", "aborted", "killed")}


def _ranks(ranks: Iterable[int]) -> str:
    found = sorted(ranks)
    return f"rank {found[0]}" + (f" and {len(found) - 1:,} more" if len(found) > 1 else "")


def _cost_share(job: Job) -> float:
    """Return the share of all ranks' time that beginning and ending regions took, by the cost that each measured."""
    ran_s = cost_s = 0.0
    for process in job.processes:
        recorded = process.recorded
        ran_s += max(0, recorded.last_real_ns - recorded.begin_real_ns) * 1e-9
        cost_s += recorded.region_cost_s * sum(one.calls + one.inner for one in recorded.regions)
    return cost_s / ran_s if ran_s > 0 else 0.0
