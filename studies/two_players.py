"""Cost and results of the two players of plans: `predict` (each edge shares evenly by itself) and `flow` (max-min
fair).

    python studies/two_players.py [--ranks N] [--json]

All algorithms that the model decides among, blocks of 1 KB to 1 MB, on a tree of two levels with ranks in blocks and
scattered. Seconds are this process's CPU time for one call. docs/decisions/0019 draws on it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from statistics import geometric_mean, median

from palmette import _core

COLLECTIVES = ("bcast", "gather", "allgather", "allreduce", "alltoall", "reduce_scatter")
SIZES = (1024, 65536, 1048576)
MACHINES = {
    64: "4leaf@12.5GB/s~2us:16node@12.5GB/s~1us:1core",  # one rank a node: no messages within nodes
    128: "4leaf@12.5GB/s~2us:4node@12.5GB/s~1us:8core",
    512: "8leaf@12.5GB/s~2us:8node@12.5GB/s~1us:8core",
}


LEVELS = {
    "leaf": {"latency_s": 2.4e-6, "overhead_s": 3e-7, "stream_bytes_per_s": 12e9},
    "node": {"latency_s": 2.0e-6, "overhead_s": 3e-7, "stream_bytes_per_s": 12e9},
    "core": {"latency_s": 0.5e-6, "overhead_s": 2e-7, "stream_bytes_per_s": 5e9},
}
MEMORY = {"copy_bytes_per_s": 5e9, "reduce_bytes_per_s": 2.5e9, "source": "calibrated"}
"""The model's own defaults, given: so that both players use the same costs and differ in how they simulate."""


def calibrated(spec: str) -> _core.Machine:
    """Return the machine of a synthetic form with all costs given."""
    document = _core.Machine.synthetic(spec).to_json()
    for level in document["levels"]:
        level |= LEVELS[level["name"]] | {"source": "calibrated"}
    return _core.Machine.from_json(document | {"memory": MEMORY})


@dataclass
class Played:
    """One plan by both players: what they say, and what it took to find out."""

    collective: str
    algorithm: str
    placement: str
    size_bytes: int
    messages: int
    predict_s: float
    flow_s: float
    predict_cpu_s: float
    flow_cpu_s: float


def play(job: _core.Job, placement: str, collective: str, algorithm: str, size: int) -> Played:
    """Play one plan by both."""
    plan = _core.Plan(job, collective, algorithm, block_bytes=size)
    costs = _core.Costs.of(job)
    start = time.process_time()
    predicted = _core.predict(plan, size, costs)
    between = time.process_time()
    flowed = _core.flow(plan, size)
    end = time.process_time()
    return Played(
        collective, algorithm, placement, size, flowed.messages, predicted.seconds, flowed.seconds,
        between - start, end - between,
    )  # fmt: skip


def inversions(rows: list[Played]) -> tuple[int, int]:
    """Return pairs of algorithms of one cell that the players rank differently by over 10 %, and pairs in all."""
    cells: dict[tuple[str, str, int], list[Played]] = {}
    for row in rows:
        cells.setdefault((row.collective, row.placement, row.size_bytes), []).append(row)
    different = pairs = 0
    for cell in cells.values():
        for i, one in enumerate(cell):
            for other in cell[i + 1 :]:
                pairs += 1
                by_predict, by_flow = one.predict_s / other.predict_s, one.flow_s / other.flow_s
                apart = max(by_predict, 1 / by_predict) > 1.1 and max(by_flow, 1 / by_flow) > 1.1
                different += apart and (by_predict > 1) != (by_flow > 1)
    return different, pairs


def main() -> int:
    """Play all and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, choices=sorted(MACHINES), default=128)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = []
    for placement in ("block", "random:1"):
        job = _core.Job(calibrated(MACHINES[asked.ranks]), placement)
        for collective in COLLECTIVES:
            for algorithm in _core.candidates(collective):
                for size in SIZES:
                    try:
                        rows.append(play(job, placement, collective, algorithm, size))
                    except _core.Error:  # an algorithm that isn't for this job
                        continue
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return 0
    ratios = [row.flow_s / row.predict_s for row in rows]
    costs = [row.flow_cpu_s / row.predict_cpu_s for row in rows if row.predict_cpu_s > 1e-5]
    different, pairs = inversions(rows)
    within = sum(abs(ratio - 1) <= 0.1 for ratio in ratios)
    print(f"{len(rows)} plans of {asked.ranks} ranks, {sum(row.messages for row in rows):,} messages")
    print(
        f"flow over predict, seconds told: {min(ratios):.2f} to {max(ratios):.2f}, geometric mean "
        f"{geometric_mean(ratios):.2f}; within 10 %: {within}"
    )
    print(
        f"flow over predict, CPU time: {min(costs):.1f} to {max(costs):.1f}, median {median(costs):.1f}; in all "
        f"{sum(row.flow_cpu_s for row in rows):.1f} s and {sum(row.predict_cpu_s for row in rows):.1f} s"
    )
    print(f"pairs of algorithms in another order, both by over 10 %: {different} of {pairs}")
    by_collective = {name: [row for row in rows if row.collective == name] for name in COLLECTIVES}
    for name, some in by_collective.items():
        told = [row.flow_s / row.predict_s for row in some]
        print(
            f"  {name:15} {len(some):4} plans, seconds {min(told):.2f} to {max(told):.2f}, CPU time "
            f"{sum(row.flow_cpu_s for row in some) / sum(row.predict_cpu_s for row in some):.1f} times"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
