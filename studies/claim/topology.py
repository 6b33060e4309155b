"""Gather and scatter by topology: Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, as the slides tell it."""

from __future__ import annotations

from palmette import _core

from .form import DIRECTION, MODEL, REFUTED, SHOWN, Claim, ClaimOutcome, Options, Table, us
from .model import job_on, seconds

RANKS = 256
RACKS = (1, 2, 4, 8, 16, 32)
TREE = "k_nomial:order=rank"
BY_TOPOLOGY = "by_topology:node=binomial,leaf=binomial,top=binomial"
BED = "gather-paper"
PLACEMENTS = ("block", "cyclic", "random:1")
SCATTER_CAUSE = (
    "both move the same bytes over the root's link. In a tree a scatter's root sends the largest part first, behind "
    "which the rest waits to be forwarded, where a gather's parts come in while others are still on their way: alone a "
    "scatter is no faster; from the root to all and back it is, as a root receives with more effort than it sends. By "
    "argument, not measured here: a benchmark's loop without a barrier lets a scatter's root go on once its sends are "
    "buffered, and many senders to one congest its port"
)


def _racks(racks: int, placement: str) -> _core.Job:
    """64 nodes of 4 ranks, whose racks have an uplink of two links."""
    return job_on(f"{racks}leaf@3GB/s:{RANKS // 4 // racks}node@1.5GB/s:4core", placement)


def racks(options: Options) -> ClaimOutcome:
    """T_binomial over T_topology as a function of the number of racks."""
    rows, samples = [], []
    largest = dict.fromkeys(PLACEMENTS, 0.0)
    for number in RACKS[: 3 if options.small else None]:
        cells = []
        for placement in PLACEMENTS:
            on = _racks(number, placement)
            for size in (64, 8192):
                ratio = seconds(on, "gather", TREE, size) / seconds(on, "gather", BY_TOPOLOGY, size)
                largest[placement] = max(largest[placement], ratio)
                cells.append(f"{ratio:.2f}")
                samples.append({"racks": number, "placement": placement, "bytes": size, "ratio": ratio})
        rows.append([str(number), *cells])
    table = Table(
        f"T_binomial / T_topology of a gather to rank 0, {RANKS} ranks, 4 a node, racks with half of their nodes' rate "
        "upwards at most; a binomial tree over ranks against binomial trees in nodes, racks and among racks.",
        ["racks", *(f"{placement}, {size}" for placement in PLACEMENTS for size in ("64 B", "8K"))],
        rows,
    )
    gains = max(largest.values()) > 1.05
    return ClaimOutcome(
        (SHOWN if largest["block"] > 1.05 else DIRECTION) if gains else REFUTED,
        f"block placement at most {largest['block']:.2f}, cyclic {largest['cyclic']:.2f}, "
        f"random {largest['random:1']:.2f}",
        "with ranks in order and powers of two the binomial tree is the tree by topology: both send the same bytes "
        "over the same links; elsewhere it crosses to other racks more often, and the number of racks matters less "
        "than the order of ranks",
        [table],
        samples,
    )


def scatter(options: Options) -> ClaimOutcome:
    """Why a scatter takes less time than a gather."""
    rows, samples, less = [], [], []
    for placement in PLACEMENTS[: 1 if options.small else None]:
        on = job_on(BED, placement)
        for size in (8, 64, 1024, 8192, 65536):
            cells = []
            for algorithm in (TREE, "linear"):
                gather, back = (seconds(on, collective, algorithm, size) for collective in ("gather", "scatter"))
                cells += [us(gather), us(back), f"{back / gather:.2f}"]
                less.append(back < gather)
                samples.append({"placement": placement, "bytes": size, "algorithm": algorithm, "gather_s": gather,
                                "scatter_s": back})  # fmt: skip
            rows.append([placement, _core.format_size(size), *cells])
    table = Table(
        "One call by itself on the paper's test bed (296 ranks): a binomial tree over ranks, and the root with all.",
        ["placement", "block", "gather, tree", "scatter, tree", "ratio", "gather, linear", "scatter, linear", "ratio"],
        rows,
    )
    return ClaimOutcome(
        SHOWN if all(less) else DIRECTION if sum(less) > len(less) / 2 else REFUTED,
        f"a single scatter takes less than a gather in {sum(less)} of {len(less)} cells",
        SCATTER_CAUSE,
        [table],
        samples,
        SCATTER_CAUSE,
    )


def gain(options: Options) -> ClaimOutcome:
    """Topology-aware gathers take up to 54 % less time."""
    rows, samples = [], []
    best = {1.0: 0.0, 0.25: 0.0}
    for placement in ("block", "cyclic", "random:1", "random:2", "random:3")[: 2 if options.small else None]:
        cells = []
        for share in best:
            on = job_on(BED, placement, share)
            for size in (64, 1024, 8192, 65536):
                flat, knowing = seconds(on, "gather", TREE, size), seconds(on, "gather", BY_TOPOLOGY, size)
                best[share] = max(best[share], 1 - knowing / flat)
                cells.append(f"{1 - knowing / flat:.0%}")
                samples.append({"placement": placement, "share": share, "bytes": size, "tree_s": flat,
                                "by_topology_s": knowing})  # fmt: skip
        rows.append([placement, *cells])
    table = Table(
        "Time that binomial trees in nodes, switches and among switches save over one over ranks on the test bed, with "
        "whole uplinks and with a quarter of them; negative: they take longer.",
        ["placement", *(f"{size}, {share}" for share in ("whole", "quarter") for size in ("64 B", "1K", "8K", "64K"))],
        rows,
    )
    most = max(best.values())
    return ClaimOutcome(
        SHOWN if most >= 0.54 else DIRECTION if most > 0.05 else REFUTED,
        f"at most {best[1.0]:.0%} over whole uplinks and {best[0.25]:.0%} over a quarter, by the model; in SimGrid "
        "palmette's choice against two MPIs' is [a page of its own](2026-11-26-simulated-placements.md)",
        "what is saved are crossings between switches: many where ranks are scattered, none where they are in order; "
        "and leaders forward whole parts, which costs where the uplinks aren't the limit",
        [table],
        samples,
    )


CLAIMS = (
    Claim("racks", "T_binomial / T_topology is a function of the number of racks", "f(R), with N delta C_3 / (M (1 - "
          "1/R))", False, MODEL, racks),
    Claim("gain-by-topology", "Gather by topology takes less time than a binomial tree", "54 % at best", True, MODEL,
          gain),
    Claim("scatter-gather", "Why is T_scatter less than T_gather?", "a question", True, MODEL, scatter),
)  # fmt: skip
