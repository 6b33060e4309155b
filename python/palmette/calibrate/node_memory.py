"""How ranks of one node share its memory: what 1, 2, 4, ... of them copy at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palmette.calibrate.steps import MEMORY_BLOCK, MEMORY_S, SharingStep, flow_counts
from palmette.measure.session import Asker


@dataclass
class NodeMemoryStep(SharingStep):
    """What 1, 2, 4, ... ranks of a host copied together.

    Each rank copies in memory of its own; what they share are caches, memory channels and, where there are more
    ranks than processors, those.
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
            if all(copied):  # a rank that was not given a processor in that time tells nothing
                self.rates.setdefault(count, []).append(sum(copied))
