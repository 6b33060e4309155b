"""Lower bound on broadcast latency with bandwidth: messages keep their sender busy, and each host has one link.

The postal model (src/palmette/model/bound/spread.hpp) extended by bytes. Ranks sit on hosts, hosts in groups; *home* is
the group of the root (or the root's host alone). Bounded is the time until the hosts outside of it have the vector:

- A rank is informed once it has received any byte. An informed rank may begin a message each gap, an intra-node and an
  inter-node one concurrently. A host that is entered again counts as a new one; no more ranks and hosts are informed
  than there are.
- A message carries at most one copy of the vector. Copies leave no faster than the links of the informed hosts allow.
- Each byte has to reach each rank of each host. A copy that arrives with so much time left contributes at most the
  share of the host's ranks that intra-node messages can still inform; averaged over bytes, these shares must add up to
  one for each host.

Each of these is a relaxation, so that no schedule is faster, whether it cuts the vector or not. Reversed in time, with
the receivers' gaps, it is a lower bound on the time of a reduction to the root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palmette import _core

_STEPS_A_COST = 20
"""Time steps in the smallest gap or latency; all times are rounded down to steps."""
_STEPS_A_LATENCY = 512
"""At most, of the longest one."""
_MOST_STEPS = 1 << 14
"""If the vector can't be everywhere by then, that is the bound."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps for which a message keeps one end busy, and the least intra-node latency, in seconds."""

    inside_s: float
    between_s: float
    inside_latency_s: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of messages, in seconds: a latency includes both overheads and the wire, a gap keeps one end busy."""

    gaps: Gaps
    near_latency_s: float
    """The least between hosts."""
    far_latency_s: float
    """The least between home and the rest."""
    link_bytes_per_s: float
    """Of the fastest host; infinite: unknown."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers of hosts at home and outside, and of their ranks."""

    root_ranks: int
    """Of the root's host."""
    home_hosts: int
    most_home_ranks: int
    """Of one host at home."""
    hosts: int
    """Outside."""
    fewest_ranks: int
    most_ranks: int


def least_of_job_s(job: _core.Job, root: int, gaps: Gaps, size_bytes: int) -> float:
    """Return the largest of these limits in seconds, home being the root's host, or its group at a level; 0: none."""
    levels = job.levels[: [level.name for level in job.levels].index("node") + 1]
    hosts = levels[-1]
    position = job.position_of(root)
    near_s = min(level.latency_s for level in levels)
    rates = hosts.up_bytes_per_s
    found_s = 0.0
    for index, level in enumerate(levels):
        home = level.group_of(position)
        at_home: list[int] = []
        outside: list[int] = []
        for host, ranks in enumerate(hosts.sizes):
            (at_home if level.group_of(hosts.first(host)) == home else outside).append(ranks)
        if not outside:
            continue
        root_ranks = hosts.sizes[hosts.group_of(position)]
        shape = Shape(root_ranks, len(at_home), max(at_home), len(outside), min(outside), max(outside))
        far_s = min(above.latency_s for above in levels[: index + 1])
        link = max(rates) if min(rates) > 0 else float("inf")
        costs = Costs(gaps, near_s, far_s, link)
        found_s = max(found_s, least_delivery_s(shape, costs, size_bytes))
    return found_s


def least_delivery_s(shape: Shape, costs: Costs, size_bytes: int) -> float:
    """Return a lower bound on the time in seconds until all ranks outside of home have the root's vector; 0: no bound.

    Time: the square of the bound in steps, of which there are 2 ** 14 at most.
    """
    times = _times(costs)
    step_s = max(min(times) / _STEPS_A_COST, max(times) / _STEPS_A_LATENCY)
    if min(times) < step_s or min(times) <= 0 or shape.hosts < 1:
        return 0.0
    steps = 1024
    while (found := _first_step(shape, costs, size_bytes, step_s, steps)) is None and steps < _MOST_STEPS:
        steps *= 2
    return (steps if found is None else found) * step_s


def _times(costs: Costs) -> tuple[float, float, float, float, float]:
    gaps = costs.gaps
    return gaps.inside_s, gaps.inside_latency_s, gaps.between_s, costs.near_latency_s, costs.far_latency_s


class _Region:
    """Home, or all the rest: informed ranks, and the copies that have left its hosts."""

    def __init__(self, steps: int, hosts: int, ranks: int) -> None:
        self.begun = np.zeros(steps)
        """Messages to other hosts, by the step in which they begin."""
        self.left = np.zeros(steps)
        """Copies that the links can transmit."""
        self._informed = np.zeros(steps)
        self._hosts, self._ranks = hosts, ranks
        self._entries_left, self._ranks_left = float(ranks), float(ranks)
        self._entered, self._waiting = 0.0, 0.0

    def enter(self, step: int, entries: float, growth: NDArray[np.float64]) -> None:
        """Inform ranks of new hosts by inter-node messages; `growth`: ranks of a host informed after its first one."""
        entries = min(entries, self._entries_left)
        if entries > 0:
            self._entries_left -= entries
            self._entered = min(self._entered + entries, self._hosts)
            self._informed[step:] += entries * growth[: len(self._informed) - step]

    def advance(self, step: int, gap: int, copies_a_step: float) -> None:
        """Informed ranks begin messages, and links transmit the queued copies."""
        new = min(float(self._informed[step]), self._ranks_left)
        self._ranks_left -= new
        self.begun[step] = new + _at(self.begun, step - gap)
        self._waiting += self.begun[step]
        self.left[step] = min(self._waiting, copies_a_step * self._entered)
        self._waiting -= self.left[step]


def _first_step(shape: Shape, costs: Costs, size_bytes: int, step_s: float, steps: int) -> int | None:
    inside_gap, inside, gap, near, far = (int(cost_s / step_s * (1 + 1e-12)) for cost_s in _times(costs))
    copies_a_step = costs.link_bytes_per_s * step_s / size_bytes if size_bytes > 0 else float("inf")
    growth_at_home = _growth(shape.most_home_ranks, inside_gap, inside, steps)
    growth = _growth(shape.most_ranks, inside_gap, inside, steps)
    home = _Region(steps, shape.home_hosts, shape.home_hosts * shape.most_home_ranks)
    rest = _Region(steps, shape.hosts, shape.hosts * shape.most_ranks)
    copies = np.zeros(steps)
    home.enter(0, 1.0, _growth(shape.root_ranks, inside_gap, inside, steps))
    for step in range(steps):
        home.enter(step, _at(home.begun, step - near) + _at(rest.begun, step - far), growth_at_home)
        rest.enter(step, _at(home.begun, step - far) + _at(rest.begun, step - near), growth)
        home.advance(step, gap, copies_a_step)
        rest.advance(step, gap, copies_a_step)
        copies[step] = _at(home.left, step - far) + _at(rest.left, step - near)
    shares = np.minimum(np.cumsum(growth) / shape.fewest_ranks, 1.0)
    reached = np.convolve(copies, shares)[:steps] >= shape.hosts * (1 - 1e-9)
    return int(np.argmax(reached)) if reached.any() else None


def _growth(ranks: int, gap: int, latency: int, steps: int) -> NDArray[np.float64]:
    """How many of a host's ranks are informed in each step, the first one in step 0."""
    new, begun = np.zeros(steps), np.zeros(steps)
    left = float(ranks)
    for step in range(steps):
        new[step] = min(_at(begun, step - latency) if step else 1.0, left)
        left -= new[step]
        begun[step] = new[step] + _at(begun, step - gap)
    return new


def _at(values: NDArray[np.float64], step: int) -> float:
    return float(values[step]) if step >= 0 else 0.0
