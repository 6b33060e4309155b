"""Output of a calibration: a table of 80 columns, and JSON."""

from __future__ import annotations

import math
from typing import Any

from palmette.calibrate.estimate import MIN_REPETITIONS, Estimate
from palmette.calibrate.measure import LevelSteps, MachineSteps
from palmette.calibrate.steps import ROUND_S
from palmette.calibrate.write import costs_of
from palmette.present.table import aligned
from palmette.topology.model import Topology
from palmette.units import plural, rate_text, time_text

SAME_HOST = "same host"


def plan_line(measured: MachineSteps) -> str:
    """Return what is going to be measured and the maximum duration, in one line."""
    levels = sum(bool(level.steps) for level in measured.levels)
    pairs = sum(len(level.plan.pairs) for level in measured.levels if level.steps)
    edges = sum(len(level.shared) for level in measured.levels)
    effort = measured.effort
    return (
        f"{plural(levels, 'level')} by {plural(pairs, 'pair')} of ranks, {plural(edges, 'shared edge')}, memory:"
        f" until all is known within {effort.target:.1%} (95 %), for {effort.budget_s:.0f} s at most,"
        f" {MIN_REPETITIONS} rounds at least, which take {time_text(least_s(measured))} or more"
    )


def least_s(measured: MachineSteps) -> float:
    """Return what the rounds that are always done take, if ranks answer at once."""
    return MIN_REPETITIONS * ROUND_S * len(measured.steps)


def overrun_line(measured: MachineSteps) -> str | None:
    """Return, after a first round, that MIN_REPETITIONS of them take longer than the budget; None where they don't."""
    seconds = measured.seconds / measured.rounds * MIN_REPETITIONS
    if measured.rounds != 1 or seconds <= measured.effort.budget_s:
        return None
    budget_s = measured.effort.budget_s
    need = f"{MIN_REPETITIONS} rounds, the least, need about {seconds:.0f} s here"
    return f"{need}, more than the {budget_s:.0f} s of --budget"


LARGE_ERROR = 0.5
"""Errors above this share are said."""


def unsure_lines(measured: MachineSteps) -> list[str]:
    """Return a remark for each level, and the memory, of which something is written that is hardly known."""
    values: dict[str, dict[str, float]] = {}
    for level in measured.levels:
        if level.steps:
            assert level.latency is not None and level.overhead is not None and level.stream is not None
            values[level.plan.name or SAME_HOST] = {
                "latency": level.latency.error,
                "overhead": level.overhead.error,
                "stream rate": level.stream.error,
            }
    values["memory"] = {"copies": measured.memory.copy.error, "reductions": measured.memory.reduce.error}
    lines = []
    for name, errors in values.items():
        wide = [f"{what} {error_text(error)}" for what, error in errors.items() if error > LARGE_ERROR]
        if wide:
            lines.append(f"{name}: {', '.join(wide)}, written all the same; give a longer --budget, or quieter hosts")
    return lines


def error_text(error: float) -> str:
    """`±3.1%`, `±12%`, `±?` where too little was measured."""
    if error >= 10:
        return "±?"
    return f"±{error:.1%}" if error < 0.0995 else f"±{error:.0%}"


def level_lines(measured: MachineSteps) -> list[str]:
    """Return the costs of each level with their errors."""
    rows = [["level", "latency", "", "overhead", "", "stream", "", "shared edge", ""]]
    for level in measured.levels:
        if not level.steps:
            continue
        latency_s, overhead_s, stream = costs_of(level)
        assert level.latency is not None and level.overhead is not None and level.stream is not None
        cells = [time_text(latency_s), error_text(level.latency.error)]
        cells += [time_text(overhead_s), error_text(level.overhead.error)]
        cells += [rate_text(stream), error_text(level.stream.error)]
        first, *more = [_shared_cells(step.fit) for step in level.shared] or [["-", ""]]
        rows += [[level.plan.name or SAME_HOST, *cells, *first], *([""] * 7 + one for one in more)]
    return aligned(rows, (0, 2, 4, 6, 8))


def _shared_cells(fit: Any) -> list[str]:
    least = "" if fit.filled else ">= "
    return [f"{least}{rate_text(fit.bytes_per_s)}", error_text(fit.error)]


def memory_line(measured: MachineSteps) -> str:
    """Return the copy and reduction rates of one rank in its own memory."""

    def text(estimate: Estimate) -> str:
        return f"{rate_text(estimate.mean)} {error_text(estimate.error)}" if estimate.values else "not measured"

    return f"memory of one rank: copies {text(measured.memory.copy)}, reduces {text(measured.memory.reduce)}"


def node_memory_line(measured: MachineSteps) -> str | None:
    """Return the aggregate copy rate of concurrent ranks of one node; None where no node has several."""
    together = measured.node_memory
    if together is None or not together.rates:
        return None
    fit, most = together.fit, max(together.rates)
    full = ", which saturates it" if fit.filled else ""
    rate = Estimate(together.rates[most]).mean
    return (
        f"memory of {together.host}: {most} ranks at once copy {rate_text(rate)} {error_text(fit.error)} together{full}"
    )


def notes(measured: MachineSteps) -> list[str]:
    """Return what wasn't measured, and what hasn't converged."""
    lines = [f"{level.plan.name}: {level.plan.why_not}" for level in measured.levels if level.plan.why_not]
    unsure = [step for step in measured.steps if step.error > measured.effort.target]
    if unsure:
        names = ", ".join(f"{step.label} {error_text(step.error)}" for step in unsure[:4])
        more = f" and {len(unsure) - 4} more" if len(unsure) > 4 else ""
        lines.append(
            f"not within {measured.effort.target:.1%}: {names}{more}; a longer --budget or a quieter machine helps"
        )
    return lines


def to_json(measured: MachineSteps, topology: Topology, remarks: list[str], output: str) -> dict[str, Any]:
    """Return the result as JSON values."""
    machine = topology.to_json()["machine"]
    return {
        "output": output,
        "seconds": round(measured.seconds, 3),
        "rounds": measured.rounds,
        "target": measured.effort.target,
        "budget_s": measured.effort.budget_s,
        "sure": len(measured.sure) == len(measured.steps),
        "levels": [_level_json(level) for level in measured.levels],
        "memory": machine["memory"],
        "calibration": machine["calibration"],
        "remarks": [*notes(measured), *remarks],
    }


def _level_json(level: LevelSteps) -> dict[str, Any]:
    document: dict[str, Any] = {"level": level.plan.name}
    if not level.steps:
        return {**document, "why_not": level.plan.why_not}
    latency_s, overhead_s, stream = costs_of(level)
    document |= {"latency_s": latency_s, "overhead_s": overhead_s, "stream_bytes_per_s": stream}
    document["errors"] = {step.label: step.error if math.isfinite(step.error) else None for step in level.steps}
    return document
