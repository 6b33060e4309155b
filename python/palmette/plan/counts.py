"""Messages and bytes of a plan over the machine's links, as a table and as JSON."""

from __future__ import annotations

from typing import Any

from palmette import _core
from palmette.plan.crossing import link_names, many
from palmette.present.table import aligned
from palmette.present.words import wrapped
from palmette.units import bytes_text, plural


def count_json(plan: _core.Plan, bound_s: float | None = None) -> dict[str, Any]:
    """Return the counts with the names of levels and groups, and the physical bound to compare the busiest link with.

    `bound_s` is that of a composed plan, which no collective defines.
    """
    counted = plan.count()
    if plan.collective != "composed":
        in_network = plan.services > 0
        bound_s = _core.bound(plan.job, plan.collective, plan.block_bytes, plan.root, in_network=in_network).seconds
    return {
        "messages": counted.messages,
        "bytes": counted.bytes,
        "copied_bytes": counted.copied_bytes,
        "pulled_bytes": counted.pulled_bytes,
        "reduced_bytes": counted.reduced_bytes,
        "steps": plan.step_counts,
        "longest_chain": counted.longest_chain,
        "levels": [
            {
                "level": level.level,
                "messages": level.messages,
                "bytes": level.bytes,
                "links": [
                    {
                        "group": name,
                        "messages_out": link.messages_out,
                        "messages_in": link.messages_in,
                        "bytes_out": link.bytes_out,
                        "bytes_in": link.bytes_in,
                    }
                    for name, link in zip(names, level.links, strict=True)
                ],
            }
            for (_, names), level in zip(link_names(plan.job), counted.levels, strict=False)
        ],
        "busiest": _busiest(plan, counted),
        "bound_s": bound_s if bound_s is not None and bound_s > 0 else None,
    }


def _busiest(plan: _core.Plan, counted: _core.PlanCount) -> dict[str, Any] | None:
    if counted.busiest_level < 0:
        return None
    level, names = link_names(plan.job)[counted.busiest_level]
    link = counted.levels[counted.busiest_level].links[counted.busiest_group]
    outwards = link.bytes_out > link.bytes_in
    return {
        "level": level,
        "group": names[counted.busiest_group],
        "direction": "out" if outwards else "in",
        "messages": link.messages_out if outwards else link.messages_in,
        "bytes": link.bytes_out if outwards else link.bytes_in,
        "seconds": counted.busiest_s if counted.busiest_s > 0 else None,
    }


def count_lines(plan: _core.Plan, bound_s: float | None = None) -> list[str]:
    """Return the counts as lines: one a level with its busiest link, then the busiest of all and what bounds it."""
    counts = count_json(plan, bound_s)
    rows = [("between", "messages", "bytes", "busiest link", "out", "in")]
    for level in counts["levels"]:
        busiest = max(level["links"], key=lambda link: max(link["bytes_out"], link["bytes_in"]))
        sizes = (bytes_text(busiest[key]) for key in ("bytes_out", "bytes_in"))
        messages, carried = f"{level['messages']:,}", bytes_text(level["bytes"])
        rows.append((many(level["level"]), messages, carried, busiest["group"], *sizes))
    rows.append(("ranks", f"{counts['messages']:,}", bytes_text(counts["bytes"]), "", "", ""))
    lines = aligned(rows, (0, 3))
    lines.append(f"critical path, in messages that depend on each other: {counts['longest_chain']:,}")
    steps = counts["steps"]
    lines.append(f"local copies: {bytes_text(counts['copied_bytes'])}")
    if pulls := steps.get("pull", 0) + steps.get("pull_reduce", 0):
        lines.append(f"read from other ranks' memory: {bytes_text(counts['pulled_bytes'])} in {plural(pulls, 'pull')}")
    if reduces := steps.get("reduce", 0) + steps.get("pull_reduce", 0):
        lines.append(f"combined: {bytes_text(counts['reduced_bytes'])} in {plural(reduces, 'step')}")
    return lines + _busiest_lines(counts)


def _busiest_lines(counts: dict[str, Any]) -> list[str]:
    busiest = counts["busiest"]
    if busiest is None:
        return []
    direction = "out of" if busiest["direction"] == "out" else "into"
    load = f"{bytes_text(busiest['bytes'])} in {plural(busiest['messages'], 'message')}"
    what = f"busiest link: {direction} {busiest['group']}, {load}"
    if busiest["seconds"] is None:
        return [f"{what}; capacities are not known"]
    lines = [f"{what}, {_core.format_duration(busiest['seconds'])} at its capacity"]
    if counts["bound_s"]:
        times = busiest["seconds"] / counts["bound_s"]
        lines.append(
            f"physical bound: {_core.format_duration(counts['bound_s'])}; the busiest link takes {times:.3g} times that"
        )
    return [part for line in lines for part in wrapped(line)]
