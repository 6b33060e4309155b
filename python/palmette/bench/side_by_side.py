"""Several MPIs side by side: palmette's speed relative to the fastest of them.

Within one job, calls of the MPI alone and with palmette alternate. Jobs of different MPIs alternate as well, a round of
each (`--repeat`); a time is the median over the rounds of each round's median.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palmette.bench.evaluate import group, network_bounds, usable_pairs
from palmette.bench.results import Cell, Run


@dataclass(frozen=True)
class SideCell:
    """One collective and size at one placement: seconds by MPI, of those that measured it with right results.

    `rivals_s`: of rivals, which are listed separately and don't count as the fastest MPI that palmette's speed is
    relative to. `variants_s`: of palmette with settings of its own, on the MPI under which it is the fastest.
    `bound_s`: the physical bound of the hosts alone, None where the wiring isn't known; `network_bound_s`: where
    aggregators reduce on the way.
    """

    placement: str
    collective: str
    size_bytes: int
    alone_s: dict[str, float]
    palmette_s: dict[str, float]
    rivals_s: dict[str, float] = field(default_factory=dict)
    bound_s: float | None = None
    variants_s: dict[str, float] = field(default_factory=dict)
    network_bound_s: float | None = None

    @property
    def network_multiple(self) -> float | None:
        """The fastest time with palmette, variants included, as a multiple of the bound with aggregators."""
        if self.network_bound_s is None:
            return None
        return min([*self.palmette_s.values(), *self.variants_s.values()]) / self.network_bound_s

    @property
    def multiple(self) -> float | None:
        """Time with palmette under its best MPI, as a multiple of the physical bound."""
        return min(self.palmette_s.values()) / self.bound_s if self.bound_s else None

    @property
    def fastest(self) -> str:
        """The MPI that is the fastest by itself."""
        return min(self.alone_s, key=lambda mpi: self.alone_s[mpi])

    def speed(self, mpi: str) -> float:
        """Speed of palmette under one MPI relative to the fastest MPI alone: 1 is as fast, 2 twice as fast."""
        return self.alone_s[self.fastest] / self.palmette_s[mpi]

    @property
    def best_speed(self) -> float:
        """Speed of palmette under the MPI under which it is the fastest, relative to the fastest MPI alone."""
        return max(self.speed(mpi) for mpi in self.palmette_s)

    def speed_to_rival(self, rival: str) -> float:
        """Speed of palmette under its best MPI relative to a rival."""
        return self.rivals_s[rival] / min(self.palmette_s.values())

    def to_json(self) -> dict[str, Any]:
        """Return the cell as JSON values."""
        return {
            "placement": self.placement,
            "collective": self.collective,
            "size_bytes": self.size_bytes,
            "alone_s": self.alone_s,
            "palmette_s": self.palmette_s,
            "fastest": self.fastest,
            "speed": {mpi: self.speed(mpi) for mpi in self.palmette_s},
            "best_speed": self.best_speed,
            "rivals_s": self.rivals_s,
            "speed_to_rivals": {rival: self.speed_to_rival(rival) for rival in self.rivals_s},
            "bound_s": self.bound_s,
            "multiple": self.multiple,
            "variants_s": self.variants_s,
            "network_bound_s": self.network_bound_s,
            "network_multiple": self.network_multiple,
        }


@dataclass(frozen=True)
class MeanSpeed:
    """Geometric means over the sizes of a collective at one placement; `lowest` is the slowest size under the best MPI.

    `to_rivals`: of the best palmette to each rival.
    """

    placement: str
    collective: str
    by_mpi: dict[str, float]
    best: float
    lowest: SideCell
    to_rivals: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the means as JSON values."""
        return {
            "placement": self.placement,
            "collective": self.collective,
            "mean_speed": self.by_mpi,
            "best": self.best,
            "to_rivals": self.to_rivals,
            "lowest": {"size_bytes": self.lowest.size_bytes, "speed": self.lowest.best_speed},
        }


def side_cells(run: Run) -> list[SideCell]:
    """Return the cells that two MPIs or more have measured, rivals and variants among them, in the order of placement,
    collective and size.
    """
    found: dict[tuple[str, str, int], tuple[dict[str, float], dict[str, float]]] = {}
    bounds: dict[tuple[str, str, int], float] = {}
    variants: dict[tuple[str, str, int], dict[str, float]] = {}
    for (mpi, placement, collective, size), cells in group(run.jobs, "measure").items():
        if "/" in mpi:
            if not any(cell.wrong_alone or cell.wrong_palmette for _, cell in cells):
                times = variants.setdefault((placement, collective, size), {})
                name, seconds = mpi.partition("/")[2], _median_of_rounds(cell for _, cell in cells)[1]
                times[name] = min(seconds, times.get(name, seconds))
            continue
        alone_s, palmette_s = found.setdefault((placement, collective, size), ({}, {}))
        if any(cell.wrong_alone or cell.wrong_palmette for _, cell in cells):
            continue
        alone_s[mpi], palmette_s[mpi] = _median_of_rounds(cell for _, cell in cells)
        if (limit := cells[0][1].bound) is not None and limit.seconds > 0:
            bounds[placement, collective, size] = limit.seconds
    rivals: dict[tuple[str, str, int], dict[str, float]] = {}
    for (rival, placement, collective, size), cells in group(run.jobs, "rival").items():
        if not any(cell.wrong_alone for _, cell in cells):
            rivals.setdefault((placement, collective, size), {})[rival] = _median_of_rounds(cell for _, cell in cells)[
                0
            ]
    placements = {name: number for number, name in enumerate(dict.fromkeys(key[0] for key in found))}
    collectives = {name: number for number, name in enumerate(dict.fromkeys(key[1] for key in found))}
    network = network_bounds(run)
    compared = [
        SideCell(
            *key,
            *times,
            rivals.get(key, {}),
            bounds.get(key),
            variants.get(key, {}),
            network[key].seconds if key in network else None,
        )
        for key, times in sorted(
            found.items(), key=lambda one: (placements[one[0][0]], collectives[one[0][1]], one[0][2])
        )
    ]
    return [one for one in compared if one.alone_s and len(one.alone_s) + len(one.rivals_s) + len(one.variants_s) > 1]


def _median_of_rounds(cells: Iterable[Cell]) -> tuple[float, float]:
    rounds = []
    for cell in cells:
        alone, palmette = usable_pairs(cell)
        if alone.size == 0:  # no pair started in time: use all
            alone, palmette = np.array(cell.alone_s), np.array(cell.palmette_s)
        rounds.append((np.median(alone), np.median(palmette)))
    alone_s, palmette_s = np.median(np.array(rounds), axis=0)
    return float(alone_s), float(palmette_s)


def mean_speeds(cells: Sequence[SideCell]) -> list[MeanSpeed]:
    """Return the geometric means by placement and collective, in the order of the cells."""
    result = []
    for placement, collective in dict.fromkeys((cell.placement, cell.collective) for cell in cells):
        mine = [cell for cell in cells if (cell.placement, cell.collective) == (placement, collective)]
        everywhere = [mpi for mpi in mine[0].palmette_s if all(mpi in cell.palmette_s for cell in mine)]
        result.append(
            MeanSpeed(
                placement,
                collective,
                {mpi: geometric_mean([cell.speed(mpi) for cell in mine]) for mpi in everywhere},
                geometric_mean([cell.best_speed for cell in mine]),
                min(mine, key=lambda cell: cell.best_speed),
                {
                    rival: geometric_mean([cell.speed_to_rival(rival) for cell in mine])
                    for rival in mine[0].rivals_s
                    if all(rival in cell.rivals_s for cell in mine)
                },
            )
        )
    return result


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers, one at least."""
    return math.exp(sum(map(math.log, values)) / len(values))
