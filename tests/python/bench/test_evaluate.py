"""From samples to rows: verdicts, bounds, trust, algorithms."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from palmette.bench.compare import compare_runs, differences
from palmette.bench.evaluate import Row, evaluate
from palmette.bench.results import Cell, Job, Limit, Run
from palmette.bench.text import multiple_text, summary_lines
from palmette.measure.errors import BenchError
from palmette.units import time_text

MakeRun = Callable[..., Run]
MakeCell = Callable[..., Cell]


def only(run: Run) -> Row:
    (row,) = evaluate(run)
    return row


def one_cell(made_run: MakeRun, cell: Cell) -> Run:
    run = made_run(placements=("block",), collectives=("gather",), sizes=(64,))
    run.jobs[0].cells = [cell]
    return run


def test_every_cell_of_every_job_becomes_a_row(made_run: MakeRun) -> None:
    rows = evaluate(made_run(mpis=("mpich", "openmpi")))
    assert len(rows) == 2 * 2 * 2 * 3
    assert {row.ratio.verdict for row in rows} == {"faster"}


def test_repetitions_of_a_job_are_put_together(made_run: MakeRun) -> None:
    run = made_run(placements=("block",), collectives=("gather",), sizes=(64,))
    again = copy.deepcopy(run.jobs[0])
    again.repeat = 1
    run.jobs.append(again)
    assert only(run).pairs == 40


def test_bounds_of_gather_on_the_labs_machine_are_those_of_the_fullest_link(made_run: MakeRun) -> None:
    run = made_run(placements=("block",), collectives=("gather",), sizes=(16384,))
    row = only(run)
    # Root on leaf0 with 6 of 16 ranks: 10 blocks come into leaf0 over 50 Mbit/s.
    assert row.bound is not None
    assert row.bound.seconds == pytest.approx(10 * 16384 / (50e6 / 8))
    assert "leaf0" in row.bound.reason
    assert row.palmette_multiple == pytest.approx(row.palmette.median_s / row.bound.seconds)


def test_pairs_with_a_late_start_are_left_out(made_run: MakeRun, made_cell: MakeCell) -> None:
    cell = made_cell("gather", 64, 1e-3, 1e-3, pairs=20)
    cell.palmette_s[:8] = [1.0] * 8
    cell.palmette_late_s[:8] = [0.5] * 8
    row = only(one_cell(made_run, cell))
    assert (row.left_out, row.pairs) == (8, 20)
    assert row.palmette.median_s == pytest.approx(1e-3, rel=0.05)


def test_with_all_starts_late_the_times_are_shown_and_nothing_is_judged(made_run: MakeRun, made_cell: MakeCell) -> None:
    cell = made_cell("gather", 64, 1e-3, 0.1e-3, pairs=20)
    cell.alone_late_s = [0.5] * 20
    row = only(one_cell(made_run, cell))
    assert row.left_out == 20
    assert row.ratio.verdict == "ambiguous"
    assert row.alone.count == 20
    assert row.to_json()["ratio"] is None


def test_a_wrong_result_is_never_called_faster(made_run: MakeRun, made_cell: MakeCell) -> None:
    cell = made_cell("gather", 64, 1e-3, 0.1e-3)
    cell.wrong_palmette = 1
    run = one_cell(made_run, cell)
    assert only(run).wrong
    assert "0 faster" in summary_lines(run, evaluate(run))[0]


@pytest.mark.parametrize(
    ("alone_s", "palmette_s", "floor_s", "trusted"),
    [
        (20e-3, 12e-3, None, True),
        (20e-3, 9e-3, None, False),
        (20e-3, 12e-3, 2e-3, True),
        (20e-3, 12e-3, 3e-3, False),
    ],
)
def test_a_cell_is_trusted_from_10_ms_and_5_times_the_floor(
    made_run: MakeRun, made_cell: MakeCell, alone_s: float, palmette_s: float, floor_s: float | None, trusted: bool
) -> None:
    cell = made_cell("gather", 64, alone_s, palmette_s, noise=0.0)
    cell.bound = Limit(10e-3, "a link")
    run = one_cell(made_run, cell)
    if floor_s is not None:
        floor = made_cell("gather", 64, floor_s, floor_s, noise=0.0)
        run.jobs.append(Job("mpich", "1.2", "block", 0, "floor", cells=[floor]))
    row = only(run)
    assert row.trusted is trusted
    assert multiple_text(row).startswith("(") is not trusted


def test_the_algorithm_of_a_cell_comes_from_the_preloads_report(made_run: MakeRun) -> None:
    rows = {(row.collective, row.size_bytes): row for row in evaluate(made_run(placements=("block",)))}
    assert rows["gather", 262144].algorithm == "linear"
    assert rows["gather", 64].algorithm == "mpi"


def test_one_plan_serves_all_sizes_where_ranks_do_not_know_each_others_lengths(made_run: MakeRun) -> None:
    run = made_run(placements=("block",), collectives=("scatterv",), sizes=(64, 4096))
    assert run.jobs[0].report is not None
    run.jobs[0].report["calls"] = [
        {"function": "scatterv", "algorithm": "linear", "min_bytes": -1, "max_bytes": -1, "calls": 2}
    ]
    assert [row.algorithm for row in evaluate(run)] == ["linear", "linear"]


def test_without_a_report_the_algorithm_is_unknown(made_run: MakeRun) -> None:
    run = made_run(placements=("block",), collectives=("gather",), sizes=(64,))
    run.jobs[0].report = None
    assert only(run).algorithm is None


def test_a_comparison_finds_what_got_slower_and_shows_the_control(made_run: MakeRun) -> None:
    before = made_run(lambda *_: 0.5)
    after = made_run(lambda mpi, placement, collective, size: 0.7 if collective == "gather" else 0.5)
    changes = compare_runs(before, after)
    assert {change.palmette.verdict for change in changes if change.collective == "gather"} == {"slower"}
    assert {change.palmette.verdict for change in changes if change.collective == "allgather"} == {"same"}
    assert {change.alone.verdict for change in changes} == {"same"}


def test_runs_without_a_common_cell_are_not_compared(made_run: MakeRun) -> None:
    with pytest.raises(BenchError, match="no cell in common"):
        compare_runs(made_run(sizes=(64,)), made_run(sizes=(128,)))


def test_a_comparison_names_what_else_differs(made_run: MakeRun) -> None:
    before, after = made_run(), made_run()
    after.machine["cpu"] = "another"
    assert [line.split(":")[0] for line in differences(before, after)] == ["cpu"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.345, "12.3 s"),
        (0.99996, "1 s"),
        (0.1234, "123 ms"),
        (1e-3, "1 ms"),
        (2.5e-6, "2.5 us"),
        (1.2345e-9, "1.23 ns"),
    ],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
