"""Measured cells made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palmette.tune.results import MPI, TABLE, CandidateTimes, Cell, CellResult


def measured(
    spec: str, times: Sequence[float], *, kept: bool = True, wrong: int = 0, late: float = 0.0
) -> CandidateTimes:
    served = spec not in (MPI, TABLE)
    return CandidateTimes(spec, served, kept, None, wrong, list(times), [late] * len(times))


def cell(times: Mapping[str, Sequence[float]], function: str = "allreduce", size: int = 1024) -> CellResult:
    return CellResult(Cell(function, size), [measured(spec, values) for spec, values in times.items()])
