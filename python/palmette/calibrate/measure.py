"""The measurement loop on a running job: rounds over all steps, until each has converged or the budget is used up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from palmette.calibrate.estimate import MIN_REPETITIONS
from palmette.calibrate.layout import MOST_FLOWS, Layout, LevelPlan
from palmette.calibrate.node_memory import NodeMemoryStep
from palmette.calibrate.steps import LatencyStep, MemoryStep, OverheadStep, SharedStep, Step, StreamStep
from palmette.measure.errors import CalibrateError
from palmette.measure.session import Asker

MOST_MEMORIES = 2


@dataclass(frozen=True)
class Effort:
    """When to stop: at a relative error of `target` everywhere or after `budget_s`, but not before MIN_REPETITIONS.

    `at_once`: pairs that share no link may be measured concurrently; not where they share processors.
    """

    target: float = 0.05
    budget_s: float = 60.0
    at_once: bool = True


@dataclass
class LevelSteps:
    """The steps of one level, in dependency order; none where it can't be measured."""

    plan: LevelPlan
    latency: LatencyStep | None = None
    overhead: OverheadStep | None = None
    stream: StreamStep | None = None
    shared: Sequence[SharedStep] = ()

    @property
    def steps(self) -> list[Step]:
        """All steps of the level."""
        return [step for step in (self.latency, self.overhead, self.stream, *self.shared) if step is not None]


@dataclass
class MachineSteps:
    """All steps of a machine with their results so far. `seconds`: duration; `rounds`: number of rounds over all steps.

    `node_memory`: where a host has several ranks.
    """

    levels: list[LevelSteps]
    memory: MemoryStep
    effort: Effort
    node_memory: NodeMemoryStep | None = None
    seconds: float = 0.0
    rounds: int = 0

    @property
    def steps(self) -> list[Step]:
        """All steps, outermost level first."""
        of_node = [self.node_memory] if self.node_memory is not None else []
        return [*(step for level in self.levels for step in level.steps), self.memory, *of_node]

    @property
    def sure(self) -> list[Step]:
        """The steps whose error is within the target."""
        return [step for step in self.steps if step.error <= self.effort.target]


class Watcher:
    """Progress callbacks of a calibration; these do nothing."""

    def starts(self, measured: MachineSteps) -> None:
        """All is planned, nothing is measured yet."""

    def step_starts(self, measured: MachineSteps, step: Step) -> None:
        """A repetition of `step` starts."""

    def round_ends(self, measured: MachineSteps) -> None:
        """A round over all steps that haven't converged is over."""


def plan_steps(layout: Layout, effort: Effort) -> MachineSteps:
    """Return the steps for the ranks of a job. Raises CalibrateError when no level can be measured at all."""
    if layout.ranks < 2:
        raise CalibrateError("a job of 1 rank has no peer to send to; give it two ranks at least")
    levels = [_level_steps(plan, effort) for plan in layout.plan()]
    if not any(level.steps for level in levels):
        raise CalibrateError("no level of the topology has two ranks to measure; run more ranks, on more hosts")
    hosts = layout.hosts()
    memory = MemoryStep([layout.ranks_on(host)[0] for host in hosts[:MOST_MEMORIES]], effort.at_once)
    fullest = max(hosts, key=lambda host: len(layout.ranks_on(host)))
    together = layout.ranks_on(fullest)[:MOST_FLOWS]
    return MachineSteps(levels, memory, effort, NodeMemoryStep(fullest.name, together) if len(together) > 1 else None)


def _level_steps(plan: LevelPlan, effort: Effort) -> LevelSteps:
    if not plan.pairs:
        return LevelSteps(plan)
    latency = LatencyStep(plan, effort.at_once)
    stream = StreamStep(plan, effort.at_once)
    shared = [SharedStep(plan, edge, stream) for edge in plan.edges if len(edge.flows) > 1]
    return LevelSteps(plan, latency, OverheadStep(plan, latency, effort.at_once), stream, shared)


def measure(measured: MachineSteps, asker: Asker, watcher: Watcher | None = None) -> None:
    """Repeat the steps that haven't converged, interleaved, so that drift of the machine affects all alike.

    Raises CalibrateError when the job fails.
    """
    watcher = watcher or Watcher()
    watcher.starts(measured)
    begun = time.monotonic()
    while True:
        for step in measured.steps:
            if measured.rounds >= MIN_REPETITIONS:
                if step.error <= measured.effort.target:
                    continue
                if time.monotonic() - begun >= measured.effort.budget_s:
                    break
            watcher.step_starts(measured, step)
            step.repeat(asker)
        measured.rounds += 1
        measured.seconds = time.monotonic() - begun
        watcher.round_ends(measured)
        if measured.rounds >= MIN_REPETITIONS and (
            measured.seconds >= measured.effort.budget_s or len(measured.sure) == len(measured.steps)
        ):
            return
