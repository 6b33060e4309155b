"""Output of a composition and its plan: text and JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from palmette import _core
from palmette.compose.composition import Composition
from palmette.plan.contents import numbers_text
from palmette.present.table import aligned
from palmette.units import bytes_text, plural

MOST_PRIMITIVES = 12


def primitive_lines(composition: Composition) -> list[str]:
    """One line per primitive, with fences between phases; the middle of a long list is omitted."""
    lines: list[str] = []
    phase = 0
    shown: Counter[int] = Counter()
    primitives = composition.core.primitives()
    totals = Counter(primitive[0] for primitive in primitives)
    for at, kind, root, others, source, (first, count), target, operation in primitives:
        if at != phase:
            lines.append("  fence")
            phase = at
        shown[at] += 1
        # Primitives of a phase are mostly alike: the first ones and the last are enough.
        if totals[at] > MOST_PRIMITIVES and 4 < shown[at] < totals[at]:
            if shown[at] == 5:
                lines.append(f"  ... {totals[at] - 5} like these")
            continue
        ranks = "all" if len(others) == composition.ranks else numbers_text(others)
        region = f"{source}[{first}]" if count == 1 else f"{source}[{first}:{first + count}]"
        lines.append(
            f"  multicast {root} to {ranks}: {region} into {target}"
            if kind == "multicast"
            else f"  reduce {ranks} to {root}: {operation} of {region} into {target}"
        )
    return lines


def lengths_text(composition: Composition) -> str:
    """`24 blocks of 1K`, `3 blocks of 0 to 4K`."""
    core = composition.core
    lengths = [core.bytes_of(block) for block in range(core.blocks)]
    low, high = min(lengths, default=0), max(lengths, default=0)
    sizes = bytes_text(low) if low == high else f"{bytes_text(low)} to {bytes_text(high)}"
    return f"{plural(core.blocks, 'block')} of {sizes}"


def stage_lines(plan: _core.Plan) -> list[str]:
    """A table of stages: messages, bytes, and times (position on the longest chain)."""
    rows = [("stage", "messages", "bytes", "times")]
    for entry in stages_json(plan):
        first, last = entry["first_time"], entry["last_time"]
        times = f"{first}" if first == last else f"{first} to {last}"
        rows.append((entry["stage"], f"{entry['messages']:,}", bytes_text(entry["bytes"]), times))
    return aligned(rows) if len(rows) > 1 else ["no messages: every rank has what it needs"]


def stages_json(plan: _core.Plan) -> list[dict[str, Any]]:
    """Messages, bytes and times (length of the chain of dependent messages, from 1) of each stage."""
    stages: dict[str, dict[str, Any]] = {}
    for message in plan.messages():
        entry = stages.setdefault(
            message.stage,
            {
                "stage": message.stage,
                "messages": 0,
                "bytes": 0,
                "first_time": message.time + 1,
                "last_time": message.time + 1,
            },
        )
        entry["messages"] += 1
        entry["bytes"] += plan.bytes_of(message)
        entry["last_time"] = max(entry["last_time"], message.time + 1)
    return [stages[name] for name in _stage_order(plan) if name in stages]


def _stage_order(plan: _core.Plan) -> list[str]:
    """All stages, in each rank's order of execution."""
    order: list[str] = []
    for rank in range(plan.job.size):
        place = 0
        for name in plan.program(rank).stages:
            if name in order:
                place = order.index(name) + 1
            else:
                order.insert(place, name)
                place += 1
    return order


def scratch_line(plan: _core.Plan) -> str:
    """Scratch bytes per rank."""
    scratch = plan.scratch_bytes
    low, high = min(scratch), max(scratch)
    if high == 0:
        return "scratch: none"
    return (
        f"scratch: {bytes_text(low)} to {bytes_text(high)} a rank"
        if low != high
        else f"scratch: {bytes_text(high)} a rank"
    )
