"""From verdicts to a decision table."""

from __future__ import annotations

from typing import Any

import pytest

from palmette import _core
from palmette.tune.decide import Verdict
from palmette.tune.results import Cell
from palmette.tune.rows import FinalVerdict, Surroundings, merged, rows_of
from palmette.tune.session import table_of
from palmette.tune.validity import Range, holds_for, own_range

AROUND = Surroundings("mpich", True, False, "2026-11-21", "16 ranks, 8 nodes")
HERE = Range(8, 32, 4, 16, 1, 4)


def decided(function: str, size: int, spec: str, holds: Range = HERE) -> FinalVerdict:
    outcome = "present" if spec == "table" else "better"
    verdict = Verdict(Cell(function, size), outcome, spec, 1e-3, 2e-3, 3e-3, 20)  # type: ignore[arg-type]
    return FinalVerdict(verdict, "ring", holds)


def rows(*found: FinalVerdict) -> list[dict[str, Any]]:
    made = rows_of(found, AROUND)
    _core.Table.from_json({"format": "palmette-table", "version": 1, "rows": made})
    return made


def test_sizes_with_the_same_choice_are_one_row() -> None:
    (row,) = rows(decided("allreduce", 64, "direct"), decided("allreduce", 1024, "direct"))
    assert (row["min_bytes"], row["max_bytes"], row["algorithm"]) == (64, 1024, "direct")
    assert (row["min_ranks"], row["max_ranks"], row["min_nodes"], row["max_nodes"]) == (8, 32, 4, 16)
    assert (row["mpi"], row["scattered"], row["oversubscribed"], row["blocking"]) == ("mpich", True, False, True)


def test_two_choices_meet_at_the_geometric_mean_without_a_gap() -> None:
    first, second = rows(decided("bcast", 1024, "linear"), decided("bcast", 4096, "chain"))
    assert (first["max_bytes"], second["min_bytes"]) == (2048, 2049)


def test_where_the_present_choice_stays_there_is_no_row() -> None:
    found = rows(
        decided("bcast", 64, "linear"), decided("bcast", 1024, "table"), decided("bcast", 16384, "linear"),
        decided("scan", 64, "table"),
    )  # fmt: skip
    assert [(row["min_bytes"], row["max_bytes"]) for row in found] == [(64, 64), (16384, 16384)]


def test_a_row_holds_where_all_of_its_sizes_do() -> None:
    (row,) = rows(
        decided("bcast", 64, "linear", Range(4, 16, 2, 8, 1, 3)),
        decided("bcast", 128, "linear", Range(8, 32, 4, 16, 2, 4)),
    )
    assert (row["min_ranks"], row["max_ranks"], row["min_nodes"], row["max_nodes"]) == (8, 16, 4, 8)
    assert (row["min_switches"], row["max_switches"]) == (2, 3)


def test_unknown_sizes_need_one_choice_that_is_better_at_all_sizes() -> None:
    (row,) = rows(decided("gatherv", 64, "linear"), decided("gatherv", 1024, "linear"))
    assert "min_bytes" not in row
    assert rows(decided("gatherv", 64, "linear"), decided("gatherv", 1024, "table")) == []
    assert rows(decided("alltoallv", 64, "linear"), decided("alltoallv", 1024, "mpi")) == []


def test_why_tells_date_place_and_medians() -> None:
    (row,) = rows(decided("allreduce", 65536, "direct"))
    assert row["why"] == ("tuned 2026-11-21 on 16 ranks, 8 nodes: 64K 1 ms against 2 ms by ring, 3 ms by the MPI")


def test_new_rows_stand_in_front_of_the_built_in_ones() -> None:
    base = table_of(None)
    new = rows(decided("allreduce", 65536, "direct"))
    document = merged(new, base)
    assert document["rows"][0]["algorithm"] == "direct"
    assert document["rows"][1:] == base["rows"]
    job = _core.Job(_core.Machine.synthetic("8node:2core"), "random:1")
    table = _core.Table.from_json(document)
    assert table.choose("allreduce", job, 0, 65536, mpi="mpich").algorithm == "direct"
    assert table.choose("allreduce", job, 0, 65536, mpi="openmpi").algorithm != "direct"


def test_tuning_again_replaces_what_it_covers_and_keeps_the_rest() -> None:
    first = merged(rows(decided("allreduce", 1024, "direct"), decided("bcast", 64, "linear")), table_of(None))
    second = merged(rows(decided("allreduce", 512, "ring"), decided("allreduce", 4096, "ring")), first)
    tuned = [(row["function"], row["algorithm"]) for row in second["rows"] if row["why"].startswith("tuned ")]
    assert tuned == [("allreduce", "ring"), ("bcast", "linear")]


def test_a_range_without_a_model_is_the_measured_job() -> None:
    job = _core.Job(_core.Machine.synthetic("8node:2core"), "block")
    assert own_range(job) == Range(16, 16, 8, 8, 1, 1)


def test_a_row_that_is_carried_over_holds_for_the_switches_of_the_jobs_that_were_asked() -> None:
    machine = _core.Machine.synthetic("4leaf@50Mbit/s~100us:4node@100Mbit/s~50us:2core")
    job = _core.Job.on_hosts(machine, [host for host in machine.hosts[:8] for _ in range(2)])
    assert own_range(job) == Range(16, 16, 8, 8, 2, 2)
    rivals = ("by_topology", "linear")
    held = holds_for(machine, job, Cell("gather", 65536), "by_topology", rivals)
    assert (held.min_nodes, held.max_nodes) == (2, 8)
    assert (held.min_switches, held.max_switches) == (1, 2)


def test_a_bad_row_is_refused_when_the_table_is_made() -> None:
    with pytest.raises(_core.Error, match="no_such"):
        merged([{"function": "bcast", "algorithm": "no_such"}], table_of(None))
