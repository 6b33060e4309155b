"""Rates of a measured pattern: by part and level, and of the whole, with their spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from palmette.measure.statistics import CONFIDENCE, RESAMPLES, in_time
from palmette.patterns.seats import Seats
from palmette.patterns.transfers import Plan

Times = npt.NDArray[np.float64]

WHOLE = "everything"


@dataclass(frozen=True)
class Rate:
    """Aggregate bandwidth of the messages of one part and level: bytes over the time until the last one has arrived.

    `low_s` to `high_s`: the 95 % interval of the median, by the bootstrap.
    """

    part: str
    level: str
    step: int
    messages: int
    bytes: int
    samples: int
    min_s: float
    median_s: float
    low_s: float
    high_s: float
    max_s: float

    def bytes_per_s(self, seconds: float) -> float:
        """Return the rate at a time."""
        return self.bytes / seconds if seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return times and rates."""
        times = {"min": self.min_s, "median": self.median_s, "low": self.low_s, "high": self.high_s, "max": self.max_s}
        # The shortest time is the highest rate.
        opposite = {"min": "max", "max": "min", "low": "high", "high": "low", "median": "median"}
        return {
            "part": self.part,
            "level": self.level,
            "step": self.step,
            "messages": self.messages,
            "bytes": self.bytes,
            "samples": self.samples,
            "time_s": times,
            "bytes_per_s": {name: self.bytes_per_s(times[opposite[name]]) for name in times},
        }


@dataclass(frozen=True)
class BottleneckLink:
    """The bottleneck link, whose time is a lower bound of the pattern's."""

    text: str
    bytes: int
    seconds: float


@dataclass
class PatternResult:
    """One pattern of one size, measured."""

    plan: Plan
    rates: list[Rate] = field(default_factory=list)
    whole: Rate | None = None
    busiest: BottleneckLink | None = None
    late: int = 0
    """Calls that started too late on some rank, which don't count unless all did."""
    wrong_ranks: int = 0
    message_s: list[float] = field(default_factory=list)
    """Median time of each transfer of the plan."""

    @property
    def multiple_of_bound(self) -> float | None:
        """Time of the whole pattern over that of the busiest link; None where no capacity is known."""
        if self.whole is None or self.busiest is None or self.busiest.seconds <= 0:
            return None
        return self.whole.median_s / self.busiest.seconds


def evaluate(plan: Plan, seats: Seats, samples: dict[str, Any], messages: dict[str, Any]) -> PatternResult:
    """Return the rates of what patternbench wrote; of all calls where none started in time."""
    time_s, late_s = np.array(samples["time_s"]), np.array(samples["late_s"])
    good = in_time(time_s, late_s)
    if not good.any():
        good = np.ones_like(good)
        late_s = np.full_like(late_s, np.inf)
    made = PatternResult(plan, late=int((~in_time(time_s, late_s)).sum()), wrong_ranks=int(samples["wrong_ranks"]))
    count, total = [0] * len(plan.kinds), [0] * len(plan.kinds)
    for one in plan.transfers:
        count[one.kind] += 1
        total[one.kind] += one.bytes
    classes = {entry["class"]: entry for entry in samples["classes"]}
    for number, kind in enumerate(plan.kinds):
        times = np.array(classes[number]["end_s"])
        if kind.step > 0:
            times = times - np.array(classes[number]["begin_s"])
        made.rates.append(
            _rate(kind.part, kind.level, kind.step, count[number], total[number], np.maximum(times[good], 1e-9))
        )
    order = seats.level_names()
    made.rates.sort(key=lambda rate: (rate.step, rate.part, order.index(rate.level)))
    made.whole = _rate(WHOLE, "", 0, sum(count), sum(total), time_s[good])
    made.busiest = busiest(plan, seats)
    made.message_s = [0.0] * len(plan.transfers)
    for index, seconds in zip(messages["number"], messages["median_s"], strict=True):
        made.message_s[index] = seconds
    return made


def _rate(part: str, level: str, step: int, messages: int, size: int, times: Times) -> Rate:
    random = np.random.default_rng(0)
    drawn = np.median(times[random.integers(0, times.size, (RESAMPLES, times.size))], axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = (float(edge) for edge in np.percentile(drawn, [tail, 100 - tail]))
    return Rate(
        part, level, step, messages, size, times.size, float(times.min()), float(np.median(times)), low, high,
        float(times.max()),
    )  # fmt: skip


def busiest(plan: Plan, seats: Seats) -> BottleneckLink | None:
    """Return the busiest link of the slowest step, with the bound summed over all steps; None: no capacity known."""
    total_s, worst = 0.0, None
    for step in range(plan.steps):
        found = _busiest_of_step([one for one in plan.transfers if one.step == step], seats)
        if found is not None:
            total_s += found.seconds
            worst = found if worst is None or found.seconds > worst.seconds else worst
    return BottleneckLink(worst.text, worst.bytes, total_s) if worst is not None else None


def _busiest_of_step(transfers: Sequence[Any], seats: Seats) -> BottleneckLink | None:
    job = seats.job
    worst: BottleneckLink | None = None
    for level in job.levels:
        out, into = [0] * level.count, [0] * level.count
        for one in transfers:
            a = level.group_of(job.position_of(one.source))
            b = level.group_of(job.position_of(one.target))
            if a != b:
                out[a] += one.bytes
                into[b] += one.bytes
        for loads, word in ((out, "out of"), (into, "into")):
            for group, (size, capacity) in enumerate(zip(loads, level.up_bytes_per_s, strict=True)):
                if capacity > 0 and size > 0 and (worst is None or size / capacity > worst.seconds):
                    worst = BottleneckLink(f"{word} {level.names[group]}", size, size / capacity)
    return worst
