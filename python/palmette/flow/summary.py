"""Summary of a flow simulation: time against the bound, link utilisation per level, the busiest links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from palmette import _core
from palmette.bound.table import limit_json
from palmette.plan.crossing import link_names, many
from palmette.present.table import Column, Table, aligned
from palmette.present.words import wrapped
from palmette.units import bytes_text, rate_text

MAX_LINKS = 5
"""Number of links that are listed."""


@dataclass(frozen=True)
class FlowRun:
    """One simulation of a plan: quiet, or under background traffic."""

    label: str
    plan: _core.Plan
    result: _core.FlowResult
    bound: _core.Bound

    @property
    def multiple(self) -> float | None:
        """Time as a multiple of the physical bound, None where nothing bounds it."""
        return self.result.seconds / self.bound.seconds if self.bound.seconds > 0 else None

    @cached_property
    def levels(self) -> list[str]:
        """Names of the job's levels, then `aggregator`."""
        return [level for level, _ in link_names(self.plan.job)]

    @cached_property
    def groups(self) -> list[list[str]]:
        """Names of the groups of each level, then of aggregators."""
        return [names for _, names in link_names(self.plan.job)]

    @cached_property
    def links(self) -> list[_core.FlowLink]:
        """The links of the result."""
        return self.result.links

    @property
    def background_bytes(self) -> float:
        """What the background sent over the outermost level with links until the plan ended, messages under way too."""
        sent = [link for link in self.links if link.outwards and link.level == self.outermost]
        return sum(max(0.0, link.carried_bytes - link.bytes) for link in sent)

    @property
    def outermost(self) -> int:
        """The outermost level with links."""
        return min((link.level for link in self.links if link.outwards), default=0)

    def name_of(self, link: _core.FlowLink) -> str:
        """`out of leaf0`, `into h3`."""
        return f"{'out of' if link.outwards else 'into'} {self.groups[link.level][link.group]}"

    def busiest(self, count: int) -> list[_core.FlowLink]:
        """Return the links with the highest utilisation, highest first."""
        used = [link for link in self.links if link.carried_bytes > 0]
        used.sort(key=lambda link: (-round(link.utilisation, 9), link.level, link.group, not link.outwards))
        return used[:count]


def played_json(played: FlowRun, *, over_time: bool = False) -> dict[str, Any]:
    """Return all results; `over_time`: including the bytes that each link carried in each interval."""
    result = played.result
    document: dict[str, Any] = {
        "seconds": result.seconds,
        "multiple": played.multiple,
        "tolerance": result.tolerance,
        "messages": result.messages,
        "bytes": result.bytes,
        "background_messages": result.background_messages,
        "background_bytes": played.background_bytes,
        "busiest_rank": {"rank": result.busiest_rank, "seconds": result.busiest_rank_s},
        "levels": [
            {
                "level": played.levels[level],
                "links": len(links),
                "bytes": sum(link.bytes for link in links),
                "utilisation": _mean(links),
                "highest_utilisation": max(link.utilisation for link in links),
            }
            for level, links in _by_level(played).items()
        ],
        "links": [
            {
                "level": played.levels[link.level],
                "group": played.groups[link.level][link.group],
                "direction": "out" if link.outwards else "in",
                "bytes_per_s": link.capacity_bytes_per_s,
                "bytes": link.bytes,
                "carried_bytes": link.carried_bytes,
                "utilisation": link.utilisation,
            }
            for link in played.links
        ],
    }
    if over_time:
        document["interval_s"] = result.bin_s
        for index, link in enumerate(document["links"]):
            link["carried_over_time"] = [round(carried, 1) for carried in result.carried(index)]
    return document


def both_json(quiet: FlowRun, loaded: FlowRun | None, *, over_time: bool = False) -> dict[str, Any]:
    """Return the quiet simulation, the loaded one, and the bound."""
    return {
        "bound": limit_json(quiet.bound),
        "quiet": played_json(quiet, over_time=over_time),
        "loaded": played_json(loaded, over_time=over_time) if loaded is not None else None,
    }


def lines(quiet: FlowRun, loaded: FlowRun | None) -> list[str]:
    """Return a summary as lines: times, levels, the busiest links, unknown costs that were taken as zero."""
    both = [quiet] if loaded is None else [quiet, loaded]
    out = [*_times(both), "", *_levels(both)]
    for played in both:
        out += ["", *_busiest(played, len(both) > 1)]
    out += _unknown(quiet.plan.job)
    if quiet.result.tolerance > 0:
        share = _percent(quiet.result.tolerance)
        out += ["", *wrapped(f"a large plan: links may idle for {share} of the time; --exact follows every change")]
    return out


def _times(both: list[FlowRun]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    if len(both) > 1:
        rows.append(("", *(played.label for played in both)))
    rows.append(("time", *(_core.format_duration(played.result.seconds) for played in both)))
    if both[0].multiple is not None:
        rows.append((f"times the bound of {_core.format_duration(both[0].bound.seconds)}",
                     *(f"{played.multiple:.3g}" for played in both)))  # fmt: skip
    rows.append(("messages", *(f"{played.result.messages:,}" for played in both)))
    if len(both) > 1:
        rows.append(("background messages ended", *(f"{played.result.background_messages:,}" for played in both)))
        level = many(both[0].levels[both[0].outermost])
        rows.append((f"background bytes between {level}", *(bytes_text(played.background_bytes) for played in both)))
    if any(played.result.busiest_rank_s > 0 for played in both):
        rows.append(("busiest rank works", *(_core.format_duration(played.result.busiest_rank_s) for played in both)))
    return [*aligned(rows), *_under_way(both[-1])]


def _under_way(played: FlowRun) -> list[str]:
    """Why nothing of the background has ended, though it takes its share; nothing where something has."""
    if played.result.background_messages > 0 or played.background_bytes <= 0:
        return []
    return wrapped("no background message ended before the plan did; those under way took their share of the links")


def _by_level(played: FlowRun) -> dict[int, list[_core.FlowLink]]:
    levels: dict[int, list[_core.FlowLink]] = {}
    for link in played.links:
        levels.setdefault(link.level, []).append(link)
    return levels


def _mean(links: list[_core.FlowLink]) -> float:
    return sum(link.utilisation for link in links) / len(links)


def _levels(both: list[FlowRun]) -> list[str]:
    """A row per level: bytes of the plan, then mean and maximum utilisation of its links."""
    head = ["between", "links", "bytes"]
    for played in both:
        before = f"{played.label}, " if len(both) > 1 else ""
        head += [f"{before}used", "most"]
    rows = [tuple(head)]
    for level, links in _by_level(both[0]).items():
        row = [many(both[0].levels[level]), f"{len(links):,}", bytes_text(sum(link.bytes for link in links) // 2)]
        for played in both:
            own = _by_level(played)[level]
            row += [_percent(_mean(own)), _percent(max(link.utilisation for link in own))]
        rows.append(tuple(row))
    if len(rows) == 1:
        return ["no capacity of any link is known, so there is no contention between messages"]
    return aligned(rows)


def _busiest(played: FlowRun, labelled: bool) -> list[str]:
    shown = played.busiest(MAX_LINKS)
    if not shown:
        return []
    columns: list[Column[_core.FlowLink]] = [
        Column("busiest links" + (f", {played.label}" if labelled else ""), "", played.name_of, left=True, most=28),
        Column("bytes", "bytes", show=bytes_text),
        Column("carried", "carried_bytes", show=bytes_text),
        Column("capacity", "capacity_bytes_per_s", show=rate_text),
        Column("used", "utilisation", show=_percent),
    ]
    return Table(columns, shown).lines()


def _unknown(job: _core.Job) -> list[str]:
    """Costs that the machine lacks, which were taken as zero."""
    costs = [level.costs for level in job.levels]
    missing = [
        what
        for what, known in (
            ("latencies", any(cost.latency_s for cost in costs)),
            ("overheads", any(cost.overhead_s for cost in costs)),
            ("rates of single messages", any(cost.stream_bytes_per_s for cost in costs)),
            ("copies in memory", job.memory.copy_bytes_per_s > 0),
            ("reductions", job.memory.reduce_bytes_per_s > 0),
        )
        if not known
    ]
    return ["", *wrapped("not known, taken as free: " + ", ".join(missing))] if missing else []


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 0.9995 else "100 %"
