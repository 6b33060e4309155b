"""Generalisation of a choice to other jobs on the same machine, by the model.

Numbers of nodes are halved and doubled from the measured one. The row holds as long as the model predicts the
choice within 10 % of the best of the measured ones, and for the range of switches of the jobs that were predicted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from palmette import _core
from palmette.tune.forecast import predictor
from palmette.tune.results import Cell

NEAR_RATIO = 1.10
MOST_RANKS = 1 << 16
"""Most ranks of jobs that rows are generalised to."""


@dataclass(frozen=True)
class Range:
    """Numbers of ranks, nodes and switches for which a row holds."""

    min_ranks: int
    max_ranks: int
    min_nodes: int
    max_nodes: int
    min_switches: int
    max_switches: int


def own_range(job: _core.Job) -> Range:
    """Return the range of the job itself."""
    nodes, switches = _nodes(job), _core.switch_count(job)
    return Range(job.size, job.size, nodes, nodes, switches, switches)


def holds_for(machine: _core.Machine | None, job: _core.Job, cell: Cell, spec: str, rivals: Sequence[str]) -> Range:
    """Return for which jobs `spec` stays the choice among `rivals`, the measured job's own size among them.

    Without a machine, or with a rival that no model predicts (the MPI alone), the measured size is all that is known.
    """
    own = own_range(job)
    if machine is None or spec in ("mpi", "table") or cell.root != 0:
        return own
    nodes, ppn = own.min_nodes, max(1, job.size // own.min_nodes)
    low = high = nodes
    switches = {own.min_switches}
    scattered = _core.is_scattered(job)
    for counts in (_smaller(nodes), _larger(nodes, len(machine.hosts), ppn)):
        for count in counts:
            try:
                other = job_of(machine, count, ppn, scattered=scattered)
                if not _still_best(other, cell, spec, rivals):
                    break
            except _core.Error:
                break
            low, high = min(low, count), max(high, count)
            switches.add(_core.switch_count(other))
    if low == high:
        return own
    least, most = min(own.min_ranks, low * ppn), max(own.max_ranks, high * ppn)
    return Range(least, most, low, high, min(switches), max(switches))


def job_of(machine: _core.Machine, nodes: int, ppn: int, *, scattered: bool) -> _core.Job:
    """Return a job on the machine's first nodes; scattered ranks in an order that is the same every time.

    Raises _core.Error.
    """
    hosts = [host for host in machine.hosts[:nodes] for _ in range(ppn)]
    if scattered:
        random.Random(nodes).shuffle(hosts)  # noqa: S311 - no secret
    return _core.Job.on_hosts(machine, hosts)


def _still_best(job: _core.Job, cell: Cell, spec: str, rivals: Sequence[str]) -> bool:
    predict = predictor(job)
    mine = predict(spec, cell)
    others = [seconds for rival in rivals if (seconds := predict(rival, cell)) is not None]
    return mine is not None and bool(others) and mine <= NEAR_RATIO * min(others)


def _nodes(job: _core.Job) -> int:
    level = job.level("node")
    return level.count if level is not None else 1


def _smaller(nodes: int) -> list[int]:
    found = []
    while nodes > 3:
        nodes //= 2
        found.append(nodes)
    return found


def _larger(nodes: int, most: int, ppn: int) -> list[int]:
    found = []
    while nodes < most and nodes * ppn < MOST_RANKS:
        nodes = min(2 * nodes, most, MOST_RANKS // ppn)
        found.append(nodes)
    return found
