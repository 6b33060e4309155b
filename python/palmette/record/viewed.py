"""What the page shows of the calling contexts besides their sums: ranks one by one, and the source beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palmette.record.columns import packed
from palmette.record.contexts import CHUNK, Contexts
from palmette.record.reading import Job
from palmette.record.sampled import MOST_LINES, nodes_of_tree

MOST_COLUMNS = 128
"""Columns of the picture: more ranks share columns, which are means of them."""
BINS = 16
"""Bins of a histogram, from the least of all ranks to the most."""
LINES_AROUND = 6
"""Lines of source before and behind one in which time was spent."""
MOST_SOURCE_BYTES = 300_000
LONGEST_LINE = 160
MOST_FILE_BYTES = 4_000_000


def viewed(job: Job, contexts: Contexts) -> dict[str, Any]:
    """Return what palmette/record/page calls `viewed`. Cost: O(contexts x ranks), and a reading of each source."""
    nodes = np.array([node for node, _ in nodes_of_tree(contexts)], np.int64)
    functions = [(site.function, site.file) for site, _, _ in contexts.functions()[:MOST_LINES]]
    number = {key: at for at, key in enumerate(functions)}
    # The last number is of those that aren't told.
    of_site = np.array([number.get((one.function, one.file), len(functions)) for one in contexts.sites], np.int64)
    order = np.argsort(contexts.ranks, kind="stable")
    tree = _of_nodes(contexts, nodes)[order]
    own = contexts.by_process(of_site, len(functions) + 1)[order][:, : len(functions)]
    ranks = np.asarray(contexts.ranks)[order].tolist()
    edges = np.unique(np.linspace(0, len(ranks), min(len(ranks), MOST_COLUMNS) + 1).astype(int))
    return {
        "columns": [_name(ranks[begin:end]) for begin, end in pairwise(edges.tolist())],
        "bins": BINS, "tree": _by_rank(tree, edges), "functions": _by_rank(own, edges),
        "sources": _sources(job, contexts),
    }  # fmt: skip


def _of_nodes(contexts: Contexts, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return seconds by rank and chosen node, with what it calls."""
    ranks = len(contexts.ranks)
    step = max(1, CHUNK // len(contexts.node_parents))
    parts = [
        contexts.with_callees(contexts.by_node(range(first, min(first + step, ranks))))[:, nodes]
        for first in range(0, ranks, step)
    ]
    return np.concatenate(parts)


def _name(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"


def _by_rank(values: NDArray[np.float64], edges: NDArray[np.int64]) -> dict[str, Any]:
    """Return seconds by row and column of the picture, and by row how many ranks have how much."""
    widths = np.diff(edges)
    means = np.add.reduceat(values, edges[:-1], axis=0) / widths[:, None]
    low, high = values.min(axis=0), values.max(axis=0)
    at = (values - low) / np.where(high > low, high - low, 1.0) * BINS
    bins = np.minimum(at.astype(np.int64), BINS - 1)
    rows = np.arange(values.shape[1])
    counts = np.bincount((rows * BINS + bins).ravel(), minlength=values.shape[1] * BINS)
    return {
        "seconds": packed(means.T, "f4"), "histogram": packed(counts, "u4"), "least": packed(low, "f4"),
        "most": packed(high, "f4"),
    }  # fmt: skip


def _sources(job: Job, contexts: Contexts) -> list[dict[str, Any]]:
    """Return pieces of the sources that can be read here, of the lines in which most time was spent first."""
    begun_ns = min((one.recorded.begin_real_ns for one in job.processes), default=0)
    seconds: dict[tuple[str, int], float] = defaultdict(float)
    for one, inside_s in zip(contexts.sites, contexts.sites_s[1].tolist(), strict=True):
        if one.is_own and one.line:
            seconds[one.file, one.line] += inside_s
    wanted: dict[str, dict[int, float]] = defaultdict(dict)
    for (file, line), time_s in sorted(seconds.items(), key=lambda item: -item[1])[: 2 * MOST_LINES]:
        wanted[file][line] = time_s
    found: list[dict[str, Any]] = []
    left = MOST_SOURCE_BYTES
    for file, lines in wanted.items():
        text = _text(file)
        if text is None:
            continue
        for begin, end in _pieces(sorted(lines), len(text)):
            piece = [one[:LONGEST_LINE] for one in text[begin - 1 : end]]
            left -= sum(len(one) + 4 for one in piece)
            if left < 0:
                return found
            found.append({
                "file": file, "first": begin, "lines": piece,
                "seconds": {line: lines[line] for line in range(begin, end + 1) if line in lines},
                "is_newer": Path(file).stat().st_mtime_ns > begun_ns > 0,
            })  # fmt: skip
    return found


def _text(file: str) -> list[str] | None:
    """Return the lines of a source; None where it can't be read here."""
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > MOST_FILE_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return None


def _pieces(lines: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return what is around lines, first and last line of each piece."""
    found: list[tuple[int, int]] = []
    for line in lines:
        if line > count:
            continue
        begin, end = max(1, line - LINES_AROUND), min(count, line + LINES_AROUND)
        if found and begin <= found[-1][1] + 1:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found
