"""MPIs beside each other: speeds to the fastest, geometric means, targets, what passing a call through costs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from palmette.bench.evaluate import evaluate
from palmette.bench.pass_through import pass_costs
from palmette.bench.results import Cell, Job, PassThrough, Run
from palmette.bench.settings import Settings
from palmette.bench.side_by_side import geometric_mean, mean_speeds, side_cells
from palmette.bench.side_text import mean_lines, number_text, pass_lines, side_lines, target_lines
from palmette.bench.targets import Target, Value, outcomes
from palmette.bench_page.page import render
from palmette_lab.sets import SETS, outcomes_of

MakeRun = Callable[..., Run]
MPIS = ("mpich", "openmpi", "impi")


def factor(mpi: str, placement: str, collective: str, size: int) -> float:
    """Palmette's time over that of the MPI alone."""
    return {"mpich": 0.5, "openmpi": 1.0, "impi": 2.0}[mpi]


@pytest.fixture
def run(made_run: MakeRun) -> Run:
    """Three MPIs that are equally fast by themselves, with samples without noise."""
    return made_run(
        factor, mpis=MPIS, placements=("block",), collectives=("bcast", "allreduce"), sizes=(8, 4096), noise=0.0
    )


def test_the_speed_is_the_fastest_mpis_time_over_palmettes(run: Run) -> None:
    for made in next(job for job in run.jobs if job.mpi == "openmpi").cells:
        made.alone_s = [time / 4 for time in made.alone_s]
    cells = side_cells(run)
    assert [(cell.collective, cell.size_bytes) for cell in cells] == [
        ("bcast", 8), ("bcast", 4096), ("allreduce", 8), ("allreduce", 4096)
    ]  # fmt: skip
    assert {cell.fastest for cell in cells} == {"openmpi"}
    for cell in cells:
        assert [cell.speed(mpi) for mpi in MPIS] == pytest.approx([0.5, 0.25, 0.125])
        assert cell.best_speed == pytest.approx(0.5)


def test_the_median_is_over_rounds_and_not_over_their_samples(made_cell: Callable[..., Cell]) -> None:
    run = Run("", {}, "", Settings().to_json())
    for mpi, rounds in (("mpich", ((1.0, 5), (2.0, 5), (9.0, 500))), ("impi", ((4.0, 5),))):
        for number, (time, pairs) in enumerate(rounds):
            job = Job(mpi, "1", "block", number, "measure")
            job.cells = [made_cell("bcast", 8, time, 1.0, noise=0.0, pairs=pairs)]
            run.jobs.append(job)
    (cell,) = side_cells(run)
    assert cell.alone_s == {"mpich": 2.0, "impi": 4.0}


def test_one_mpi_alone_stands_beside_nothing(made_run: MakeRun) -> None:
    assert side_cells(made_run(mpis=("mpich",))) == []
    assert mean_speeds([]) == []
    assert mean_lines([]) == side_lines([]) == pass_lines([]) == []


def test_wrong_results_take_no_part(run: Run) -> None:
    run.jobs[0].cells[0].wrong_palmette = 1
    assert "mpich" not in side_cells(run)[0].alone_s
    (outcome,) = outcomes(run, (Target("alone", 1.05, ("bcast",), (8,)),))
    assert outcome.answer == "missed"
    assert outcome.worst["mpich"] == Value(math.inf, "bcast 8 B")
    assert outcome.to_json()["worst"]["mpich"]["value"] is None


def test_means_are_geometric(run: Run) -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    for cell in run.jobs[0].cells:  # MPICH: 4 times and once as fast
        cell.palmette_s = [time / (4 if cell.size_bytes == 8 else 1) for time in cell.alone_s]
    bcast = mean_speeds(side_cells(run))[0]
    assert bcast.by_mpi == pytest.approx({"mpich": 2.0, "openmpi": 1.0, "impi": 0.5})
    assert bcast.best == pytest.approx(2.0)
    assert bcast.lowest.size_bytes == 4096
    assert bcast.lowest.best_speed == pytest.approx(1.0)


def test_targets_tell_the_worst_cell_of_each_mpi(run: Run) -> None:
    found = outcomes(
        run,
        (
            Target("alone", 1.05),
            Target("fastest", 1.1, ("allreduce",), (8,)),
            Target("mean_speed", 1.0, ("bcast",)),
            Target("bound", 1e6, ("bcast",)),
            Target("bound", 1.5, ("alltoall",)),
        ),
    )
    alone, fastest, mean, bound, nothing = found
    assert {mpi: round(one.value, 6) for mpi, one in alone.worst.items()} == {"mpich": 0.5, "openmpi": 1, "impi": 2}
    assert fastest.best is not None
    assert mean.best is not None
    told = (fastest.worst["impi"], fastest.best, mean.worst["impi"], mean.best)
    assert [one.value for one in told] == pytest.approx([2.0, 0.5, 0.5, 2.0])
    assert [one.cell for one in told] == ["allreduce 8 B", "allreduce 8 B", "bcast", "bcast"]
    assert [one.answer for one in found] == ["missed", "missed", "missed", "met", "not measured"]
    assert bound.best is None
    assert not nothing.worst
    lines = target_lines(found)
    assert lines[0] == "missed: every collective, of the MPI alone, at most 1.05"
    assert "impi" not in "".join(lines)
    assert "Intel MPI 2.00! (bcast 8 B)" in " ".join(line.strip() for line in lines)
    assert lines[-1] == "not measured: alltoall, in bounds, at most 1.5"
    assert max(map(len, lines)) <= 80


def test_what_noise_leaves_open_is_undecided(made_run: MakeRun) -> None:
    noisy = made_run(lambda *_: 1.1, placements=("block",), collectives=("bcast",), sizes=(8,), noise=0.5)
    target = Target("alone", 1.0)
    (outcome,) = outcomes(noisy, (target,))
    value = outcome.worst["mpich"].value
    assert outcome.answer == ("met" if value <= 1 else "undecided")
    (strict,) = outcomes(noisy, (Target("alone", value / 2),))
    assert strict.answer == "undecided"
    assert f"MPICH {value:.2f}? (bcast 8 B)" in target_lines([strict])[-1]
    clear = made_run(lambda *_: 1.5, placements=("block",), collectives=("bcast",), sizes=(8,))
    assert outcomes(clear, (target,))[0].answer == "missed"


def test_cells_without_a_sample_in_time_are_not_judged(run: Run) -> None:
    for job in run.jobs:
        for cell in job.cells:
            cell.alone_late_s = [9.0] * len(cell.alone_s)
    (outcome,) = outcomes(run, (Target("alone", 1.05),))
    assert outcome.answer == "not measured"


def test_a_target_of_speed_is_met_from_its_limit_on() -> None:
    assert Target("mean_speed", 1.0).is_met(1.0)
    assert not Target("mean_speed", 1.0).is_met(0.99)
    assert Target("bound", 1.5).is_met(1.5)
    assert not Target("pass_through", 15.0).is_met(15.1)


def passed() -> Job:
    job = Job("openmpi", "5", "block", 0, "pass_through")
    job.passes = [
        PassThrough("barrier", "MPI_COMM_WORLD, 8 bytes", 100, [400.0, 500.0, 12000.0], [406.0, 503.0, 12004.0])
    ]
    return job


def test_the_cost_of_a_call_passed_through_is_the_difference_within_pairs() -> None:
    (cost,) = pass_costs([passed()])
    assert (cost.mpi, cost.alone_ns, cost.palmette_ns, cost.more_ns) == ("openmpi", 500, 503, 4)
    line = pass_lines([cost])[-1]
    assert line.split() == [
        "OpenMPI", "barrier", "on", "world,", "8", "bytes", "500.0", "503.0", "+4.0", "(+3.5", "to", "+5.0)"
    ]  # fmt: skip


def test_the_tables_fit_80_columns(made_run: MakeRun) -> None:
    run = made_run(mpis=MPIS, collectives=("reduce_scatter_block", "barrier"), sizes=(8, 262144), noise=0.3)
    for job in run.jobs:
        job.cells = [cell for cell in job.cells if cell.collective != "barrier" or cell.size_bytes == 8]
        for cell in job.cells:
            cell.alone_s = [min(99.0, time * 1e2) for time in cell.alone_s]
            if cell.collective == "barrier":
                cell.size_bytes = 0
    run.jobs.append(passed())
    cells = side_cells(run)
    means = mean_speeds(cells)
    lines = [*side_lines(cells), *mean_lines(means), *pass_lines(pass_costs(run.jobs))]
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if "*" in line and line.startswith(("8 B", "256K", "-"))]) == len(cells)


def test_the_fastest_time_with_palmette_is_told_in_physical_limits(run: Run) -> None:
    cells = side_cells(run)
    for cell in cells:
        same = (cell.collective, cell.size_bytes)
        limit = next(one for one in run.jobs[0].cells if (one.collective, one.size_bytes) == same).bound
        assert limit is not None
        assert cell.multiple == pytest.approx(min(cell.palmette_s.values()) / limit.seconds)
        assert cell.to_json()["multiple"] == cell.multiple
    table = side_lines(cells[:1])
    assert table[-2].split()[-1] == "bound"
    assert table[-1].split()[-1] == f"{cells[0].multiple:.0f}"
    assert ">bound</th>" in render(run, evaluate(run)).split("Side by side")[1].split("</thead>")[1]


def test_without_a_topology_no_multiple_is_told(run: Run) -> None:
    for job in run.jobs:
        for cell in job.cells:
            cell.bound = None
    cells = side_cells(run)
    assert {cell.multiple for cell in cells} == {None}
    assert "bound" not in " ".join(side_lines(cells))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.123e-7, "0.412"),
        (4.1e-6, "4.10"),
        (4.126e-5, "41.3"),
        (9.999e-6, "10.0"),
        (0.00041, "410"),
        (2.624, "2624000"),
    ],
)
def test_numbers_have_three_digits(seconds: float, text: str) -> None:
    assert number_text(seconds * 1e6) == text


def test_every_set_has_settings_a_place_and_targets() -> None:
    for name, one in SETS.items():
        settings = Settings(**one.settings, named_set=name)
        assert settings.named_set == one.name == name
        assert one.targets
        assert (one.lab is None) != (one.local_ranks is None)
        for target in one.targets:
            assert set(target.collectives) <= set(settings.collectives)
            assert set(target.sizes) <= set(settings.sizes)


def test_a_run_of_a_set_knows_its_targets(run: Run) -> None:
    assert outcomes_of(run) == []
    run.settings["named_set"] = "one-node"
    assert [outcome.target for outcome in outcomes_of(run)] == list(SETS["one-node"].targets)


def test_the_page_shows_mpis_beside_each_other_targets_and_costs(run: Run) -> None:
    run.settings["named_set"] = "one-node"
    run.jobs.append(passed())
    html = render(run, evaluate(run), outcomes_of(run))
    assert "Side by side" in html
    assert "Targets of the set one-node" in html
    assert "mean speed to the fastest MPI" in html
    assert "OpenMPI barrier on world, 8 bytes" in html
    assert "palmette-lab bench bcast,allreduce --set one-node" in html


def test_the_command_prints_a_set_beside_each_other_and_fails_on_request(
    palmette_lab: Callable[..., Any], run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[Settings] = []

    def measured(settings: Settings, *_: object, **__: object) -> Run:
        asked.append(settings)
        run.settings = {**settings.to_json(), "place": ["--local", "2"]}
        return run

    monkeypatch.setattr("palmette.cli.bench_collectives.measure", measured)
    call = ("bench", "allreduce", "--set", "one-node", "--seconds", "0.5", "--mpi", "mpich,openmpi,impi")
    result = palmette_lab(*call)
    assert result.status == 0, result.err
    assert asked[0].collectives == ("allreduce",)
    assert asked[0].seconds == 0.5
    assert asked[0].repeat == SETS["one-node"].settings["repeat"]
    assert asked[0].sizes == SETS["one-node"].settings["sizes"]
    assert asked[0].pass_through
    assert "speed: time of the fastest MPI alone" in result.out
    assert "missed: every collective, mean speed to the fastest MPI, at least 1" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    failed = palmette_lab(*call, "--fail-if-missed")
    assert failed.status == 1
    assert failed.err.endswith(
        "3 of 3 targets are not met, the first: every collective, mean speed to the fastest MPI; see the table\n"
    )
    document = json.loads(palmette_lab(*call, "--json").out)
    assert {"side_by_side", "mean_speeds", "targets", "pass_through"} <= set(document)
    assert document["side_by_side"][0]["speed"]["mpich"] == pytest.approx(2.0)
    assert len(document["targets"]) == 3


def test_an_unknown_set_is_refused_with_the_names(palmette_lab: Callable[..., Any]) -> None:
    result = palmette_lab("bench", "--set", "one-nod")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "'one-node'" in result.err
