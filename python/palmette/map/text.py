"""Output of `palmette map`: link loads before and after, as lines of at most 80 columns and as JSON."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from palmette import _core
from palmette.map.methods import RankOrder
from palmette.map.pattern import Pattern
from palmette.map.traffic import BottleneckLink, LevelTraffic, Traffic
from palmette.map.writers import hosts_in_order
from palmette.present.table import aligned
from palmette.present.words import clipped, wrapped
from palmette.units import bytes_text, plural, time_text

MOST_LISTED = 64
"""Ranks whose hosts are listed."""


def ratio_text(before: float, after: float) -> str:
    """How many times less there is after: `2.5x less`, `same`, `1.2x more`."""
    if before == after:
        return "same"
    if after == 0:
        return "gone"
    if before > after:
        return f"{before / after:.3g}x less"
    return f"{after / before:.3g}x more" if before > 0 else "more"


def lines_of(job: _core.Job, pattern: Pattern, placement: str, before: Traffic, mapped: RankOrder) -> list[str]:
    """Return the report."""
    levels = ", ".join(plural(level.count, level.name) for level in reversed(job.levels))
    after = mapped.traffic
    idle = pattern.ranks - prod(pattern.extents) if pattern.extents else 0
    without = f", of which {idle} {'has' if idle == 1 else 'have'} no cell" if idle else ""
    head = f"{pattern.name} on {plural(job.size, 'rank')}{without}, {levels}, placed {placement}"
    rows = [("", "as placed", "mapped", "")]
    one, two = before.busiest, after.busiest
    if one is not None:
        rows += [("busiest link", _link(one), _link(two) if two else "none", ""),
                 _row_of_bytes("  bytes", one.bytes, two.bytes if two else 0.0)]  # fmt: skip
        if one.seconds is not None:
            seconds = two.seconds if two and two.seconds is not None else 0.0
            rows.append(("  time", time_text(one.seconds), time_text(seconds), ratio_text(one.seconds, seconds)))
    rows.append(_row_of_bytes("hop-bytes", before.hop_bytes, after.hop_bytes))
    for old, new in zip(before.levels, after.levels, strict=True):
        rows.append(_row_of_bytes(f"over {old.name} links", old.total, new.total))
        worst, better = float(old.busier.max(initial=0)), float(new.busier.max(initial=0))
        rows.append(_row_of_bytes("  the busiest", worst, better))
    lines = [*wrapped(head, rest="", whole_words=False), *_exchanges(pattern), f"by method {mapped.method}", ""]
    lines += aligned(rows, (0, 3))
    if job.size <= MOST_LISTED:
        lines.append("")
        lines += wrapped(f"hosts of ranks 0 to {job.size - 1}: {' '.join(hosts_in_order(job, mapped.order))}")
        lines += wrapped(f"order, by ranks as placed: {' '.join(map(str, mapped.order))}")
    return lines


def _row_of_bytes(what: str, before: float, after: float) -> tuple[str, str, str, str]:
    return what, bytes_text(before), bytes_text(after), ratio_text(before, after)


def _exchanges(pattern: Pattern) -> list[str]:
    if pattern.exchanged == 0:
        return []
    total = float(pattern.bytes.sum())
    return [f"all-to-all exchanges are {pattern.exchanged / total:.0%} of {bytes_text(total)} bytes"]


def json_of(job: _core.Job, pattern: Pattern, placement: str, before: Traffic, mapped: RankOrder) -> dict[str, Any]:
    """Return the same as a dictionary, with each link."""
    return {
        "pattern": pattern.name,
        "ranks": job.size,
        "bytes": float(pattern.bytes.sum()),
        "exchanged_bytes": pattern.exchanged,
        "placement": placement,
        "method": mapped.method,
        "order": mapped.order,
        "hosts": hosts_in_order(job, mapped.order),
        "before": _traffic_json(before),
        "after": _traffic_json(mapped.traffic),
    }


def _traffic_json(traffic: Traffic) -> dict[str, Any]:
    busiest = traffic.busiest
    return {
        "hop_bytes": traffic.hop_bytes,
        "busiest": None
        if busiest is None
        else {
            "level": busiest.level,
            "group": busiest.group,
            "direction": "out" if busiest.outwards else "in",
            "bytes": busiest.bytes,
            "seconds": busiest.seconds,
        },
        "levels": [_level_json(level) for level in traffic.levels],
    }


def _level_json(level: LevelTraffic) -> dict[str, Any]:
    capacities = [float(value) or None for value in level.capacity]
    links = zip(level.groups, np.asarray(level.out).tolist(), np.asarray(level.into).tolist(), capacities, strict=True)
    return {
        "level": level.name,
        "bytes": level.total,
        "links": [
            {"group": group, "out_bytes": out, "in_bytes": into, "bytes_per_s": capacity}
            for group, out, into, capacity in links
        ],
    }


def _link(busiest: BottleneckLink) -> str:
    return f"{clipped(busiest.group, 16)} {'out' if busiest.outwards else 'in'}"
