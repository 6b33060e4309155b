"""An invented machine that answers experiments as a real job would, with noise; and what it knows to be true."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from palmette.calibrate.layout import Layout
from palmette.measure.session import JobLine, Pair
from palmette.topology.model import Topology, TreeNode


@dataclass
class Costs:
    """The truth about a level."""

    latency_s: float
    overhead_s: float
    stream: float


@dataclass
class InventedJob:
    """Answers for the ranks of `layout`. `costs` by level name (None: one host), `capacity` by the name of a tree node.

    `channels`: what all ranks of a host together copy, or send each other.
    """

    layout: Layout
    costs: dict[str | None, Costs]
    capacity: dict[str, float]
    noise: float = 0.01
    copy: float = 8e9
    reduce: float = 5e9
    channels: float = math.inf
    asked: Counter[str] = field(default_factory=Counter)
    busiest: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.above: list[list[TreeNode]] = []
        parents = {id(c): n for n in self.layout.machine.tree.walk() for c in n.children}
        for host in self.layout.nodes:
            chain, node = [], host
            while node.level is not None:
                chain.append(node)
                node = parents[id(node)]
            self.above.append(chain)

    def ask(
        self, what: str, numbers: Sequence[float], pairs: Sequence[Pair], seconds: float = 1.0
    ) -> list[list[float]]:
        """Answer as src/programs/calibrate.c does."""
        self.asked[what] += 1
        self.busiest = max(self.busiest, len(pairs))
        ranks = [rank for pair in pairs for rank in set(pair)]
        if what != "star":
            assert len(ranks) == len(set(ranks)), "a rank stands in two pairs"
        if what == "stream":
            return [[self.noisy(rate)] for rate in self.shares(pairs)]
        if what == "memory":
            on = [self.layout.nodes[a].name for a, _ in pairs]
            copies = [min(self.copy, self.channels / on.count(host)) for host in on]
            return [[self.noisy(copy), self.noisy(self.reduce)] for copy in copies]
        return [self.answer(what, numbers, a, b) for a, b in pairs]

    def answer(self, what: str, numbers: Sequence[float], a: int, b: int) -> list[float]:
        """The figures of one pair."""
        cost = self.cost(a, b)
        count = int(numbers[1])
        if what in ("pingpong", "star"):
            half_s = cost.latency_s + numbers[0] / cost.stream
            times = [self.noisy(half_s) for _ in range(count)]
            return times if what == "pingpong" else [float(q) for q in np.quantile(times, (0, 0.25, 0.5))]
        if what == "overhead":
            return [self.noisy(0.8 * cost.overhead_s) for _ in range(count)] + [
                self.noisy(1.2 * cost.overhead_s) for _ in range(count)
            ]
        assert what == "burst"
        return [self.noisy(2 * cost.latency_s + (count - 1) * 1.5 * cost.overhead_s) for _ in range(int(numbers[2]))]

    def cost(self, a: int, b: int) -> Costs:
        """The truth about a pair."""
        index = self.layout.separating_level(a, b)
        return self.costs[None if index is None else self.layout.levels[index]]

    def shares(self, pairs: Sequence[Pair]) -> list[float]:
        """The rate of each flow where flows share their fullest edge evenly."""
        load: Counter[tuple[str, str]] = Counter()
        routes = [self.route(a, b) for a, b in pairs]
        for route in routes:
            load.update(route)
        inside = Counter(self.layout.nodes[a].name for (a, _), route in zip(pairs, routes, strict=True) if not route)
        return [
            min(
                [
                    self.cost(a, b).stream,
                    *(self.capacity[edge] / load[edge, way] for edge, way in route if edge in self.capacity),
                    *(() if route else (self.channels / inside[self.layout.nodes[a].name],)),
                ]
            )
            for (a, b), route in zip(pairs, routes, strict=True)
        ]

    def route(self, a: int, b: int) -> list[tuple[str, str]]:
        """The edges between two ranks, with the direction."""
        up, down = self.above[a], self.above[b]
        return [(n.name, "up") for n in up if n not in down] + [(n.name, "down") for n in down if n not in up]

    def noisy(self, value: float) -> float:
        """A measurement of a true value."""
        return float(value * np.exp(self.noise * self.random.standard_normal()))


LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
TRUTH: dict[str | None, Costs] = {
    "leaf": Costs(5e-3, 20e-6, 6.25e6),
    "node": Costs(90e-6, 12e-6, 12.5e6),
    "core": Costs(2e-6, 0.5e-6, 4e9),
    None: Costs(1e-6, 0.3e-6, 5e9),
}


def layout_of(topology: Topology, hosts: list[str] | None = None) -> Layout:
    """The layout of a job: a rank in each slot, or on the hosts given."""
    machine = topology.machine
    if hosts is None:
        hosts = []
        for host in machine.tree.hosts():
            slots = sum(group.leaves() for group in machine.insides.get(host.inside or "", [])) or host.slots or 1
            hosts += [host.name] * slots
    return Layout(machine, job_line(hosts), "topology.json")


def job_line(hosts: Sequence[str], sockets: Sequence[int] | None = None) -> JobLine:
    """What a job with ranks on these hosts says of itself."""
    return JobLine("MPICH 5.0.2", list(hosts), list(hosts), list(sockets or [-1] * len(hosts)))
