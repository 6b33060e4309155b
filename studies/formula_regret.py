"""How good the choice by closed formulas is: what it chooses, beside the best candidate by simulation.

Usage: formula_regret.py [--clusters N] [--seeds N,N] [--most-ranks N] [--collectives A,B] [--json]

Draws clusters: one to six switches, even and uneven numbers of nodes, one to twelve ranks a node, Ethernet of
100 Mbit/s to networks of 12 GB/s, uplinks that are narrower or not, jobs on part of the ranks, three placements;
512 B, 16 KB and 256 KB (of the vector, or of all blocks together). On each, every candidate of `palmette plan --list`
is simulated message by message (`palmette predict`); regret is the time of the one that the formulas choose by that of
the fastest. Below a collective the worst pairs: chosen, fastest, and by how much the formulas were off in the first of
these cells (estimate by simulation). Cost: about a minute of a core for 100 cells.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from palmette import _core

COLLECTIVES = ("allreduce", "reduce", "bcast", "reduce_scatter", "allgather", "alltoall", "gather", "scatter")
OF_BLOCKS = ("reduce_scatter", "allgather", "alltoall", "gather", "scatter")
SIZES = (512, 16384, 262144)
PAIRS = 4
"""Pairs of algorithms that are shown of a collective."""
MIN_REGRET = 1.1
"""A regret from here on is one of them."""


@dataclass(frozen=True, slots=True)
class Regret:
    """One cell."""

    factor: float
    chosen: str
    fastest: str
    chosen_off: float
    """The estimate by the simulated time."""
    fastest_off: float | None
    """None: there is no formula."""
    where: str


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


def regret(job: _core.Job, costs: _core.Costs, collective: str, size: int, where: str) -> Regret | None:
    """Simulate all candidates of a call. None: no formula applies."""
    options: dict[str, Any] = {"element_bytes": 8 if _core.is_reduction(collective) else 1}
    estimated, simulated = {}, {}
    for spec in _core.candidates(collective):
        options["shared_memory"] = "shared" in spec
        if _core.refusal(job, collective, spec, 0, size, **options) is not None:
            continue
        simulated[spec] = _core.predict_algorithm(job, collective, spec, costs, 0, size, **options).seconds
        estimate = _core.estimate(job, collective, spec, costs, 0, size, **options)
        if estimate is not None:
            estimated[spec] = estimate
    if not estimated:
        return None
    chosen, fastest = min(estimated, key=estimated.__getitem__), min(simulated, key=simulated.__getitem__)
    return Regret(
        simulated[chosen] / simulated[fastest],
        chosen,
        fastest,
        estimated[chosen] / simulated[chosen],
        estimated[fastest] / simulated[fastest] if fastest in estimated else None,
        f"{size} B, {where}",
    )


def mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def summary(found: list[Regret]) -> dict[str, Any]:
    """Return what is said of a collective."""
    pairs = defaultdict(list)
    for one in found:
        if one.factor >= MIN_REGRET:
            pairs[one.chosen, one.fastest].append(one)
    worst = sorted(pairs.items(), key=lambda item: -sum(math.log(one.factor) for one in item[1]))
    factors = [one.factor for one in found]
    return {
        "cells": len(found),
        "mean": mean(factors),
        "within_1.2": sum(factor <= 1.2 for factor in factors),
        "worst": max(factors),
        "pairs": [
            {
                "cells": len(ones), "mean": mean([one.factor for one in ones]), "chosen": chosen, "fastest": fastest,
                "chosen_off": ones[0].chosen_off, "fastest_off": ones[0].fastest_off, "where": ones[0].where,
            }
            for (chosen, fastest), ones in worst[:PAIRS]
        ],
    }  # fmt: skip


def main() -> None:
    """Draw, simulate, print."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=22)
    parser.add_argument("--seeds", default="31,32")
    parser.add_argument("--most-ranks", type=int, default=160)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, list[Regret]] = {name: [] for name in asked.collectives.split(",")}
    for seed in map(int, asked.seeds.split(",")):
        for machine, placement, ranks in draw(seed, asked.clusters, asked.most_ranks):
            job = _core.Job(_core.Machine.synthetic(machine), placement, ranks)
            costs = _core.Costs.of(job)
            for collective, ones in found.items():
                for size in SIZES:
                    block = size // ranks // 8 * 8 if collective in OF_BLOCKS else size
                    where = f"{ranks} ranks of {machine}, {placement}"
                    if block >= 8 and (one := regret(job, costs, collective, block, where)):
                        ones.append(one)
    summaries = {name: summary(ones) for name, ones in found.items() if ones}
    if asked.json:
        print(json.dumps(summaries, indent=1))
        return
    for name, row in summaries.items():
        print(
            f"{name:<16}{row['cells']:4} cells, mean {row['mean']:.3f}, {row['within_1.2']} within 1.2, "
            f"worst {row['worst']:.2f}"
        )
        for pair in row["pairs"]:
            off = "-" if pair["fastest_off"] is None else f"{pair['fastest_off']:.2f}"
            print(f"  {pair['cells']:3} {pair['mean']:.2f}  {pair['chosen']} ({pair['chosen_off']:.2f}) for")
            print(f"            {pair['fastest']} ({off}), {pair['where']}")


if __name__ == "__main__":
    main()
