"""Placement of a measurement's ranks, and the level of the machine between two of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from palmette import _core
from palmette.patterns.errors import PatternError

INSIDE = "inside"
"""Name of the pairs of ranks that no level separates."""
SELF = "self"
"""Name of what a rank sends to itself."""


@dataclass(frozen=True)
class Seats:
    """The host of each rank, and the levels above them."""

    job: _core.Job
    hosts: tuple[str, ...]

    @classmethod
    def on(cls, machine: _core.Machine | None, hosts: Sequence[str]) -> Seats:
        """Return the seats of ranks on `hosts`; without a machine their hosts are all that is known.

        Raises _core.Error for a host that the machine doesn't have.
        """
        if machine is not None:
            return cls(_core.Job.on_hosts(machine, list(hosts)), tuple(hosts))
        numbers = {name: index for index, name in enumerate(dict.fromkeys(hosts))}
        return cls(_core.Job.from_groups(["node"], [[numbers[name]] for name in hosts]), tuple(hosts))

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.hosts)

    @property
    def order(self) -> list[int]:
        """All ranks in topology order."""
        return [self.job.rank_at(position) for position in range(self.ranks)]

    def level_between(self, one: int, other: int) -> str:
        """Return the outermost level that separates two ranks; INSIDE and SELF where none does."""
        if one == other:
            return SELF
        a, b = self.job.position_of(one), self.job.position_of(other)
        for level in self.job.levels:
            if level.group_of(a) != level.group_of(b):
                return level.name
        return INSIDE

    def level_names(self) -> list[str]:
        """All names that `level_between` may return, outermost first."""
        return [*(level.name for level in self.job.levels), INSIDE, SELF]

    def same_host(self, one: int, other: int) -> bool:
        """Whether two ranks share a host."""
        return self.hosts[one] == self.hosts[other]

    def on_host_of(self, rank: int) -> list[int]:
        """Return the ranks of a rank's host in topology order, beginning with it."""
        there = [other for other in self.order if self.same_host(rank, other)]
        at = there.index(rank)
        return there[at:] + there[:at]

    def groups(self, form: str | None, ranks: int) -> list[list[int]]:
        """Return the groups of the first `ranks` ranks in topology order: a number of groups, or those of a level.

        Without a form these are the hosts. Raises PatternError.
        """
        members = self.order[:ranks]
        if form is None:
            groups: dict[str, list[int]] = {}
            for rank in members:
                groups.setdefault(self.hosts[rank], []).append(rank)
            return list(groups.values())
        if form.isdecimal():
            count = int(form)
            if not 1 <= count <= ranks:
                raise PatternError(f"groups={form}: {ranks} ranks make 1 to {ranks} groups")
            edges = [ranks * group // count for group in range(count + 1)]
            return [members[first:end] for first, end in itertools.pairwise(edges)]
        level = self.job.level(form)
        if level is None:
            known = ", ".join(level.name for level in self.job.levels) or "none here"
            raise PatternError(f"groups={form}: no such level; give a number of groups, or a level: {known}")
        by_group: dict[int, list[int]] = {}
        for rank in members:
            by_group.setdefault(level.group_of(self.job.position_of(rank)), []).append(rank)
        return list(by_group.values())
