"""What samples of a job say, as a document: how they were taken, the heaviest lines, the tree of calling contexts."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from palmette import _core
from palmette.record.contexts import ROOT, Contexts, Line
from palmette.record.merging import read_contexts
from palmette.record.reading import Job

MOST_LINES = 200
"""Lines, and functions, that a document has at most."""
MOST_CALLERS = 12
"""Callers of a function that are told, from the inside out."""
LEAST_SHARE = 0.005
"""The share of all processor time below which nodes of the tree are left out of documents."""


def contexts_of(job: Job) -> Contexts | None:
    """Return the calling contexts of a job; None where it has no samples. Raises _core.Error."""
    read = read_contexts(job)
    return Contexts(read.contexts, read.ranks) if read else None


def document(job: Job, contexts: Contexts) -> dict[str, Any]:
    """Return what is told of samples."""
    taken = [process.recorded.sampling for process in job.processes]
    samples = sum(one.samples for one in taken)
    incomplete = sum(one.incomplete for one in taken)
    outside, inside = contexts.by_rank_s
    computing_s = float(outside.sum())
    periods = [one.period_s for one in taken if one.period_s > 0]
    # Another way in some processes only: they took all their files, or SIGTRAP.
    by_events = all(one.by == _core.SampledBy.thread_event for one in taken if one.samples)
    whole_s = sum(thread.cpu_s for one in taken for thread in one.threads)
    return {
        "samples": samples, "rate_hz": 1 / max(periods) if periods else None,
        "by": "events" if by_events else "timers", "taken_hz": samples / whole_s if whole_s > 0 else None,
        "complete": 1 - incomplete / samples if samples else None, "lost": sum(one.lost for one in taken),
        "computing_s": computing_s, "in_mpi_s": float(inside.sum()),
        "lines": [_line(one, computing_s) for one in contexts.lines(MOST_LINES)],
        "functions": [
            {
                "function": site.function, "file": site.file or None, "kind": site.kind, "cpu_s": whole_s,
                "own_s": own_s,
            }
            for site, whole_s, own_s in contexts.functions()[:MOST_LINES]
        ],
        "tree": tree(contexts), "callers": callers(contexts),
    }  # fmt: skip


def _line(one: Line, whole_s: float) -> dict[str, Any]:
    return {
        "function": one.site.function, "place": str(one.site.place), "file": one.site.file or None,
        "line": one.site.line or None, "cpu_s": one.cpu_s, "share": one.cpu_s / whole_s if whole_s > 0 else 0.0,
        "least_s": one.least_s, "least_rank": one.least_rank, "most_s": one.most_s, "most_rank": one.most_rank,
    }  # fmt: skip


def tree(contexts: Contexts, least: float = LEAST_SHARE) -> list[dict[str, Any]]:
    """Return the nodes of the tree, each before what it calls, the heaviest callee first; times are seconds on a
    processor over all ranks, with what a node calls, but for `own_s`.
    """
    numbers, own_s, parents = contexts.statistics, contexts.own_s, contexts.node_parents
    hot = set(contexts.hot_path())
    lines: dict[int, set[int]] = defaultdict(set)
    for one, node in zip(contexts.sites, contexts.node_of_site, strict=True):
        while one.line:
            lines[node].add(one.line)
            if contexts.site_of_node[node].kind != "loop":
                break
            node = parents[node]
    rows = []
    for node, depth in nodes_of_tree(contexts, least):
        site = contexts.site_of_node[node]
        rows.append({
            "depth": depth, "function": site.function, "file": site.file or None, "lines": sorted(lines[node]),
            "kind": site.kind, "cpu_s": float(numbers.sum_s[node]), "own_s": float(own_s[node]),
            "mean_s": float(numbers.mean_s[node]), "deviation_s": float(numbers.deviation_s[node]),
            "least_s": float(numbers.least_s[node]), "least_rank": int(numbers.least_rank[node]),
            "most_s": float(numbers.most_s[node]), "most_rank": int(numbers.most_rank[node]), "is_hot": node in hot,
        })  # fmt: skip
    return rows


def nodes_of_tree(contexts: Contexts, least: float = LEAST_SHARE) -> list[tuple[int, int]]:
    """Return the nodes of the tree that are told, as `tree` orders them, and how deep each is."""
    sums, parents = contexts.statistics.sum_s, contexts.node_parents
    callees: dict[int, list[int]] = defaultdict(list)
    for node in range(1, len(parents)):
        if sums[node] >= least * sums[ROOT] > 0:
            callees[parents[node]].append(node)
    found = []
    left = [(node, 0) for node in sorted(callees[ROOT], key=lambda one: sums[one])]
    while left:
        node, depth = left.pop()
        found.append((node, depth))
        left += [(one, depth + 1) for one in sorted(callees[node], key=lambda one: sums[one])]
    return found


def callers(contexts: Contexts, least: float = LEAST_SHARE) -> list[dict[str, Any]]:
    """Return functions by their own time, over all ranks, each before those that call it, the heaviest caller first:
    the tree from the bottom up. Times are seconds on a processor of the function at depth 0.
    """
    own_s, parents = contexts.own_s, contexts.node_parents
    whole_s = float(own_s.sum())
    sums: list[float] = [0.0]
    nodes: list[int] = [ROOT]
    above: dict[tuple[int, str, str], int] = {}
    called: dict[int, list[int]] = defaultdict(list)
    for node in np.flatnonzero(own_s).tolist():
        at, one = 0, node
        for _ in range(MOST_CALLERS):
            if one == ROOT:
                break
            site = contexts.site_of_node[one]
            key = (at, site.function, site.file)
            if key not in above:
                above[key] = len(sums)
                called[at].append(len(sums))
                sums.append(0.0)
                nodes.append(one)
            at = above[key]
            sums[at] += float(own_s[node])
            one = parents[one]
    rows = []
    left = [(one, 0) for one in sorted(called[0], key=lambda one: sums[one])]
    while left:
        at, depth = left.pop()
        if sums[at] < least * whole_s:
            continue
        site = contexts.site_of_node[nodes[at]]
        rows.append({
            "depth": depth, "function": site.function, "file": site.file or None, "kind": site.kind, "cpu_s": sums[at],
        })  # fmt: skip
        left += [(one, depth + 1) for one in sorted(called[at], key=lambda one: sums[one])]
    return rows
