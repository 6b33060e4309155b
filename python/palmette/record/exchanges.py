"""Exchanges with a count for each block, in the rows and columns of a grid of ranks at the same time.

A bound for one communicator knows nothing of the others on the same links, so that all of a row or column are taken
together here: the time is that of the fullest link on a communicator's way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palmette import _core
from palmette.record.machine import groups_of_ranks


@dataclass
class _Family:
    """Communicators without a common rank, each with the bytes of a block."""

    ranks: set[int] = field(default_factory=set)
    blocks: dict[tuple[int, ...], int] = field(default_factory=dict)


class Exchanges:
    """What is exchanged at the same time, and how long links need for it."""

    def __init__(self) -> None:
        self._families: dict[str, list[_Family]] = {}
        self._seconds: dict[tuple[int, int], dict[tuple[int, ...], float]] = {}

    def add(self, function: str, ranks: Sequence[int], block: int) -> None:
        """Note an exchange; of several between the same ranks the largest counts."""
        key = tuple(ranks)
        families = self._families.setdefault(function, [])
        known = next((one for one in families if key in one.blocks), None)
        if known is None:
            known = next((one for one in families if one.ranks.isdisjoint(key)), None)
        if known is None:
            known = _Family()
            families.append(known)
        known.ranks.update(key)
        known.blocks[key] = max(block, known.blocks.get(key, 0))

    def seconds(self, job: _core.Job, function: str, ranks: Sequence[int]) -> float:
        """Return the time of the fullest link that these ranks' blocks cross; 0: none, or no rate is known.

        Cost: once for each job and family, O(levels (ranks + groups) communicators).
        """
        key = tuple(ranks)
        family = next(one for one in self._families[function] if key in one.blocks)
        kept = (id(job), id(family))
        if kept not in self._seconds:
            self._seconds[kept] = _times(job, family)
        return self._seconds[kept][key]


def _times(job: _core.Job, family: _Family) -> dict[tuple[int, ...], float]:
    found = dict.fromkeys(family.blocks, 0.0)
    for level, groups in zip(job.levels, groups_of_ranks(job), strict=True):
        rates = np.array(level.up_bytes_per_s) * (1 - np.array(level.load))
        group_of = np.array(groups)
        crossing: dict[tuple[int, ...], NDArray[np.float64]] = {}
        for ranks, block in family.blocks.items():
            inside = np.bincount(group_of[list(ranks)], minlength=level.count).astype(np.float64)
            crossing[ranks] = inside * (len(ranks) - inside) * block
        whole = np.sum(list(crossing.values()), axis=0)
        took = np.divide(whole, rates, out=np.zeros(level.count), where=rates > 0)
        for ranks, own in crossing.items():
            found[ranks] = max(found[ranks], float(np.max(took, where=own > 0, initial=0.0)))
    return found
