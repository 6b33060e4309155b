"""Memory bandwidth contention on a node: the aggregate copy rate of 1, 2, 4, ... concurrent ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palmette.calibrate.steps import MEMORY_BLOCK, MEMORY_S, SharingStep, flow_counts
from palmette.measure.session import Asker


@dataclass
class NodeMemoryStep(SharingStep):
    """The aggregate copy rate of 1, 2, 4, ... ranks of a host.

    Each rank copies within its own memory; they share caches, memory channels and, where oversubscribed, processors.
    """

    host: str
    ranks: Sequence[int]

    def __post_init__(self) -> None:
        self.label = f"memory of {self.host}"

    def repeat(self, asker: Asker) -> None:
        """Measure each number of ranks once."""
        for count in flow_counts(len(self.ranks)):
            pairs = [(rank, rank) for rank in self.ranks[:count]]
            copied = [of_rank[0] for of_rank in asker.ask("memory", (MEMORY_BLOCK, MEMORY_S), pairs, 4 * MEMORY_S)]
            if all(copied):  # invalid where a rank was not scheduled in that time
                self.rates.setdefault(count, []).append(sum(copied))
