"""What decides the algorithm of a call: a setting, or a row of the decision table; and why earlier rows don't match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypedDict

from palmette import _core, settings

_ANY = 2**31 - 1
_ANY_BYTES = 2**63 - 1
_SINGULAR = {" ranks": " rank", " nodes": " node", " switches": " switch", " ranks a node": " rank a node"}


@dataclass(frozen=True)
class CollectiveCall:
    """A call as the runtime sees it: MPI function (`allreduce`), bytes of block or vector (-1: unknown), root, job."""

    function: str
    size_bytes: int
    root: int
    job: _core.Job
    mpi: str = ""
    oversubscribed: bool = False
    blocking: bool = True
    ordered: bool = False
    shared_memory: bool = True
    reproducible: bool = False
    aggregators: bool = False
    """Whether a token for those of the topology is given."""

    @property
    def in_rank_order(self) -> bool:
        """Whether the plan uses rank order and ignores the placement: reproducible reductions, and noncommutative
        operations over scattered ranks.
        """
        ordered = self.ordered and _core.is_scattered(self.job)
        return _core.is_reduction(_core.collective_of(self.function)) and (ordered or self.reproducible)

    @property
    def planned_job(self) -> _core.Job:
        """The job that the runtime plans for."""
        return _core.Job.flat(self.job.size) if self.in_rank_order else self.job

    @property
    def may_share(self) -> bool:
        """Whether ranks of a node may read each other's memory."""
        return self.shared_memory and self.blocking and not self.in_rank_order


@dataclass(frozen=True)
class RowCheck:
    """A row of the table, and why it doesn't match; empty: it decides.

    `measurable`: the reason is a property of links, which a measurement might change.
    """

    number: int
    limits: str
    algorithm: str
    why: str
    why_not: str
    measurable: bool = False


@dataclass(frozen=True)
class Decision:
    """The chosen algorithm, `mpi` for the MPI's own; `forced_by` a setting, `row` of the table, or neither where no row
    matches.

    `reason` is the table's, as in the report of a run. `on_trial`: blocking calls are the MPI's until comparing them
    with it shows that this is faster. `refused`: the algorithm of a setting that can't serve the call.
    `by_aggregators`: the topology's aggregators make it faster than any row.
    """

    asked: CollectiveCall
    table: str
    algorithm: str
    reason: str
    forced_by: str | None
    row: RowCheck | None
    passed_over: list[RowCheck]
    refused: str | None = None
    by_aggregators: bool = False
    on_trial: bool = False


NONE = "none"
"""The algorithm of a call without bytes: it sends nothing, and the table isn't consulted."""
REPRODUCIBLE = "PALMETTE_REPRODUCIBLE"
"""The setting that fixes the algorithm of reductions."""
OFF = "PALMETTE_ENABLE"
"""The setting that leaves every call to the MPI."""


def decide(
    asked: CollectiveCall, table: _core.Table, table_name: str, forced: Mapping[str, str] | None = None
) -> Decision:
    """Return the decision for a call under a table; `forced` maps functions to algorithms that settings force.

    Raises _core.Error, also for an unknown algorithm in a setting.
    """
    taken = (forced or {}).get(asked.function)
    setting = f"{settings.FORCE}={asked.function}"
    if taken not in (None, "mpi"):
        _check(asked, taken, setting)
    route = table.route(
        asked.function, asked.job, asked.root, asked.size_bytes, **_details(asked),
        forced=taken, reproducible=asked.reproducible, aggregators=asked.aggregators,
    )  # fmt: skip
    if route.algorithm == NONE:
        return Decision(asked, table_name, NONE, route.reason, None, None, [])
    algorithm = route.algorithm or "mpi"
    if not taken and asked.reproducible and _core.is_reduction(_core.collective_of(asked.function)):
        return Decision(asked, table_name, algorithm, route.reason, REPRODUCIBLE, None, [])
    checks = check_rows(asked, table)
    row = next((check for check in checks if not check.why_not), None)
    before = [check for check in checks if check.why_not]
    if taken:
        reason = route.reason if route.refused else f"forced by {setting}"
        return Decision(asked, table_name, algorithm, reason, setting, row, before, route.refused)
    return Decision(
        asked, table_name, algorithm, route.reason, None, row, before,
        by_aggregators=route.aggregates and (row is None or not row.algorithm.startswith("in_network")),
        on_trial=route.on_trial and not route.aggregates,
    )  # fmt: skip


def switched_off(asked: CollectiveCall, table_name: str) -> Decision:
    """Return the decision that leaves every call to the MPI."""
    return Decision(asked, table_name, "mpi", f"switched off by {OFF}=0", OFF, None, [])


def _check(asked: CollectiveCall, spec: str, setting: str) -> None:
    """Raise _core.Error for an algorithm that there isn't, or keys that it doesn't have."""
    collective = _core.collective_of(asked.function)
    try:
        _core.refusal(asked.planned_job, collective, spec, asked.root, max(asked.size_bytes, 1))
    except _core.Error as error:
        raise _core.Error(f"{setting}={spec}: {error}") from None


def _details(asked: CollectiveCall) -> _ChoiceDetails:
    return {
        "mpi": asked.mpi,
        "oversubscribed": asked.oversubscribed,
        "blocking": asked.blocking,
        "ordered": asked.ordered,
        "shared_memory": asked.shared_memory and not asked.in_rank_order,
        "compared": asked.blocking,
    }


class _ChoiceDetails(TypedDict):
    mpi: str
    oversubscribed: bool
    blocking: bool
    ordered: bool
    shared_memory: bool
    compared: bool


def check_rows(asked: CollectiveCall, table: _core.Table) -> list[RowCheck]:
    """Return the function's rows up to the one that decides."""
    found = table.match_rows(asked.function, asked.planned_job, asked.root, asked.size_bytes, **_details(asked))
    rows = table.rows
    return [
        RowCheck(
            number, limits_of(rows[number]), rows[number].algorithm or "mpi", rows[number].why, why_not, measurable
        )
        for number, why_not, measurable in found
    ]


def limits_of(row: _core.TableRow) -> str:
    """Return the conditions of a row: `up to 4K, 2 to 256 nodes, impi`; `always` for none."""
    parts = [_range(row.min_bytes, row.max_bytes, 0, _ANY_BYTES, "", _core.format_size)]
    parts.append(_range(row.min_ranks, row.max_ranks, 2, _ANY, " ranks", str))
    parts.append(_range(row.min_nodes, row.max_nodes, 1, _ANY, " nodes", str))
    parts.append(_range(row.min_ranks_per_node, row.max_ranks_per_node, 1, _ANY, " ranks a node", str))
    parts.append(_range(row.min_switches, row.max_switches, 1, _ANY, " switches", str))
    parts.append(f"a level of {row.min_latency_s * 1e6:g} us and more" if row.min_latency_s > 0 else "")
    parts.append(f"a level of {row.max_latency_s * 1e6:g} us and less" if isfinite(row.max_latency_s) else "")
    parts.append(f"links of {_core.format_rate(row.min_rate)} and more" if row.min_rate > 0 else "")
    parts.append(f"links of {_core.format_rate(row.max_rate)} and less" if isfinite(row.max_rate) else "")
    parts.append(f"a link with a load of {100 * row.min_load:g} % and more" if row.min_load > 0 else "")
    parts.append(row.mpi)
    for value, yes, no in (
        (row.even_switches, "switches with about as many ranks each", "switches of very different numbers of ranks"),
        (row.scattered, "scattered ranks", "ranks in topology order"),
        (row.oversubscribed, "oversubscribed nodes", "a core for each rank"),
        (row.blocking, "blocking", "nonblocking"),
    ):
        parts.append("" if value is None else yes if value else no)
    return ", ".join(part for part in parts if part) or "always"


def _range(low: int, high: int, least: int, most: int, unit: str, text: object) -> str:
    show = text if callable(text) else str
    if low <= least and high >= most:
        return ""
    if low == high:
        return f"{show(low)}{_SINGULAR.get(unit, unit) if low == 1 else unit}"
    if low <= least:
        return f"up to {show(high)}{_SINGULAR.get(unit, unit) if high == 1 else unit}"
    if high >= most:
        return f"{show(low)} and more{unit}"
    return f"{show(low)} to {show(high)}{unit}"
