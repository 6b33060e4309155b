"""The calling contexts of samples, over all ranks: which function at which line took how much processor time.
Long because sites, the tree of them and their sums are of one object.

Contexts are merged by what their frames are called, not by addresses. Frames of the MPI's libraries are one, named as
the function that is called; those of CPython's interpreter and of Cython's glue stand for the Python frames around them
and are left out. A *site* is a function at a line, with its callers' sites; a *node* is a function, or a loop of one,
with its callers, whatever the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.formulas import evaluate
from palmette.record.symbols import (
    CYTHON,
    INTERPRETER,
    MPI_MODULES,
    OURS,
    STARTS,
    SYSTEM,
    Frame,
    FrameLike,
    Place,
    Resolver,
    cython_name,
)

ROOT = 0
HOT_SHARE = 0.5
"""The least share of a caller's time that puts a callee on the hot path."""
CHUNK = 1 << 22
"""Numbers that statistics over ranks hold at a time."""
_HEADERS = re.compile(r"/usr/include/|/usr/lib/gcc/|/include/c\+\+/|<")
_PYTHON_LIBRARY = re.compile(r"/lib/python3[^/]*/(?!.*(site|dist)-packages/)|-packages/(numpy|mpi4py)/|^<frozen ")
_MPI = re.compile(r"P?(MPI_\w+)")
_COMPREHENSION = re.compile(r"(.+)\.<locals>\.<(list|dict|set)comp>|(.+)\.<locals>\.<genexpr>")


@dataclass(frozen=True)
class Site:
    """A function at a line, as it was called; `line` is 0 where it isn't known."""

    function: str
    file: str
    """The source's name; else the library's."""
    line: int
    kind: str
    """native, python, mpi, loop (in frames), cut (frames left out: too deep), lost (caller not known), region (outside
    of all frames).
    """
    is_own: bool
    """Whether it is the program's: its source is known, and it is no system's."""
    loops: tuple[Place, ...] = ()
    """The loops of the function that it is in, the outermost first, each by its name and first line."""

    @property
    def frames(self) -> list[Site]:
        """The function and its loops, the outermost first, each at the line of the next one, as `Place.frames`."""
        if not self.loops:
            return [self]
        function, *loops = Place(self.function, self.file, self.line, loops=self.loops).frames
        return [
            Site(function.function, self.file, function.line, self.kind, self.is_own),
            *(Site(one.function, self.file, one.line, "loop", self.is_own) for one in loops),
        ]

    @property
    def place(self) -> Place:
        """The site as a place, as calls have it."""
        return Place(self.function, self.file if self.line else "", self.line)

    @property
    def name(self) -> str:
        """The function as a sentence has it; parameters of C++ would fill lines."""
        if self.function in ("<module>", self.file):
            return self.function
        return f"{self.function.partition('(')[0] or self.function}()"


class SampledFrame(FrameLike, Protocol):
    """A frame as `_core.SampledFrame` has it."""

    @property
    def kind(self) -> _core.ContextKind: ...
    @property
    def is_innermost(self) -> bool: ...
    @property
    def function(self) -> str: ...
    @property
    def line(self) -> int: ...


class ContextData(Protocol):
    """Contexts as `_core.JobContexts` has them."""

    @property
    def frames(self) -> Sequence[SampledFrame]: ...
    @property
    def parent(self) -> NDArray[Any]: ...
    @property
    def frame(self) -> NDArray[Any]: ...
    @property
    def sum_context(self) -> NDArray[Any]: ...
    @property
    def sum_process(self) -> NDArray[Any]: ...
    @property
    def sum_cpu_s(self) -> NDArray[Any]: ...


@dataclass
class _Tree:
    """A tree by keys; parents stand before what they call."""

    parent: list[int] = field(default_factory=lambda: [ROOT])
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)

    def child(self, parent: int, *key: object) -> int:
        known = self.numbers.setdefault((parent, *key), len(self.parent))
        if known == len(self.parent):
            self.parent.append(parent)
        return known


@dataclass
class Statistics:
    """Nodes over ranks: a column each, in seconds of processor time with what they call."""

    sum_s: NDArray[np.float64]
    mean_s: NDArray[np.float64]
    deviation_s: NDArray[np.float64]
    least_s: NDArray[np.float64]
    most_s: NDArray[np.float64]
    least_rank: NDArray[np.int64]
    most_rank: NDArray[np.int64]


def summed(at: NDArray[Any], seconds: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return sums of seconds by number, of `size` numbers."""
    return np.asarray(np.bincount(at, seconds, size), np.float64)


class Contexts:
    """The tree of a job. Cost: a reading of each module, and O(contexts of all ranks)."""

    def __init__(self, read: ContextData, ranks: Sequence[int], notes: list[str] | None = None) -> None:
        self.ranks = list(ranks)
        """Rank of each process."""
        self.sites: list[Site] = [Site("all", "", 0, "native", is_own=False)]
        """[0] is outside of all."""
        self._sites, self._nodes = _Tree(), _Tree()
        self.node_of_site: list[int] = [ROOT]
        """The innermost loop's where it is in one."""
        self.site_of_node: list[Site] = [self.sites[ROOT]]
        """A function at one of its lines, or a loop."""
        self.notes = notes if notes is not None else []
        # Each look at the property makes all frames anew.
        all_frames = read.frames
        frames = _Frames(all_frames, _asked(read, all_frames))
        self.notes += frames.notes
        self.site_of = self._merged(read, frames)
        """Site of each context of `read`."""
        self._site = self.site_of[np.asarray(read.sum_context, np.int64)]
        self._process, self._cpu_s = np.asarray(read.sum_process, np.int64), np.asarray(read.sum_cpu_s, np.float64)

    @property
    def parents(self) -> list[int]:
        """Number of each site's caller, which is less than the site's own."""
        return self._sites.parent

    @property
    def node_parents(self) -> list[int]:
        """Number of each node's caller."""
        return self._nodes.parent

    def callers(self, site: int) -> Iterator[int]:
        """Give a site and its callers, the innermost first."""
        while site != ROOT:
            yield site
            site = self.parents[site]

    def stack(self, site: int) -> list[Site]:
        """Return a site and its callers with their loops, the outermost function first."""
        return [frame for one in list(self.callers(site))[::-1] for frame in self.sites[one].frames]

    # What they are called.

    def _merged(self, read: ContextData, frames: _Frames) -> NDArray[np.int64]:
        parents, numbers = read.parent.tolist(), read.frame.tolist()
        found = np.zeros(len(parents), np.int64)
        for at in range(1, len(parents)):
            site = int(found[parents[at]])
            for one in frames.sites(numbers[at]):
                site = self._inside(site, one)
            found[at] = site
        return found

    def _inside(self, outer: int, one: Site | None) -> int:
        """Return the site of a frame inside of another one's: that one where the frame isn't worth telling."""
        within = self.sites[outer]
        if one is None or (one.kind == "start" and (outer == ROOT or within.kind == "region")):
            return outer
        if within.kind == "mpi" and not (one.is_own or one.kind == "python"):
            if within.function == PALMETTE and _MPI.fullmatch(one.function) and one.kind == "mpi":
                return self._site_in(self.parents[outer], one)
            return outer
        # Modules without names, comprehensions, and recursion on one line, which is one frame.
        if (one.function, one.file) == (within.function, within.file) and one.line in (0, within.line):
            return outer
        return self._site_in(outer, one)

    def _site_in(self, outer: int, one: Site) -> int:
        site = self._sites.child(outer, one)
        if site == len(self.sites):
            self.sites.append(one)
            node = self.node_of_site[outer]
            for frame in one.frames:
                node = self._nodes.child(node, frame.function, frame.file, frame.kind, frame.is_own)
                if node == len(self.site_of_node):
                    self.site_of_node.append(frame)
            self.node_of_site.append(node)
        return site

    # Where time is.

    @cached_property
    def in_mpi(self) -> NDArray[np.bool_]:
        """Whether each site is in an MPI call."""
        found = np.zeros(len(self.sites), np.bool_)
        for site in range(1, len(self.sites)):
            found[site] = self.sites[site].kind == "mpi" or found[self.parents[site]]
        return found

    @cached_property
    def homes(self) -> NDArray[np.int64]:
        """Innermost site of the program's own that each site is in, as far as that is known; else itself."""
        found = np.arange(len(self.sites))
        own = np.zeros(len(self.sites), np.bool_)
        for site in range(1, len(self.sites)):
            outer = self.parents[site]
            own[site] = self.sites[site].is_own or own[outer]
            if not self.sites[site].is_own and own[outer]:
                found[site] = found[outer]
        return found

    @cached_property
    def function_of_node(self) -> list[int]:
        """Function that each node is in: of a loop its function, of a function itself."""
        found = list(range(len(self.site_of_node)))
        for node, one in enumerate(self.site_of_node):
            if one.kind == "loop":
                found[node] = found[self.node_parents[node]]
        return found

    @cached_property
    def preorder(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Place of each node in an order in which what it calls comes right behind it, and where that ends."""
        parents = self.node_parents
        size = np.ones(len(parents), np.int64)
        for node in range(len(parents) - 1, 0, -1):
            size[parents[node]] += size[node]
        place, free = np.zeros(len(parents), np.int64), np.ones(len(parents), np.int64)
        for node in range(1, len(parents)):
            place[node] = free[parents[node]]
            free[parents[node]] += size[node]
            free[node] = place[node] + 1
        return place, place + size

    def with_callees(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of nodes with all that they call; `own` is by node, in its last dimension."""
        place, end = self.preorder
        ordered = np.zeros((*own.shape[:-1], own.shape[-1] + 1))
        ordered[..., place + 1] = own
        sums = np.cumsum(ordered, axis=-1)
        return np.asarray(sums[..., end] - sums[..., place])

    def by_node(self, processes: range) -> NDArray[np.float64]:
        """Return time by process and node, without what nodes call."""
        nodes = len(self.node_parents)
        chosen = (self._process >= processes.start) & (self._process < processes.stop)
        at = (self._process[chosen] - processes.start) * nodes + np.asarray(self.node_of_site)[self._site[chosen]]
        return summed(at, self._cpu_s[chosen], len(processes) * nodes).reshape(len(processes), nodes)

    @cached_property
    def own_s(self) -> NDArray[np.float64]:
        """Processor time of each node, of all ranks, without what it calls."""
        return summed(np.asarray(self.node_of_site)[self._site], self._cpu_s, len(self.node_parents))

    @cached_property
    def sites_s(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Processor time of each site, of all ranks, without what it calls, and with it."""
        own = summed(self._site, self._cpu_s, len(self.sites))
        whole = own.copy()
        for site in range(len(self.sites) - 1, 0, -1):
            whole[self.parents[site]] += whole[site]
        return own, whole

    @cached_property
    def statistics(self) -> Statistics:
        """Over ranks. Cost: O(nodes x ranks); memory O(nodes)."""
        nodes, ranks = len(self.node_parents), max(1, len(self.ranks))
        sums, squares = np.zeros(nodes), np.zeros(nodes)
        least, most = np.full(nodes, np.inf), np.full(nodes, -np.inf)
        least_rank, most_rank = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        known = np.asarray(self.ranks or [0])
        step = max(1, CHUNK // nodes)
        for first in range(0, ranks, step):
            inside = self.with_callees(self.by_node(range(first, min(first + step, ranks))))
            sums += inside.sum(axis=0)
            squares += (inside**2).sum(axis=0)
            extremes = ((least, least_rank, inside.argmin(axis=0)), (most, most_rank, inside.argmax(axis=0)))
            for best, at, index in extremes:
                value = inside[index, np.arange(nodes)]
                better = value < best if best is least else value > best
                best[better] = value[better]
                at[better] = known[first + index[better]]
        mean = sums / ranks
        deviation = np.sqrt(np.maximum(0.0, squares / ranks - mean**2))
        return Statistics(sums, mean, deviation, least, most, least_rank, most_rank)

    @cached_property
    def by_rank_s(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Processor time of each process outside of MPI, and in it."""
        inside = self.in_mpi[self._site]
        return (
            summed(self._process[~inside], self._cpu_s[~inside], len(self.ranks)),
            summed(self._process[inside], self._cpu_s[inside], len(self.ranks)),
        )

    def derived(self, formula: str) -> NDArray[np.float64]:
        """Return a metric by node that a formula gives of the others: cpu_s (with callees), own_s, mean_s, deviation_s,
        least_s and most_s over ranks, such as `most_s / mean_s`. NaN where it is no number. Raises RecordError.
        """
        numbers = self.statistics
        columns = {
            "cpu_s": numbers.sum_s, "own_s": self.own_s, "mean_s": numbers.mean_s, "deviation_s": numbers.deviation_s,
            "least_s": numbers.least_s, "most_s": numbers.most_s,
        }  # fmt: skip
        return evaluate(formula, columns)

    def of_samples(
        self, ranks: Sequence[int], process: NDArray[Any], site: NDArray[Any], cpu_s: NDArray[Any]
    ) -> Contexts:
        """Return the same tree with other sums: of chosen ranks or threads, say; `process` is an index into `ranks`."""
        found = copy(self)
        for name in ("own_s", "sites_s", "statistics", "by_rank_s"):
            found.__dict__.pop(name, None)
        found.ranks = list(ranks)
        found._process, found._site = np.asarray(process, np.int64), np.asarray(site, np.int64)
        found._cpu_s = np.asarray(cpu_s, np.float64)
        return found

    def by_process(self, number_of_site: NDArray[np.int64], count: int) -> NDArray[np.float64]:
        """Return seconds of sites without what they call, by process and by a number that each site has, of `count`."""
        at = self._process * count + number_of_site[self._site]
        return summed(at, self._cpu_s, len(self.ranks) * count).reshape(len(self.ranks), count)

    def sums_of(self, process: int) -> Iterator[tuple[int, float]]:
        """Give the innermost sites of a process's samples with seconds on a processor."""
        chosen = self._process == process
        seconds = summed(self._site[chosen], self._cpu_s[chosen], len(self.sites))
        for site in np.flatnonzero(seconds).tolist():
            yield site, float(seconds[site])

    @property
    def computing_s(self) -> float:
        """Processor time of all ranks outside of MPI."""
        return float(self.by_rank_s[0].sum())

    def functions(self) -> list[tuple[Site, float, float]]:
        """Return functions with seconds on a processor over all ranks: with what they call, a recursive one counted
        once, and without; the heaviest first. Cost: O(sites).
        """
        own, whole = self.sites_s
        keys = [(one.function, one.file) for one in self.sites]
        above: list[frozenset[tuple[str, str]]] = [frozenset()]
        sums: dict[tuple[str, str], list[float]] = {}
        found: dict[tuple[str, str], Site] = {}
        for site in range(1, len(self.sites)):
            outer = above[self.parents[site]]
            row = sums.setdefault(keys[site], [0.0, 0.0])
            found.setdefault(keys[site], self.sites[site])
            row[1] += float(own[site])
            if keys[site] not in outer:
                row[0] += float(whole[site])
                outer = outer | {keys[site]}
            above.append(outer)
        return [(found[key], sums[key][0], sums[key][1]) for key in sorted(sums, key=lambda one: -sums[one][0])]

    def hot_path(self) -> list[int]:
        """Return the nodes from the outermost on, always the heaviest callee, as long as it has half of its caller."""
        inside = self.statistics.sum_s
        callees: dict[int, list[int]] = {}
        for node in range(1, len(self.node_parents)):
            callees.setdefault(self.node_parents[node], []).append(node)
        path, node = [], ROOT
        while node in callees:
            heaviest = max(callees[node], key=lambda one: inside[one])
            if inside[heaviest] < HOT_SHARE * inside[node]:
                break
            path.append(heaviest)
            node = heaviest
        return path

    def lines(self, most: int | None = None) -> list[Line]:
        """Return the program's own lines by processor time outside of MPI, with what they call that isn't the
        program's own; the heaviest first.
        """
        outside = ~self.in_mpi[self._site] & (self.homes[self._site] != ROOT)
        homes = self.homes[self._site[outside]]
        process, cpu_s = self._process[outside], self._cpu_s[outside]
        numbers: dict[tuple[str, str, int], int] = {}
        line_of = np.zeros(len(self.sites), np.int64)
        known: list[Site] = []
        for site in np.unique(homes).tolist():
            one = self.sites[site]
            line_of[site] = numbers.setdefault((one.function, one.file, one.line), len(known))
            if line_of[site] == len(known):
                known.append(one)
        line = line_of[homes]
        sums = summed(line, cpu_s, len(known))
        found = []
        for at in np.argsort(-sums, kind="stable")[:most].tolist():
            by_rank = summed(process[line == at], cpu_s[line == at], len(self.ranks))
            low, high = int(by_rank.argmin()), int(by_rank.argmax())
            found.append(
                Line(known[at], float(sums[at]), float(by_rank[low]), float(by_rank[high]), self.ranks[low],
                     self.ranks[high])
            )  # fmt: skip
        return found


@dataclass(frozen=True)
class Line:
    """A line of the program, over all ranks."""

    site: Site
    cpu_s: float
    least_s: float
    most_s: float
    least_rank: int
    most_rank: int


PALMETTE = "MPI call"
"""What frames of palmette's libraries are called until a function of the MPI's is met in them."""


def _asked(read: ContextData, frames: Sequence[SampledFrame]) -> set[int]:
    """Return the frames that are worth a look into their module: of what lies in MPI calls those that name the call,
    and those of modules that are met outside, too.
    """
    ours = tuple(_is_mpi(one) for one in frames)
    frame_of = read.frame.tolist()
    inside = [False] * len(frame_of)
    asked: set[int] = set()
    left: set[int] = set()
    named = {one for one, frame in enumerate(frames) if Path(frame.module).name.startswith(OURS)}
    for at, caller in enumerate(read.parent.tolist()):
        frame = frame_of[at]
        inside[at] = at > 0 and (inside[caller] or ours[frame])
        if at == 0:
            continue
        is_first = ours[frame] and (not inside[caller] or frame_of[caller] in named)
        (asked if not inside[at] or is_first else left).add(frame)
    modules = {frames[one].module for one in asked if not ours[one]}
    asked |= {one for one in left if frames[one].module in modules}
    return {one for one in asked if not INTERPRETER.match(Path(frames[one].module).name)}


def _is_mpi(frame: SampledFrame) -> bool:
    return Path(frame.module).name.startswith(MPI_MODULES) and frame.kind == _core.ContextKind.native


class _Frames:
    """The sites of frames, those that aren't told as None. Cost: a reading of each module."""

    def __init__(self, frames: Sequence[SampledFrame], asked: Iterable[int]) -> None:
        self._frames = frames
        self._resolver = Resolver()
        self._resolver.add(_at(frames[one]) for one in asked if frames[one].kind == _core.ContextKind.native)
        self.notes = self._resolver.notes
        self._known: dict[int, tuple[Site | None, ...]] = {}

    def sites(self, number: int) -> tuple[Site | None, ...]:
        """Return what a frame stands for, the function that others are inlined in first."""
        if number not in self._known:
            self._known[number] = self._of(self._frames[number])
        return self._known[number]

    def _of(self, one: SampledFrame) -> tuple[Site | None, ...]:
        if one.kind == _core.ContextKind.cut:
            return (Site("(frames left out: too deep)", "", 0, "cut", is_own=False),)
        if one.kind == _core.ContextKind.lost:
            return (Site("(callers not known)", "", 0, "lost", is_own=False),)
        if one.kind == _core.ContextKind.region:
            return (Site(f"[{one.function}]", "", 0, "region", is_own=False),)
        if one.kind == _core.ContextKind.python:
            own = not _PYTHON_LIBRARY.search(one.module)
            # The loop of a comprehension is a part of its function.
            found = _COMPREHENSION.fullmatch(one.function)
            function = (found[1] or found[3]) if found else one.function
            return (Site(function, one.module, one.line, "python", is_own=own),)
        module = Path(one.module).name
        if module.startswith(OURS):
            return (Site(PALMETTE, "", 0, "mpi", is_own=False),)
        frame = _at(one)
        places = self._resolver.places(frame) if self._resolver.knows(frame) else ()
        if module.startswith(MPI_MODULES):
            named = next((found for place in places if (found := _MPI.fullmatch(place.function))), None)
            return (Site(named[1] if named else PALMETTE, "", 0, "mpi", is_own=False),)
        if INTERPRETER.match(module):
            return (None,)
        if not places:
            return (Site(f"{module or 'unknown'}", module, 0, "native", is_own=False),)
        return tuple(_native(place, module) for place in reversed(places))


def _native(place: Place, module: str) -> Site | None:
    if STARTS.fullmatch(place.function):
        return Site(place.function, module, 0, "start", is_own=False)
    if CYTHON.match(place.function):
        # The one among Cython's own functions which Python calls.
        name = cython_name(place.function)
        return None if CYTHON.match(name) else Site(name, module, 0, "native", is_own=False)
    if not place.line:
        return Site(place.function, module, 0, "native", is_own=False, loops=place.loops)
    own = not SYSTEM.match(module) and not _HEADERS.search(place.file)
    return Site(place.function, place.file, place.line, "native", own, place.loops if own else ())


def _at(one: SampledFrame) -> Frame:
    """Return a frame as return addresses are: looked up right before."""
    return Frame(one.module, one.build_id, one.offset + (1 if one.is_innermost else 0))
