"""Measured times of a call's algorithms, from the store of `palmette tune`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from palmette.explain.decision import CollectiveCall
from palmette.tune.decide import typical_s
from palmette.tune.store import StoredCandidate, open_tunings

SIZE_FACTOR = 2
"""Sizes that differ by at most this factor count as the same."""


@dataclass(frozen=True)
class MeasuredTime:
    """The median time of a candidate (`table`: the table's choice then, `mpi`: the MPI alone), with its provenance."""

    spec: str
    seconds: float
    rounds: int
    size_bytes: int
    mpi: str
    placement: str
    started: str


def figures(asked: CollectiveCall, store: Path) -> list[MeasuredTime]:
    """Return the times of the newest tuning of this function, MPI, number of ranks and similar size, fastest first.

    Empty where there is no store. Raises TuneError for a file that is none.
    """
    if not store.is_file():
        return []
    with open_tunings(store, create=False) as kept:
        found = [one for one in kept.candidates(asked.function) if _is_like(one, asked)]
    if not found:
        return []
    nearest = min({one.cell.size_bytes for one in found}, key=lambda size: abs(size - asked.size_bytes))
    newest = max(one.started for one in found if one.cell.size_bytes == nearest)
    best: dict[str, MeasuredTime] = {}
    for one in found:
        if one.cell.size_bytes != nearest or one.started != newest or one.measured.spec in best:
            continue
        best[one.measured.spec] = MeasuredTime(
            one.measured.spec, typical_s(one.measured), len(one.measured.time_s), nearest, one.mpi, one.placement,
            one.started,
        )  # fmt: skip
    return sorted(best.values(), key=lambda time: time.seconds)


def _is_like(one: StoredCandidate, asked: CollectiveCall) -> bool:
    size = one.cell.size_bytes
    near = size == asked.size_bytes or (
        size > 0 and asked.size_bytes / SIZE_FACTOR <= size <= asked.size_bytes * SIZE_FACTOR
    )
    right = one.measured.time_s and not one.measured.wrong_ranks
    return bool(right) and near and one.ranks == asked.job.size and asked.mpi in ("", one.mpi)
