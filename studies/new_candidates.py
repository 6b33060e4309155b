"""How often new candidates win by the model, and by how much.

Usage: new_candidates.py [--clusters N] [--seed N] [--most-ranks N] [--new COLLECTIVE=SPEC[;SPEC...] ...] [--json]

Draws clusters: one to six switches, even and uneven numbers of nodes, one to twelve ranks a node, Ethernet of
100 Mbit/s to networks of 12 GB/s, uplinks that are narrower or not, jobs on part of the ranks, three placements, sizes
from 64 B to 1 MB. On each, every candidate of `palmette plan --list` and every new one is simulated message by message
(`palmette predict`). For each new one: in how many cells it was possible, in how many it was the fastest of all, its
gain there over the fastest that isn't new (geometric mean, largest), and where the largest was. A candidate that never
wins by 5 % isn't worth the time of simulating it at a first call.

By default the new ones are those of circulant graphs and PAT. What of them is a candidate already doesn't count as old.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from palmette import _core

NEW = {
    "allgather": "circulant;bine;pat;leaders:between=circulant;leaders:between=bine;leaders:between=pat;"
    "leaders:leaders=2,between=pat;leaders:leaders=4,between=pat,inside=binomial",
    "bcast": "scatter_allgather:allgather=circulant;scatter_allgather:allgather=pat",
    "reduce": "circulant;circulant:segment=2K;circulant:segment=4K,window=1;circulant:segments=1",
    "allreduce": "circulant;pat;leaders:between=circulant;leaders:between=pat;"
    "leaders:leaders=all,between=circulant,inside=shared;leaders:leaders=all,between=pat,inside=shared;"
    "leaders:leaders=all,between=pat,inside=linear;leaders:leaders=2,between=pat,level=leaf",
    "reduce_scatter": "circulant;pat;leaders:between=circulant;leaders:between=pat;"
    "leaders:leaders=all,between=pat,inside=shared",
}
SIZES = (64, 512, 4096, 16384, 65536, 262144, 1048576)
ENOUGH = 1.05
"""A gain from here on counts as a win."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A job on a cluster in the synthetic form, and what it calls."""

    machine: str
    placement: str
    ranks: int
    collective: str
    size: int


@dataclass(slots=True)
class Tally:
    """What became of one new candidate."""

    possible: int = 0
    fastest: int = 0
    gains: list[tuple[float, Cell]] = field(default_factory=list)


def draw(seed: int, clusters: int, most_ranks: int) -> Iterator[tuple[str, str, int]]:
    """Yield machine, placement and number of ranks."""
    chance = random.Random(seed)  # noqa: S311
    for _ in range(clusters):
        rate, latency = chance.choice([("100Mbit/s", 100), ("1Gbit/s", 30), ("10Gbit/s", 10), ("12GB/s", 2)])
        number = float(rate.rstrip("GMbit/sB"))
        unit = rate[len(f"{number:g}") :]
        cores = chance.choice([1, 1, 2, 3, 4, 8, 12])
        leaves = chance.choice([1, 1, 2, 3, 4, 5, 6])
        most = max(1, most_ranks // cores // leaves)
        nodes = [chance.randint(1, most) for _ in range(leaves)]
        if chance.random() < 0.5:
            nodes = [max(nodes)]
        counts = "+".join(map(str, nodes))
        narrow = chance.choice([0.5, 1, 2, 4])
        machine = f"{counts}node@{rate}~{latency}us:{cores}core"
        places = sum(nodes) * cores
        if leaves > 1:
            machine = f"{leaves}leaf@{number * narrow:g}{unit}~{latency}us:{machine}"
            places *= leaves if len(nodes) == 1 else 1
        ranks = places if chance.random() < 0.6 else chance.randint(max(2, places // 2), max(2, places))
        if 2 < ranks <= places:
            yield machine, chance.choice(["block", "cyclic", f"random:{chance.randint(1, 99)}"]), ranks


def seconds(job: _core.Job, cell: Cell, spec: str, costs: _core.Costs, shared: bool) -> float:
    """Return the time of a plan by simulation; infinite where the algorithm refuses."""
    options: dict[str, Any] = {
        "shared_memory": shared,
        "element_bytes": 8 if _core.is_reduction(cell.collective) else 1,
    }
    if _core.refusal(job, cell.collective, spec, 0, cell.size, **options) is not None:
        return math.inf
    return _core.predict_algorithm(job, cell.collective, spec, costs, 0, cell.size, **options).seconds


def compare(cell: Cell, new: list[str], tallies: dict[str, Tally]) -> None:
    """Simulate one cell, and count who was fastest."""
    job = _core.Job(_core.Machine.synthetic(cell.machine), cell.placement, cell.ranks)
    costs = _core.Costs.of(job)
    old = [spec for spec in _core.candidates(cell.collective) if spec not in new]
    best = min(seconds(job, cell, spec, costs, "shared" in spec) for spec in old)
    times = {spec: seconds(job, cell, spec, costs, "shared" in spec) for spec in new}
    for spec, time in times.items():
        if time < math.inf:
            tally = tallies[spec]
            tally.possible += 1
            tally.fastest += time == min(times.values()) and time < best
            if best / time >= ENOUGH:
                tally.gains.append((best / time, cell))


def main() -> None:
    """Draw, simulate, print."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-ranks", type=int, default=64)
    parser.add_argument("--new", nargs="*", default=[f"{name}={specs}" for name, specs in NEW.items()])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    for collective, _, text in (item.partition("=") for item in asked.new):
        new = text.split(";")
        tallies = {spec: Tally() for spec in new}
        cells = 0
        for machine, placement, ranks in draw(asked.seed, asked.clusters, asked.most_ranks):
            for size in SIZES:
                block = size // ranks if collective in {"allgather", "reduce_scatter"} else size
                if block < 8:
                    continue
                cells += 1
                compare(Cell(machine, placement, ranks, collective, block // 8 * 8), new, tallies)
        for spec, tally in tallies.items():
            most, where = max(tally.gains, default=(0.0, None), key=lambda gain: gain[0])
            mean = math.exp(sum(math.log(gain) for gain, _ in tally.gains) / max(1, len(tally.gains)))
            rows[f"{collective} {spec}"] = {
                "cells": cells,
                "possible": tally.possible,
                "fastest": tally.fastest,
                "gains": len(tally.gains),
                "mean": mean,
                "most": most,
                "where": where and f"{where.size} B, {where.ranks} ranks of {where.machine}, {where.placement}",
            }
        print(f"{collective}: {cells} cells", file=sys.stderr, flush=True)
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':58}{'cells':>6}{'first':>6}{'5 %':>6}{'mean':>6}{'most':>6}")
    for name, row in rows.items():
        print(f"{name:58}{row['possible']:6}{row['fastest']:6}{row['gains']:6}{row['mean']:6.2f}{row['most']:6.2f}")
        if row["where"]:
            print(f"    {row['where']}")


if __name__ == "__main__":
    main()
