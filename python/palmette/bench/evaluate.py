"""From raw samples to results: a row of medians, ratios and verdicts per MPI, placement, collective and size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from palmette import _core
from palmette.bench.limits import network_limit
from palmette.bench.results import LOADED, Cell, Job, Limit, Run
from palmette.bench.settings import NONBLOCKING
from palmette.measure.statistics import Ratio, Summary, Times, compare_pairs, in_time, summarize

TRUSTED_FROM_S = 10e-3
TRUSTED_ABOVE_FLOOR = 5.0

MAX_LOADED_BOUND = 2.0
"""A loaded bound is used up to this multiple of the bound of the empty network."""

Key = tuple[str, str, str, int]
"""MPI, placement (with LOADED where traffic ran), collective, bytes."""


@dataclass(frozen=True)
class Row:
    """One cell of a benchmark, all repetitions together.

    `placement` ends in LOADED where background traffic ran. `floor_*_s`: medians with the lab's rates off.
    `left_out`: pairs that started too late, of `pairs`. `wrong`: a result was wrong, alone or with palmette, and the
    times are meaningless. `algorithm`: what palmette took, where it reported it. `hidden_alone`, `hidden_palmette`: of
    nonblocking calls, the share of their time that was overlapped with computation. `alone_loaded_multiple`,
    `palmette_loaded_multiple`: under background traffic, the median of each call's time over its loaded bound
    (loaded_bounds.py). `network_bound`: the bound where the topology's aggregators reduce on the way; `bound` is the
    hosts' alone. `own_clocks`: hosts have no common clock, so that calls run from a barrier on and times are a little
    low. `simulated`: `alone` is the best rival's time, which is called `rival`, and times are exact.
    """

    mpi: str
    mpi_version: str
    placement: str
    collective: str
    size_bytes: int
    alone: Summary
    palmette: Summary
    ratio: Ratio
    bound: Limit | None
    floor_alone_s: float | None
    floor_palmette_s: float | None
    pairs: int
    left_out: int
    wrong: bool
    algorithm: str | None
    hidden_alone: float | None = None
    hidden_palmette: float | None = None
    simulated: bool = False
    rival: str | None = None
    alone_loaded_multiple: float | None = None
    palmette_loaded_multiple: float | None = None
    network_bound: Limit | None = None
    own_clocks: bool = False

    @property
    def is_variant(self) -> bool:
        """Whether palmette had settings of its own (variants.py), for which no verdict of the run counts."""
        return "/" in self.mpi

    @property
    def network_multiple(self) -> float | None:
        """Time with palmette as a multiple of the bound where aggregators reduce on the way."""
        return self.palmette.median_s / self.network_bound.seconds if self.network_bound else None

    @property
    def loaded(self) -> bool:
        """Whether background traffic ran."""
        return self.placement.endswith(LOADED)

    @property
    def alone_multiple(self) -> float | None:
        """Time of the MPI alone as a multiple of the physical bound; under traffic see `in_bounds`."""
        return self.in_bounds(self.alone, self.alone_loaded_multiple)

    @property
    def palmette_multiple(self) -> float | None:
        """Time with palmette as a multiple of the physical bound; under traffic see `in_bounds`."""
        return self.in_bounds(self.palmette, self.palmette_loaded_multiple)

    def in_bounds(self, times: Summary, loaded: float | None) -> float | None:
        """Return the median as a multiple of the loaded bound, or of the empty network's bound where most of the bytes
        on the links were the traffic's.

        A long call lets the traffic fill the links, so full links justify a call's time only as long as the call had to
        move at least half of the bytes that they carried.
        """
        if self.bound is None:
            return None
        empty = times.median_s / self.bound.seconds
        return loaded if loaded is not None and empty <= MAX_LOADED_BOUND * loaded else empty

    @property
    def trusted(self) -> bool:
        """Whether both times are bound by the emulated links, not by the machine: at least 10 ms and 5 times the floor.

        A floor that wasn't measured doesn't count. Simulated times are always bound by the links; those of hosts with
        clocks of their own don't stand against a bound.
        """
        return self.simulated or (not self.own_clocks and self._takes_links_time())

    def _takes_links_time(self) -> bool:
        return all(
            time >= TRUSTED_FROM_S and (floor is None or time >= TRUSTED_ABOVE_FLOOR * floor)
            for time, floor in (
                (self.alone.median_s, self.floor_alone_s),
                (self.palmette.median_s, self.floor_palmette_s),
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "mpi": self.mpi,
            "mpi_version": self.mpi_version,
            "placement": self.placement.removesuffix(LOADED),
            "loaded": self.loaded,
            "collective": self.collective,
            "size_bytes": self.size_bytes,
            "alone": _summary(self.alone),
            "palmette": _summary(self.palmette),
            "ratio": self.ratio.value if math.isfinite(self.ratio.value) else None,
            "ratio_low": self.ratio.low,
            "ratio_high": self.ratio.high if math.isfinite(self.ratio.high) else None,
            "verdict": self.ratio.verdict,
            "bound_s": self.bound.seconds if self.bound else None,
            "bound_reason": self.bound.reason if self.bound else None,
            "alone_multiple": self.alone_multiple,
            "palmette_multiple": self.palmette_multiple,
            "network_bound_s": self.network_bound.seconds if self.network_bound else None,
            "network_bound_reason": self.network_bound.reason if self.network_bound else None,
            "network_multiple": self.network_multiple,
            "alone_beside_traffic": self.alone_loaded_multiple,
            "palmette_beside_traffic": self.palmette_loaded_multiple,
            "floor_alone_s": self.floor_alone_s,
            "floor_palmette_s": self.floor_palmette_s,
            "trusted": self.trusted,
            "pairs": self.pairs,
            "left_out": self.left_out,
            "wrong": self.wrong,
            "algorithm": self.algorithm,
            "hidden_alone": self.hidden_alone,
            "hidden_palmette": self.hidden_palmette,
        }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "median_s": summary.median_s,
        "low_quartile_s": summary.low_s,
        "high_quartile_s": summary.high_s,
        "samples": summary.count,
    }


def evaluate(run: Run) -> list[Row]:
    """Return the rows of a run: MPIs and placements, and collectives, in the order of their first measurement."""
    measured, floors = group(run.jobs, "measure"), group(run.jobs, "floor")
    bounds = network_bounds(run)
    own_clocks = run.settings.get("clock", "shared") != "shared"
    return [
        replace(
            _row(key, measured[key], [cell for _, cell in floors.get(key, [])]),
            network_bound=bounds.get(key[1:]),
            own_clocks=own_clocks,
        )
        for key in in_order(measured)
    ]


def network_bounds(run: Run) -> dict[tuple[str, str, int], Limit]:
    """Return the bounds where the topology's aggregators reduce on the way, by placement, collective and size.

    Without entries for what no aggregator serves, and for calls under traffic.
    """
    found: dict[tuple[str, str, int], Limit] = {}
    if run.topology is None:
        return found
    machine = _core.Machine.from_json(run.topology)
    jobs: dict[str, _core.Job] = {}
    for (_, placement, collective, size), cells in group(run.jobs, "measure").items():
        job, cell = cells[0]
        key = (placement, collective, size)
        if key in found or job.traffic or not job.hosts:
            continue
        if placement not in jobs:
            jobs[placement] = _core.Job.on_hosts(machine, job.hosts)
        if (limit := network_limit(jobs[placement], cell)) is not None:
            found[key] = limit
    return found


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Return keys grouped by MPI and placement, also where a run was resumed later."""
    keys = list(keys)
    series = {name: number for number, name in enumerate(dict.fromkeys(key[:2] for key in keys))}
    collectives = {name: number for number, name in enumerate(dict.fromkeys(key[2] for key in keys))}
    return sorted(keys, key=lambda key: (series[key[:2]], collectives[key[2]], key[3]))


def group(jobs: Iterable[Job], kind: str) -> dict[Key, list[tuple[Job, Cell]]]:
    """Return the cells of the jobs of a kind, repetitions together."""
    groups: dict[Key, list[tuple[Job, Cell]]] = {}
    for job in jobs:
        if job.kind == kind:
            for cell in job.cells:
                groups.setdefault((job.mpi, job.where, cell.collective, cell.size_bytes), []).append((job, cell))
    return groups


def usable_pairs(cell: Cell) -> tuple[Times, Times]:
    """Return the samples alone and with palmette of the pairs in which all ranks started in time."""
    good = _in_time(cell)
    return np.array(cell.alone_s, dtype=np.float64)[good], np.array(cell.palmette_s, dtype=np.float64)[good]


def _in_time(cell: Cell) -> npt.NDArray[np.bool_]:
    """Which pairs these are."""
    alone, palmette = np.array(cell.alone_s, dtype=np.float64), np.array(cell.palmette_s, dtype=np.float64)
    good: npt.NDArray[np.bool_] = in_time(alone, np.array(cell.alone_late_s))
    return good & in_time(palmette, np.array(cell.palmette_late_s))


def _loaded_multiple(cells: Sequence[Cell], *, palmette: bool) -> float | None:
    """The median time in loaded bounds, over the pairs in time (over all, where none was); None: no bounds."""
    multiples: list[float] = []
    good = [_in_time(cell) for cell in cells]
    any_good = any(one.any() for one in good)
    for cell, counts in zip(cells, good, strict=True):
        times = cell.palmette_s if palmette else cell.alone_s
        bounds = cell.palmette_bound_s if palmette else cell.alone_bound_s
        if len(bounds) == len(times):
            multiples += [
                time_s / bound_s
                for time_s, bound_s, count in zip(times, bounds, counts, strict=True)
                if bound_s is not None and (count or not any_good)
            ]
    return float(np.median(multiples)) if multiples else None


def _row(key: Key, found: list[tuple[Job, Cell]], floor: list[Cell]) -> Row:
    mpi, placement, collective, size = key
    pairs = [usable_pairs(cell) for _, cell in found]
    total = sum(len(cell.alone_s) for _, cell in found)
    usable = sum(alone.size for alone, _ in pairs)
    if usable == 0:
        # No pair started in time: show the times as they are, without a verdict.
        shown = [(np.array(cell.alone_s), np.array(cell.palmette_s)) for _, cell in found]
    else:
        shown = pairs
    job, cell = found[0]
    return Row(
        mpi=mpi,
        mpi_version=job.mpi_version,
        placement=placement,
        collective=collective,
        size_bytes=size,
        alone=summarize(np.concatenate([alone for alone, _ in shown])),
        palmette=summarize(np.concatenate([palmette for _, palmette in shown])),
        ratio=compare_pairs(pairs),
        bound=cell.bound,
        floor_alone_s=_median([one.alone_s for one in floor]),
        floor_palmette_s=_median([one.palmette_s for one in floor]),
        pairs=total,
        left_out=total - usable,
        wrong=any(one.wrong_alone or one.wrong_palmette for _, one in found),
        algorithm=algorithm_of(job, cell),
        hidden_alone=_median([[one.overlap.alone] for _, one in found if one.overlap]),
        hidden_palmette=_median([[one.overlap.palmette] for _, one in found if one.overlap]),
        alone_loaded_multiple=_loaded_multiple([one for _, one in found], palmette=False),
        palmette_loaded_multiple=_loaded_multiple([one for _, one in found], palmette=True),
    )


def _median(samples: list[list[float]]) -> float | None:
    flat = [value for values in samples for value in values]
    return float(np.median(flat)) if flat else None


def algorithm_of(job: Job, cell: Cell) -> str | None:
    """Return the algorithm of this collective and size by the preload's report: several where calls differ, `mpi` for
    none.
    """
    if job.report is None:
        return None
    sizes = cell.block_bytes or [cell.size_bytes]
    blocking = cell.collective not in NONBLOCKING
    function = cell.collective if blocking else cell.collective.removeprefix("i")
    served = {
        str(call.get("algorithm"))
        for call in job.report.get("calls", [])
        if call.get("function") == function
        and call.get("blocking", True) == blocking
        and _is_of(call, min(sizes), max(sizes))
    }
    return ", ".join(sorted(served)) or "mpi"


def _is_of(call: Mapping[str, Any], least: int, most: int) -> bool:
    """Whether a row of the report covers blocks of these lengths; -1 where ranks don't know each other's lengths."""
    longest = int(call.get("max_bytes", -1))
    return longest < 0 or (int(call.get("min_bytes", 0)) <= most and longest >= least)
