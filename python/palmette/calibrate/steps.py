"""The measurements: latency, overhead and gap, stream rate, contention, memory; each a step repeated until convergence.

A repetition adds one value per pair (the median of its samples) or per number of flows. It derives the number of
samples from the times of earlier repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from palmette.calibrate.estimate import Estimate, median
from palmette.calibrate.layout import EdgePlan, LevelPlan
from palmette.calibrate.sharing import Fit, fit
from palmette.measure.session import Asker, Pair

ROUND_S = 0.15
"""Approximate time of one repetition of one pair."""
TINY_BYTES = 1
BURST = 32
PILOT_BYTES = 64 << 10
SMALLEST_MESSAGE, LARGEST_MESSAGE = 64 << 10, 4 << 20
MESSAGE_S = 5e-3
"""Transfer time of a stream's message: far above its overhead, far below the measurement."""
WARMUP_S = 0.15
"""Flows run this long before they are timed, until queues on the path have reached a steady state."""
MEMORY_BLOCK = 256 << 10
MEMORY_S = 0.05


class Step(Protocol):
    """One measurement."""

    label: str

    def repeat(self, asker: Asker) -> None:
        """Measure once more. Raises CalibrateError when the job fails."""
        ...

    @property
    def error(self) -> float:
        """The largest relative error of its values; infinite before there is one."""
        ...


def _measured(
    asker: Asker, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float, at_once: bool
) -> Iterator[list[float]]:
    """Yield the values of each pair, measured concurrently or one after the other."""
    for some in [pairs] if at_once else [[pair] for pair in pairs]:
        yield from asker.ask(what, numbers, some, seconds)


def _whole(value: float, low: int, high: int) -> int:
    return int(min(max(value, low), high))


@dataclass
class LatencyStep:
    """Half of the round trip time of a tiny message, per pair."""

    level: LevelPlan
    at_once: bool
    latency: Estimate = field(default_factory=Estimate)
    samples: int = 0

    def __post_init__(self) -> None:
        self.label = f"latency {self.level.name or 'on one host'}"

    def repeat(self, asker: Asker) -> None:
        """Ping-pong with each pair; the first time with a pilot run that determines the number of trips."""
        known = self.latency.mean
        if math.isnan(known):
            pilot = _measured(asker, "pingpong", (TINY_BYTES, 5), self.level.pairs, 1, self.at_once)
            known = max(median(half_s) for half_s in pilot)
        trips = _whole(ROUND_S / (2 * known), 10, 1000)
        asked = _measured(asker, "pingpong", (TINY_BYTES, trips), self.level.pairs, 2 * known * trips, self.at_once)
        for half_s in asked:
            self.latency.add(median(half_s))
            self.samples += len(half_s)

    @property
    def error(self) -> float:
        return self.latency.error


@dataclass
class OverheadStep:
    """Overhead o of a tiny message: the time in its send, and in the receive of one that has already arrived.

    Also the gap g: the interval between arrivals of messages that are sent back to back.
    """

    level: LevelPlan
    latency: LatencyStep
    at_once: bool
    send: Estimate = field(default_factory=Estimate)
    receive: Estimate = field(default_factory=Estimate)
    both: Estimate = field(default_factory=Estimate)
    gap: Estimate = field(default_factory=Estimate)

    def __post_init__(self) -> None:
        self.label = f"overhead {self.level.name or 'on one host'}"

    def repeat(self, asker: Asker) -> None:
        """Measure sends, receives and bursts with each pair; needs a repetition of the latency before."""
        latency_s = self.latency.latency.mean
        wait_s = 4 * latency_s + 200e-6  # a round trip, and as much again
        count = _whole(ROUND_S / wait_s, 10, 400)
        numbers = (TINY_BYTES, count, wait_s)
        for times in _measured(asker, "overhead", numbers, self.level.pairs, count * wait_s, self.at_once):
            send, receive = median(times[:count]), median(times[count:])
            self.send.add(send)
            self.receive.add(receive)
            self.both.add((send + receive) / 2)
        trips = _whole(ROUND_S / 2 / (4 * latency_s), 5, 100)
        timed: list[list[float]] = []
        for messages in (1, 1 + BURST):
            asked = _measured(
                asker, "burst", (TINY_BYTES, messages, trips), self.level.pairs, 4 * latency_s * trips, self.at_once
            )
            timed.append([median(times) for times in asked])
        for one, many in zip(*timed, strict=True):
            self.gap.add(max(many - one, 0) / BURST)

    @property
    def error(self) -> float:
        return self.both.error


@dataclass
class StreamStep:
    """Bytes per second of large messages, per pair."""

    level: LevelPlan
    at_once: bool
    stream: Estimate = field(default_factory=Estimate)
    message_bytes: int = 0

    def __post_init__(self) -> None:
        self.label = f"stream {self.level.name or 'on one host'}"

    def repeat(self, asker: Asker) -> None:
        """Stream large messages with each pair."""
        if not self.message_bytes:
            pilot = _measured(asker, "pingpong", (PILOT_BYTES, 3), self.level.pairs, 1, self.at_once)
            self.message_bytes = message_bytes(PILOT_BYTES / min(median(half_s) for half_s in pilot))
        numbers = (self.message_bytes, WARMUP_S, ROUND_S)
        for rates in _measured(asker, "stream", numbers, self.level.pairs, WARMUP_S + ROUND_S, self.at_once):
            self.stream.add(rates[0])

    @property
    def error(self) -> float:
        return self.stream.error


def message_bytes(bytes_per_s: float) -> int:
    """Return the size of a stream's messages: a power of two that takes about MESSAGE_S."""
    wanted = max(bytes_per_s * MESSAGE_S, 1)
    return int(min(max(2 ** round(math.log2(wanted)), SMALLEST_MESSAGE), LARGEST_MESSAGE))


@dataclass(kw_only=True)
class SharingStep:
    """Aggregate rate of 1, 2, 4, ... users of a shared resource; `rates`: by their number, bytes per second of each
    repetition.
    """

    rates: dict[int, list[float]] = field(default_factory=dict)

    @property
    def fit(self) -> Fit:
        """Capacity of the shared resource. Raises ValueError before there is a value."""
        return fit(self.rates)

    @property
    def error(self) -> float:
        """Relative, 95 %; infinite before there is a value."""
        return self.fit.error if self.rates else math.inf


@dataclass
class SharedStep(SharingStep):
    """Aggregate rate of 1, 2, 4, ... concurrent flows over one edge, and of as many in both directions."""

    level: LevelPlan
    edge: EdgePlan
    stream: StreamStep
    both_ways: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.label = f"sharing {self.edge.node.name}" + ("" if self.edge.alike else "'s memory")

    def repeat(self, asker: Asker) -> None:
        """Measure each number of flows once; needs a repetition of the stream before."""
        size = self.stream.message_bytes
        for flows in flow_counts(len(self.edge.flows)):
            self.rates.setdefault(flows, []).append(self._together(asker, size, self.edge.flows[:flows]))
        half = len(self.edge.flows) // 2
        if half:
            there, back = self.edge.flows[:half], self.edge.flows[half : 2 * half]
            self.both_ways.append(self._together(asker, size, [*there, *((b, a) for a, b in back)]))

    def _together(self, asker: Asker, size: int, flows: Sequence[Pair]) -> float:
        # Each flow gets only its share: the time for enough messages grows with their number.
        slow = len(flows) * size / max(self.stream.stream.mean, 1)
        seconds = max(ROUND_S, min(8 * slow, 4.0))
        return sum(rate[0] for rate in asker.ask("stream", (size, WARMUP_S, seconds), flows, WARMUP_S + seconds))


def flow_counts(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to `most`, and `most` itself."""
    counts = [2**i for i in range(most.bit_length()) if 2**i <= most]
    return counts if counts[-1] == most else [*counts, most]


@dataclass
class MemoryStep:
    """Copy and reduction rates of one rank in its own memory, on a few hosts."""

    ranks: Sequence[int]
    at_once: bool
    copy: Estimate = field(default_factory=Estimate)
    reduce: Estimate = field(default_factory=Estimate)

    def __post_init__(self) -> None:
        self.label = "memory"

    def repeat(self, asker: Asker) -> None:
        """Measure both on each of the ranks."""
        pairs = [(rank, rank) for rank in self.ranks]
        for copied, reduced in _measured(asker, "memory", (MEMORY_BLOCK, MEMORY_S), pairs, 4 * MEMORY_S, self.at_once):
            self.copy.add(copied or math.nan)
            self.reduce.add(reduced or math.nan)

    @property
    def error(self) -> float:
        return max(self.copy.error, self.reduce.error)
