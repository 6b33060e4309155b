"""Writing calibrated costs into topology.json: measured values replace former ones, all else is kept."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

from palmette.calibrate.estimate import Estimate
from palmette.calibrate.layout import Layout
from palmette.calibrate.measure import LevelSteps, MachineSteps
from palmette.calibrate.sharing import Fit
from palmette.calibrate.steps import SharedStep
from palmette.measure.session import JobLine
from palmette.topology.calibration import Calibration, LevelFit, SharedFit
from palmette.topology.model import HostCosts, Level, Memory, Topology, TreeNode
from palmette.units import plural, rate_text

CALIBRATED = "calibrated"

AGREES = 0.1
"""A known capacity stays when the measured one is within this share of it, or within its own error."""


@dataclass
class WriteSummary:
    """Number of capacities and loads written; `remarks`: edges whose known capacity was wrong or is still unknown."""

    capacities: int = 0
    loads: int = 0
    remarks: list[str] = field(default_factory=list)


def calibration_of(measured: MachineSteps, job: JobLine, layout: Layout) -> Calibration:
    """Return the record of a finished calibration: provenance and errors."""
    calibration = Calibration(
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        mpi=job.mpi,
        versions={"palmette": version("palmette"), "system": f"{platform.system()} {platform.release()}"},
        ranks=job.ranks,
        hosts=len({host.name for host in layout.nodes}),
        copy_error=_error(measured.memory.copy),
        reduce_error=_error(measured.memory.reduce),
    )
    together = measured.node_memory
    if together is not None and together.rates:
        calibration.memory_shared = _shared_fit(together.host, together.fit, together.rates)
    for level in measured.levels:
        if not level.steps:
            continue
        if level.plan.name is None:
            calibration.same_host = _level_fit(level)
        else:
            calibration.levels[level.plan.name] = _level_fit(level)
    return calibration


def write_into(
    topology: Topology, measured: MachineSteps, calibration: Calibration, *, loads: bool = False
) -> WriteSummary:
    """Write the costs and their provenance into `topology`.

    A level that wasn't measured keeps its costs, and its record of an older calibration. With `loads`, a capacity below
    the known one is attributed to the load of other traffic; otherwise the known one is replaced.
    """
    machine = topology.machine
    written = WriteSummary()
    for level in measured.levels:
        if not level.steps:
            continue
        target: Level | HostCosts
        if level.plan.name is None:
            machine.same_host = target = machine.same_host or HostCosts()
        else:
            target = next(one for one in machine.levels if one.name == level.plan.name)
        _put_costs(target, level)
        for step in level.shared:
            if step.edge.alike:
                _put_capacity(step, written, loads=loads)
            elif step.fit.filled:  # a node's memory: no edge of the tree
                target.together_bytes_per_s = _rounded(step.fit.bytes_per_s)
    memory = measured.memory
    machine.memory = Memory(_mean(memory.copy), _mean(memory.reduce), CALIBRATED)
    if machine.calibration is not None:
        old = machine.calibration
        known = {level.name for level in machine.levels}
        calibration.levels = {name: fit for name, fit in old.levels.items() if name in known} | calibration.levels
        calibration.same_host = calibration.same_host or old.same_host
        calibration.memory_shared = calibration.memory_shared or old.memory_shared
    machine.calibration = calibration
    return written


def costs_of(level: LevelSteps) -> tuple[float, float, float]:
    """Return latency, overhead and stream rate of a level that was measured.

    The overheads of both ends are part of the latency: where a slow scheduler inflates them beyond that, they are
    capped at half of it.
    """
    assert level.latency is not None and level.overhead is not None and level.stream is not None
    latency_s = level.latency.latency.mean
    return latency_s, min(level.overhead.both.mean, latency_s / 2), level.stream.stream.mean


def _put_costs(target: Level | HostCosts, level: LevelSteps) -> None:
    latency_s, overhead_s, stream = costs_of(level)
    target.latency_s, target.overhead_s, target.stream_bytes_per_s = (
        _rounded(latency_s),
        _rounded(overhead_s),
        _rounded(stream),
    )
    target.source = CALIBRATED


def _put_capacity(step: SharedStep, written: WriteSummary, *, loads: bool) -> None:
    """Write the capacity of an edge to all edges of the same known capacity, by the rule of docs/guide/calibrate.md."""
    fit, edge = step.fit, step.edge
    known = edge.node.up_bytes_per_s
    what = f"{plural(len(edge.alike), 'edge')} like {edge.node.name}'s"
    if not fit.filled:
        if known is None:
            flows = plural(max(step.rates), "flow")
            written.remarks.append(
                f"{what}: {flows} didn't saturate them; at least {rate_text(fit.bytes_per_s)}, capacity unknown"
            )
        return
    if known is not None and agrees(known, fit):
        if loads:
            _put_loads(edge.alike, None)
        return
    if loads and known is not None and fit.bytes_per_s < known:
        _put_loads(edge.alike, _rounded(1 - fit.bytes_per_s / known))
        written.loads += len(edge.alike)
        return
    for node in edge.alike:
        node.up_bytes_per_s = _rounded(fit.bytes_per_s)
    written.capacities += len(edge.alike)
    if known is not None:
        written.remarks.append(
            f"{what}: known as {rate_text(known)}, measured {rate_text(fit.bytes_per_s)}, which was written; if other"
            " traffic takes the rest, restore the file and say --load"
        )


def _put_loads(nodes: list[TreeNode], load: float | None) -> None:
    for node in nodes:
        node.load = load


def agrees(known: float, fit: Fit) -> bool:
    """Whether a measured capacity doesn't contradict the known one."""
    margin = max(AGREES, fit.error if math.isfinite(fit.error) else 0)
    return abs(fit.bytes_per_s - known) <= margin * known


def _level_fit(level: LevelSteps) -> LevelFit:
    assert level.latency is not None and level.overhead is not None and level.stream is not None
    return LevelFit(
        latency_error=_error(level.latency.latency),
        overhead_error=_error(level.overhead.both),
        stream_error=_error(level.stream.stream),
        samples=level.latency.samples,
        pairs=len(level.plan.pairs),
        send_overhead_s=_mean(level.overhead.send),
        receive_overhead_s=_mean(level.overhead.receive),
        gap_s=_mean(level.overhead.gap),
        shared=list(_shared(level)),
    )


def _shared(level: LevelSteps) -> Iterator[SharedFit]:
    for step in level.shared:
        record = _shared_fit(step.edge.node.name, step.fit, step.rates)
        record.both_ways_bytes_per_s = _rounded(Estimate(step.both_ways).mean) if step.both_ways else None
        yield record


def _shared_fit(edge: str, fit: Fit, rates: Mapping[int, list[float]]) -> SharedFit:
    return SharedFit(
        edge=edge,
        bytes_per_s=_rounded(fit.bytes_per_s),
        error=_error(fit),
        filled=fit.filled,
        flows=[(k, _rounded(Estimate(values).mean)) for k, values in sorted(rates.items())],
    )


def _mean(estimate: Estimate) -> float | None:
    return _rounded(estimate.mean) if estimate.values else None


def _error(value: Estimate | Fit) -> float | None:
    """None where it is unknown: one repetition has no error."""
    error = value.error
    return _rounded(error) if math.isfinite(error) else None


def _rounded(value: float) -> float:
    """Round to four significant digits, more than the measurement's accuracy."""
    return float(f"{value:.4g}")
