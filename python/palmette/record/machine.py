"""Where a recorded job's ranks sat: its hosts, and the switches above them where the cluster is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from palmette import _core
from palmette.plan.request import about_steps, details_of
from palmette.record.functions import COLLECTIVES, operation
from palmette.record.reading import Job, RecordError
from palmette.run.choices import KEPT_HOSTS, KEPT_TOPOLOGY


def groups_of_ranks(job: _core.Job) -> list[list[int]]:
    """Return by level, outermost first, and rank: the group that the rank sits in. Cost: O(levels ranks)."""
    positions = [job.position_of(rank) for rank in range(job.size)]
    return [[level.group_of(position) for position in positions] for level in job.levels]


@dataclass(frozen=True)
class Group:
    """A switch's or node's ranks, and the link out of it."""

    name: str
    level: int
    parent: int
    """Index into Seats.groups; -1: the root."""
    rate: float
    """Bytes a second in each direction; 0: unknown."""


@dataclass(frozen=True)
class Seats:
    """The occupied part of the machine. Groups stand by level, outermost first."""

    job: _core.Job
    network_levels: int
    """Levels from the outermost on whose links are the network's; what is below lies within nodes."""
    is_known: bool
    """Whether the machine is: else nodes alone are."""

    @property
    def spans_links(self) -> bool:
        """Whether the ranks sit on several nodes."""
        return any(level.count > 1 for level in self.job.levels[: self.network_levels])

    @cached_property
    def without_rates(self) -> list[str]:
        """Names of the levels, of those that tell ranks apart, with links whose capacity isn't known."""
        spanned = [level for level in self.job.levels[: self.network_levels] if level.count > 1]
        return [level.name for level in spanned if min(level.up_bytes_per_s, default=0.0) <= 0]

    @property
    def has_rates(self) -> bool:
        """Whether the capacities of all links are known that the ranks may use."""
        return self.is_known and not self.without_rates

    @property
    def has_whole_bounds(self) -> bool:
        """Whether all that the hardware needs at least is known: there are no links, or their rates are known."""
        return self.has_rates or not self.spans_links

    @property
    def levels(self) -> list[str]:
        """Names of all levels, outermost first."""
        return [level.name for level in self.job.levels]

    @cached_property
    def groups_of_ranks(self) -> list[list[int]]:
        """By level and rank: the group that the rank sits in. Cost: O(levels ranks)."""
        return groups_of_ranks(self.job)

    @cached_property
    def groups(self) -> list[Group]:
        """Groups of the network's levels."""
        found: list[Group] = []
        above: list[int] = []
        """Number of the groups of each level."""
        for depth, level in enumerate(self.job.levels[: self.network_levels]):
            base = sum(above[:-1]) if above else 0
            names, rates = level.names, level.up_bytes_per_s
            for group in range(level.count):
                parent = -1
                if depth:
                    parent = base + self.job.levels[depth - 1].group_of(level.first(group))
                found.append(Group(names[group], depth, parent, rates[group]))
            above.append(level.count)
        return found


def hosts_of(job: Job) -> tuple[Sequence[str] | None, str]:
    """Return the host of each rank, as it ran or was pretended to; where that isn't known, why, in a sentence."""
    kept_hosts = job.folder / KEPT_HOSTS
    if kept_hosts.is_file():
        try:
            hosts = kept_hosts.read_text(encoding="utf-8", errors="replace").split()
        except OSError as error:
            return None, f"{kept_hosts}: {error.strerror}; links and levels are left out"
        if len(hosts) < job.size:
            return None, f"{kept_hosts}: {len(hosts)} hosts for {job.size} ranks; links and levels are left out"
        return hosts[: job.size], ""
    by_rank = {process.recorded.rank: process.host for process in job.processes}
    if job.size == 0 or job.missing_ranks():
        return None, "of some ranks it isn't known where they sat: load balance of levels and links are left out"
    return [by_rank[rank] for rank in range(job.size)], ""


def seats_of(job: Job, topology: Path | None = None, hosts: Sequence[str] | None = None) -> tuple[Seats | None, str]:
    """Return where ranks sat, and what isn't known of it in a sentence.

    `topology` and `hosts` (of rank 0, 1, ...) override what was kept with the recording. Raises RecordError where one
    of them is wrong.
    """
    kept = job.folder / KEPT_TOPOLOGY
    path = topology or (kept if kept.is_file() else None)
    if hosts is None:
        hosts, why = hosts_of(job)
        if hosts is None:
            return None, why
    elif len(hosts) < job.size:
        raise RecordError(f"{len(hosts)} hosts for {job.size} ranks; name one for each rank")
    hosts = list(hosts)[: job.size]
    if path is None:
        names = list(dict.fromkeys(hosts))
        numbers = {name: number for number, name in enumerate(names)}
        flat = _core.Job.from_groups(["node"], [[numbers[host]] for host in hosts])
        more = "switches aren't known: nodes alone are shown (give --topology FILE, which `palmette discover` makes)"
        return Seats(flat, 1, is_known=False), more if len(names) > 1 else ""
    try:
        machine = _core.Machine.from_file(str(path))
        placed = _core.Job.on_hosts(machine, hosts)
    except _core.Error as error:
        if topology is not None:
            raise RecordError(str(error)) from None
        return None, f"{error}; links and levels are left out"
    names = [level.name for level in placed.levels]
    network = names.index("node") + 1 if "node" in names else len(names)
    seats = Seats(placed, network, is_known=True)
    if missing := seats.without_rates:
        links = f"how much the links of {', '.join(missing)} can carry isn't known (`palmette calibrate` measures it)"
        return seats, f"{links}: what they need at least isn't told"
    return seats, ""


def plain_collective(function: str) -> str:
    """Return the name that commands know a collective by: MPI_Iallreduce is allreduce; nothing where it is none."""
    name = operation(function)
    return name if name in COLLECTIVES else ""


MOST_STEPS = 3_000_000
"""Steps of the longest plan that is simulated."""
_FOR_ALL = ("alltoall", "reduce_scatter_block")
"""Collectives whose calls' bytes are those of all blocks together."""
_UNIFORM = (*_FOR_ALL, "allgather", "gather", "scatter", "bcast", "reduce", "allreduce", "barrier", "scan", "exscan")
"""Collectives whose blocks are of one size, so that a rank's call tells all."""
_EXCHANGES = ("alltoallv", "alltoallw")
"""The bytes of a rank's call are all that it sends."""


def is_bounded(function: str) -> bool:
    """Whether a lower bound of a collective is known from a rank's call."""
    return plain_collective(function) in _UNIFORM


def is_exchange(function: str) -> bool:
    """Whether a function exchanges blocks between all ranks, with a count for each."""
    return plain_collective(function) in _EXCHANGES


def mean_block(function: str, bytes_of_call: int, ranks: int) -> int:
    """Return the bytes of a block, as commands take them, of a rank's call among so many ranks."""
    return bytes_of_call // ranks if plain_collective(function) in (*_FOR_ALL, *_EXCHANGES) else bytes_of_call


@dataclass
class Limits:
    """Lower bounds of collectives that the MPI itself did, on the job's tree: `palmette plan --bound`'s."""

    seats: Seats

    def __post_init__(self) -> None:
        self._jobs: dict[tuple[int, ...], _core.Job] = {}
        self._costs: dict[_core.Job, _core.Costs] = {}

    def collective(self, function: str, ranks: Sequence[int], bytes_of_call: int) -> tuple[str, int] | None:
        """Return the collective and its block's bytes; None where calls of one rank don't tell."""
        name = plain_collective(function)
        if name not in _UNIFORM:
            return None
        return _core.collective_of(name), mean_block(function, bytes_of_call, len(ranks))

    def seconds(self, function: str, ranks: Sequence[int], root: int, bytes_of_call: int) -> float:
        """Return the least time of such a call; 0: nothing is known."""
        what = self.collective(function, ranks, bytes_of_call)
        if what is None or not self.seats.has_rates:
            return 0.0
        try:
            return _core.bound(self.job_of(ranks), what[0], what[1], max(0, root)).seconds
        except _core.Error:
            return 0.0

    def predicted(
        self, function: str, ranks: Sequence[int], root: int, bytes_of_call: int, algorithm: str
    ) -> tuple[float, float]:
        """Return how many steps its plan has, about, and what the model says of such a call; 0: nothing is known."""
        what = self.collective(function, ranks, bytes_of_call)
        if what is None or not self.seats.has_rates:
            return 0.0, 0.0
        return self._played(self.job_of(ranks), what[0], algorithm, max(0, root), what[1])

    def predicted_on(self, job: _core.Job, collective: str, spec: str, root: int, block: int) -> float | None:
        """Return the model's time of a collective on a job; None where its plan is too large to be simulated."""
        return self._played(job, collective, spec, root, block)[1] or None

    def _played(self, job: _core.Job, collective: str, spec: str, root: int, block: int) -> tuple[float, float]:
        details = details_of(collective, shared_memory=True)
        try:
            steps = about_steps(job, collective, spec, root, block, details)
            if steps > MOST_STEPS:
                return 0.0, 0.0
            if job not in self._costs:
                self._costs[job] = _core.Costs.of(job)
            costs = self._costs[job]
            return steps, _core.predict_algorithm(job, collective, spec, costs, root, block, **details).seconds
        except _core.Error:
            return 0.0, 0.0

    def crossing(
        self, function: str, ranks: Sequence[int], root: int, bytes_of_call: int
    ) -> list[tuple[int, int, int]]:
        """Return (index into Seats.groups, least bytes out, least bytes in) of one such call; empty: not known."""
        what = self.collective(function, ranks, bytes_of_call)
        if what is None or not ranks:
            return []
        job = self.job_of(ranks)
        names = self.seats.levels[: self.seats.network_levels]
        found = []
        for index, level in enumerate(job.levels):
            if level.name not in names:
                continue
            try:
                edges = _core.bound_edges(job, what[0], what[1], index, max(0, root))
            except _core.Error:
                return []
            depth = names.index(level.name)
            above = sum(one.count for one in self.seats.job.levels[:depth])
            for edge in edges:
                if edge.bytes_out or edge.bytes_in:
                    member = ranks[job.rank_at(level.first(edge.group))]
                    group = above + self.seats.groups_of_ranks[depth][member]
                    found.append((group, edge.bytes_out, edge.bytes_in))
        return found

    def job_of(self, ranks: Sequence[int]) -> _core.Job:
        """Return the part that a communicator of those ranks holds, the same object each time. Raises _core.Error."""
        key = tuple(ranks)
        if key not in self._jobs:
            whole = key == tuple(range(self.seats.job.size))
            self._jobs[key] = self.seats.job if whole else self.seats.job.restricted_to(list(ranks))
        return self._jobs[key]
