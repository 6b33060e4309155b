"""Named benchmark sets: what to measure, where, and the targets to meet. One command makes each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from palmette.bench.results import Run
from palmette.bench.rivals import PRESETS
from palmette.bench.settings import BLOCKING
from palmette.bench.targets import Outcome, Target, outcomes

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
"""8 hosts of 2 ranks behind 3 leaf switches: uplinks are the bottleneck, and groups are uneven."""

K = 1024


@dataclass(frozen=True)
class BenchSet:
    """A benchmark by name. `settings` are fields of Settings; all installed MPIs are measured.

    `lab` and `spine_delay_s` name an emulated cluster, `local_ranks` ranks of this machine. `side_by_side`: show the
    MPIs side by side and not one after the other.
    """

    name: str
    sentence: str
    settings: dict[str, Any]
    targets: tuple[Target, ...]
    lab: str | None = None
    spine_delay_s: float | None = None
    local_ranks: int | None = None
    side_by_side: bool = False


_PEERS = ("bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
"""Collectives that in-network reduction or multicast would help: without it, links allow 1.5 bounds in practice."""

_OTHERS = tuple(name for name in BLOCKING if name not in _PEERS and name != "barrier")
_SCATTERED = ("random:1",)

_CHOOSE = {
    "collectives": BLOCKING,
    "sizes": (64, K, 16 * K, 256 * K, 1024 * K),
    "placements": ("block", "cyclic", "random:1"),
    "seconds": 1.0,
    "budget_s": 3600.0,
    "rivals": (PRESETS["mpich-topology"],),
}
_CHOICES = (
    Target("gain_or_bound", 1.5, _PEERS, placements=_SCATTERED, min_bytes=16 * K, gain=1.5),
    Target("gain_or_bound", 1.2, _OTHERS, placements=_SCATTERED, min_bytes=16 * K, gain=1.5),
    Target("alone", 1.05),
)

SETS: dict[str, BenchSet] = {
    one.name: one
    for one in (
        BenchSet(
            name="lab-large",
            sentence="Lab of 8 x 2 scattered ranks, 4K to 256K, against the physical bound.",
            settings={
                "collectives": BLOCKING,
                "sizes": (4 * K, 16 * K, 64 * K, 256 * K),
                "placements": ("random:1",),
            },
            targets=(
                Target("bound", 1.5, ("bcast", "reduce", "allreduce"), (256 * K,)),
                Target("bound", 2.0, ("bcast", "reduce", "allreduce"), (64 * K,)),
                # The same vectors: 16 blocks of 16K and of 4K.
                Target("bound", 1.5, ("reduce_scatter", "reduce_scatter_block"), (16 * K,)),
                Target("bound", 2.0, ("reduce_scatter", "reduce_scatter_block"), (4 * K,)),
                Target("bound", 1.1, ("alltoall",), (16 * K, 256 * K)),
                Target("alone", 1.05),
            ),
            lab=LAB,
        ),
        BenchSet(
            name="lab-small-spine",
            sentence="The same lab with 5 ms through the spine, 8 B to 1K, against the fastest MPI.",
            settings={
                "collectives": BLOCKING,
                "sizes": (8, 64, 256, K),
                "placements": ("random:1",),
                "repeat": 2,
                "seconds": 1.0,
            },
            targets=(Target("fastest", 1.05), Target("alone", 1.05)),
            lab=LAB,
            spine_delay_s=5e-3,
            side_by_side=True,
        ),
        BenchSet(
            name="lab-fat",
            sentence="2 hosts of 8 ranks, 2 Gbit/s, 8 B to 1M: no cell slower than the MPI alone.",
            settings={
                "collectives": BLOCKING,
                "sizes": (8, K, 32 * K, 1024 * K),
                "placements": ("block",),
                "seconds": 0.5,
            },
            targets=(Target("alone", 1.02),),
            lab="1leaf:2node@2Gbit/s:8core",
        ),
        BenchSet(
            name="one-node",
            sentence="2 ranks on 2 cores of this node, 8 B to 4M, in 5 rounds, against the fastest MPI.",
            settings={
                "collectives": BLOCKING,
                "sizes": (8, 64, 512, 4 * K, 32 * K, 256 * K, 1024 * K, 4096 * K),
                "placements": ("block",),
                "repeat": 5,
                "seconds": 0.1,
                "pass_through": True,
            },
            targets=(
                Target("mean_speed", 1.0),
                Target("fastest", 1.1, ("allreduce",), (8,)),
                Target("pass_through", 15.0),
            ),
            local_ranks=2,
            side_by_side=True,
        ),
        BenchSet(
            name="nonblocking",
            sentence="Nonblocking calls on the lab: time, and how much of it computation hides.",
            settings={
                "collectives": ("iallgather", "ibcast", "iallreduce", "ialltoall"),
                "sizes": (K, 16 * K, 64 * K),
                "placements": ("random:1",),
            },
            targets=(Target("alone", 1.05),),
            lab=LAB,
        ),
        BenchSet(
            name="choose",
            sentence="The lab, all placements, 64 B to 1M, all blocking collectives, in about an hour (--budget).",
            settings=_CHOOSE,
            targets=_CHOICES,
            lab=LAB,
        ),
        BenchSet(
            name="choose-loaded",
            sentence="The same, quiet and under background traffic, in about two hours (--budget).",
            settings={**_CHOOSE, "traffic": "alltoall:half:64K", "budget_s": 7200.0},
            targets=_CHOICES,
            lab=LAB,
        ),
        BenchSet(
            name="pass-through",
            sentence="The cost of a call that palmette leaves to the MPI: 2 ranks of this node.",
            settings={"collectives": (), "placements": ("block",), "pass_through": True},
            targets=(Target("pass_through", 15.0),),
            local_ranks=2,
        ),
    )
}


def outcomes_of(run: Run) -> list[Outcome]:
    """Return the outcomes for the targets of the run's set; empty without a set."""
    named_set = SETS.get(run.settings.get("named_set") or "")
    return outcomes(run, named_set.targets) if named_set else []
