"""Composed collectives and a tomography's sums: HiCCL and its application, as the slides tell it."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from palmette import _core

from .form import DIRECTION, MODEL, REFUTED, SHOWN, Claim, ClaimOutcome, Options, Table, us

RATE, LATENCY, OVERHEAD = 1e9, 10e-6, 5e-6
"""f and alpha of the formulas, bytes per second and seconds; of alpha, each end's."""
COUNTED = "counted"


def _nodes(count: int) -> _core.Job:
    """Return nodes of one rank each on one switch, whose messages cost alpha + d/f."""
    document = _core.Machine.synthetic(f"{count}node@1GB/s").to_json()
    for level in document["levels"]:
        level |= {"latency_s": LATENCY, "overhead_s": OVERHEAD, "stream_bytes_per_s": RATE, "source": "given"}
    document["memory"] = {"copy_bytes_per_s": 1e12, "reduce_bytes_per_s": 1e12, "source": "given"}
    return _core.Job(_core.Machine.from_json(document), "block")


def _played(on: _core.Job, name: str, size: int, method: str, pipeline: int = 1) -> float:
    made = _core.named_composition(name, on.size, size)
    plan = made.factor(on, methods=[method], pipeline=pipeline)
    return float(_core.predict(plan, plan.lengths, _core.Costs.of(on)).seconds)


def formulas(options: Options) -> ClaimOutcome:
    """Times of a broadcast among n nodes: direct, tree, ring in k parts, scatter and all-gather."""
    rows, samples, off = [], [], []
    for count in (4, 16) if options.small else (4, 8, 16, 32):
        on = _nodes(count)
        for size in (1 << 16, 1 << 22):
            wire = size / RATE
            best = max(1, round(math.sqrt(size * (count - 2) / (RATE * LATENCY))))
            wanted = {
                "direct": ((LATENCY + wire) * (count - 1), _played(on, "broadcast", size, "direct")),
                "tree": ((LATENCY + wire) * math.log2(count), _played(on, "broadcast", size, "tree.2")),
                f"ring, k = {best}": (
                    (LATENCY + wire / best) * (best + count - 2), _played(on, "broadcast", size, "ring", best),
                ),
                "scatter + all-gather": (
                    2 * (LATENCY + wire / count) * (count - 1),
                    _played(on, "broadcast_scatter_allgather", size, "direct"),
                ),
            }  # fmt: skip
            for name, (formula, played) in wanted.items():
                off.append((played / formula, name.split(",")[0]))
                rows.append([str(count), _core.format_size(size), name, us(formula), us(played), f"{off[-1][0]:.2f}"])
                samples.append({"nodes": count, "bytes": size, "how": name, "formula_s": formula, "played_s": played})
    near = sum(0.95 <= ratio <= 1.05 for ratio, _ in off)
    by_name = {name: [ratio for ratio, other in off if other == name] for _, name in off}
    return ClaimOutcome(
        SHOWN if near == len(off) else DIRECTION if near else REFUTED,
        "played over formula: " + ", ".join(f"{name} {min(r):.2f} to {max(r):.2f}" for name, r in by_name.items()),
        "direct, and scatter and all-gather of long messages, are right to 1 %; short ones overlap their latencies. A "
        "ring's parts follow each other before a latency is over. A tree's root sends to its children at once, over "
        "one link, so that none can forward before all have nearly everything; the formula has one after the other",
        [Table(f"Nodes of one rank, alpha {LATENCY * 1e6:g} us, half of it overhead of an end, f {RATE / 1e9:g} GB/s, "
               "every message played.",
               ["nodes", "bytes", "how", "formula", "played", "ratio"], rows)],
        samples,
    )  # fmt: skip


def pipeline(options: Options) -> ClaimOutcome:
    """Pipelining: a best depth, between latency and bandwidth."""
    rows, samples, right = [], [], []
    for count in (4, 16)[: 1 if options.small else None]:
        on = _nodes(count)
        for size in (1 << 16, 1 << 20, 1 << 24):
            best = math.sqrt(size * (count - 2) / (RATE * LATENCY))
            took = {k: _played(on, "broadcast", size, "ring", k) for k in (1, 2, 4, 8, 16, 32, 64, 128, 256)}
            least = min(took, key=lambda k: took[k])
            right.append(least / 2 <= best <= least * 2)
            rows.append([str(count), _core.format_size(size), f"{best:.1f}", str(least), us(took[1]), us(took[least]),
                         f"{took[1] / took[least]:.1f}"])  # fmt: skip
            samples.append({"nodes": count, "bytes": size, "seconds": took})
    return ClaimOutcome(
        SHOWN if all(right) else DIRECTION if any(right) else REFUTED,
        f"the best power of two is within a factor of 2 of sqrt(d (n-2) / (f alpha)) in {sum(right)} of {len(right)} "
        "cases",
        "a part costs its ends' overhead, and its latency hides behind the next part's bytes, which the formula adds "
        "to it: so more parts keep gaining a little beyond its depth, as long as the links are busy",
        [Table("A broadcast along a ring, played at depths of 1 to 256.",
               ["nodes", "bytes", "formula's depth", "best played", "in one part", "at the best", "times as fast"],
               rows)],
        samples,
    )  # fmt: skip


def sums(options: Options) -> ClaimOutcome:
    """Sums in nodes first leave 58 to 64 % less between nodes."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import sparse_volumes

    cases = [case for case in sparse_volumes.cases() if "a host" in case.name and "lab" not in case.name]
    rows, saved, samples = [], {}, []
    for case in cases[: 1 if options.small else None]:
        for order in ("hilbert", "strips"):
            parts = sparse_volumes.parts_of(case, order)
            touched = sparse_volumes.footprints(parts, case.image, case.angles)
            found = sparse_volumes.volume(case, order, touched, 1)
            share = found.saved()
            saved[case.name, order] = share
            rows.append([case.name, order, f"{found.flat_hosts:,}", f"{found.summed_hosts:,}", f"{share:.1%}"])
            samples.append({"case": case.name, "order": order, "flat": found.flat_hosts, "sum": found.summed_hosts})
    inside = [0.58 <= one <= 0.65 for one in saved.values()]
    return ClaimOutcome(
        SHOWN if all(inside) else DIRECTION if any(inside) else REFUTED,
        f"{min(saved.values()):.1%} to {max(saved.values()):.1%} less, by ranks a host and the order of parts",
        "the more ranks a host has, and the more compact its part of the image is, the more rays cross several of its "
        "parts; by sockets the same holds inside of a node",
        [Table("Partial sums of rays that leave a host, parallel beams, one slice.",
               ["ranks", "order", "each by itself", "summed in hosts", "less"], rows)],
        samples,
    )  # fmt: skip


CLAIMS = (
    Claim("broadcast-formulas", "Times of direct, tree, ring and scatter + all-gather", "four formulas", False, MODEL,
          formulas),
    Claim("pipeline-depth", "Bandwidth or latency? Pipelining", "formula", True, MODEL, pipeline),
    Claim("node-sums", "Hierarchical sums send less between nodes", "58 to 64 % less (of the paper)", True, COUNTED,
          sums),
)  # fmt: skip
