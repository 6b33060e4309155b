"""Rivals, budgets, and runs that are gone on with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.budget import Keeper, duration_text, expected_seconds, fit
from palmette.bench.evaluate import evaluate
from palmette.bench.jobs import BenchJob, plan_jobs, without_done
from palmette.bench.results import Job, Run
from palmette.bench.rivals import PRESETS, Rival, parse_rival
from palmette.bench.runner import measure
from palmette.bench.settings import BLOCKING, Settings
from palmette.bench.side_by_side import mean_speeds, side_cells
from palmette.bench.side_text import mean_lines, side_lines, target_lines
from palmette.bench.targets import Target, outcomes
from palmette.measure.errors import BenchError
from palmette.measure.places import LocalPlace, program
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation
from palmette_lab.sets import SETS

MakeRun = Callable[..., Run]


@pytest.fixture
def mpis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three MPIs that needn't be installed, as far as plans go."""

    def found(name: str) -> Installation:
        return Installation(name, Path("/nowhere"), Path("/nowhere/bin/mpiexec"), None, "1.0")

    monkeypatch.setattr(mpi_install, "find", found)


def settings_of(**changes: Any) -> Settings:
    values: dict[str, Any] = {"collectives": ("gather", "barrier"), "sizes": (64, 1024), "placements": ("block",)}
    return Settings(**{**values, **changes})


def test_a_rival_is_a_preset_or_an_mpi_with_variables() -> None:
    assert parse_rival("mpich-topology") is PRESETS["mpich-topology"]
    assert parse_rival("flat:openmpi:OMPI_MCA_coll=^han,A=b=c") == Rival(
        "flat", "openmpi", {"OMPI_MCA_coll": "^han", "A": "b=c"}
    )
    assert parse_rival("plain:impi") == Rival("plain", "impi")


@pytest.mark.parametrize("text", ["nobody", "a:lam", ":mpich", "mpich:openmpi", "a:mpich:K", "a:mpich:=v"])
def test_other_rivals_are_refused(text: str) -> None:
    with pytest.raises(BenchError):
        parse_rival(text)


@pytest.mark.usefixtures("mpis")
def test_rivals_and_loaded_jobs_take_turns_with_the_others() -> None:
    settings = settings_of(
        collectives=("bcast",), mpis=("mpich", "impi"), rivals=(PRESETS["mpich-topology"],), repeat=2,
        traffic="alltoall:half:64K",
    )  # fmt: skip
    order = [(job.name, job.kind, job.loaded, job.repeat) for job in plan_jobs(settings)]
    once = [
        (name, kind, loaded)
        for name, kind in (("mpich", "measure"), ("impi", "measure"), ("mpich-topology", "rival"))
        for loaded in (False, True)
    ]
    assert order == [(*one, repeat) for repeat in (0, 1) for one in once]


@pytest.mark.usefixtures("mpis")
def test_a_rival_is_measured_where_it_differs_only(made_run: MakeRun) -> None:
    settings = settings_of(collectives=("gather", "bcast"), mpis=("mpich",), rivals=(PRESETS["mpich-topology"],))
    jobs = plan_jobs(settings)
    assert [(job.name, job.cells) for job in jobs] == [
        ("mpich", None), ("mpich-topology", (("bcast", 64), ("bcast", 1024))),
    ]  # fmt: skip
    done = add_rival(made_run(collectives=("gather", "bcast"), sizes=(64, 1024), placements=("block",)), 1.0)
    assert without_done(jobs, settings, done) == []
    other = settings_of(collectives=("gather",), mpis=("mpich",), rivals=(PRESETS["mpich-topology"],))
    assert [job.name for job in plan_jobs(other)] == ["mpich"]


def add_rival(run: Run, factor: float) -> Run:
    """Give a run the jobs of a rival that takes `factor` of MPICH's time."""
    for job in [job for job in run.jobs if job.mpi == "mpich"]:
        cells = [replace(cell, alone_s=[factor * time for time in cell.alone_s]) for cell in job.cells]
        run.jobs.append(replace(job, mpi="mpich-topology", kind="rival", cells=cells, report=None, palmette_ranks=0))
    return run


def test_a_rival_stands_beside_the_mpis_and_sets_no_standard(made_run: MakeRun) -> None:
    run = add_rival(made_run(lambda *_: 0.5, mpis=("mpich", "openmpi", "impi"), noise=0.0), 0.25)
    assert {row.mpi for row in evaluate(run)} == {"mpich", "openmpi", "impi"}
    cells = side_cells(run)
    assert all(cell.best_speed == pytest.approx(2) for cell in cells)
    assert all(cell.speed_to_rival("mpich-topology") == pytest.approx(0.5) for cell in cells)
    means = mean_speeds(cells)
    assert means[0].to_rivals["mpich-topology"] == pytest.approx(0.5)
    lines = [*side_lines(cells), *mean_lines(means)]
    assert any("mpich-topology" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_one_mpi_and_a_rival_are_enough_to_stand_beside_each_other(made_run: MakeRun) -> None:
    assert side_cells(made_run(lambda *_: 0.5)) == []
    assert len(side_cells(add_rival(made_run(lambda *_: 0.5), 2.0))) == 12


@pytest.mark.usefixtures("mpis")
def test_a_budget_gives_every_cell_its_share_and_leaves_out_the_dearest() -> None:
    settings = settings_of(seconds=2.0)
    jobs = plan_jobs(settings)

    def bounds(job: BenchJob, cell: tuple[str, int]) -> float:
        return {("gather", 1024): 10.0}.get(cell, 0.0)

    fitted = fit(jobs, settings, bounds, 10.0)
    assert [cell for _, cell in fitted.left_out] == [("gather", 1024)]
    (job,) = fitted.jobs
    assert job.cells == (("gather", 64), ("barrier", 0))
    assert job.limit_s is not None and 0.1 < job.limit_s <= 2.5
    assert fitted.expected_s <= 10.0
    everything = fit(jobs, settings, bounds, 1000.0)
    assert everything.left_out == []
    assert expected_seconds(jobs, settings, bounds) > 100
    assert fit(jobs, settings, bounds, 1.0).jobs == []


@pytest.mark.usefixtures("mpis")
def test_a_run_that_is_slower_than_expected_shortens_what_is_left() -> None:
    settings = settings_of(mpis=("mpich", "impi", "openmpi"), sizes=(64, 1024, 4096))
    now = [0.0]
    keeper = Keeper(settings, lambda *_: 1e-3, 60.0, lambda: now[0])
    jobs = list(keeper(plan_jobs(settings)))
    first = jobs[0].limit_s
    now[0] = 20.0
    on_time = keeper(jobs[1:])[0].limit_s
    assert first is not None and on_time is not None and on_time == pytest.approx(first, rel=0.2)
    now[0] = 48.0
    late = keeper(jobs[2:])[0].limit_s
    assert late is not None and late < on_time
    assert keeper.left_out == []
    now[0] = 70.0
    assert keeper(jobs[2:]) == []
    assert {job.name for job, _ in keeper.left_out} == {"openmpi"}


def test_durations_are_told_in_round_numbers() -> None:
    assert [duration_text(one) for one in (42.4, 900.0, 9000.0)] == ["about 42 s", "about 15 min", "about 2.5 h"]


@pytest.mark.usefixtures("mpis")
def test_cells_that_are_there_are_not_measured_again(made_run: MakeRun) -> None:
    run = made_run(collectives=("gather",), sizes=(64, 1024), placements=("block",))
    settings = settings_of(collectives=("gather",), mpis=("mpich",))
    assert without_done(plan_jobs(settings), settings, run) == []
    more = replace(settings, sizes=(64, 1024, 4096), mpis=("mpich", "impi"))
    left = without_done(plan_jobs(more), more, run)
    assert [(job.name, job.cells) for job in left] == [("mpich", (("gather", 4096),)), ("impi", None)]
    run.jobs[0].cells[0].wrong_palmette = 1
    assert [job.cells for job in without_done(plan_jobs(settings), settings, run)] == [(("gather", 64),)]
    loaded = replace(settings, traffic="alltoall:half:64K")
    assert [job.loaded for job in without_done(plan_jobs(loaded), loaded, run)] == [False, True]


def test_a_cell_needs_the_gain_or_the_bound(made_run: MakeRun) -> None:
    target = Target("gain_or_bound", 1.2, placements=("random:1",), min_bytes=16384, gain=1.5)
    fast = outcomes(made_run(lambda *_: 0.5, mpis=("mpich", "impi"), noise=0.0), [target])[0]
    assert (fast.answer, fast.cells) == ("met", {"mpich": 4, "impi": 4})
    slow = outcomes(made_run(lambda *_: 0.9, mpis=("mpich", "impi"), noise=0.0), [target])[0]
    assert slow.answer == "missed"
    assert {mpi: len(missed) for mpi, missed in slow.missed.items()} == {"mpich": 4, "impi": 4}
    assert any("beyond the limit: MPICH 4 of 4" in line for line in target_lines([slow]))


def test_the_set_choose_covers_what_must_hold() -> None:
    for name in ("choose", "choose-loaded"):
        one = SETS[name]
        assert one.settings["collectives"] == BLOCKING
        assert one.settings["placements"] == ("block", "cyclic", "random:1")
        assert (min(one.settings["sizes"]), max(one.settings["sizes"])) == (64, 1 << 20)
        limits = {collective: target.limit for target in one.targets[:2] for collective in target.collectives}
        assert limits == {
            name: 1.5 if name in ("bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block") else 1.2
            for name in BLOCKING
            if name != "barrier"
        }
    assert SETS["choose-loaded"].settings["traffic"] == "alltoall:half:64K"


@pytest.mark.mpi
def test_a_run_is_gone_on_with_where_it_ended(
    palmette_lab: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    words = (
        "bench",
        "gather,bcast",
        "-n",
        "2",
        "--mpi",
        "mpich",
        "--no-preload",
        "--seconds",
        "0.05",
        "--max-iterations",
        "6",
    )
    assert palmette_lab(*words, "--sizes", "64").status == 0
    more = palmette_lab(*words, "--sizes", "64,256", "--resume", "--budget", "60s")
    assert more.status == 0, more.err
    assert "2 of 4 cells are done" in more.err
    assert "run 1 in" in more.out
    done = palmette_lab(*words, "--sizes", "64,256", "--resume")
    assert (done.status, "has all cells already" in done.err) == (0, True)
    assert done.out == more.out
    other = palmette_lab(*words, "--sizes", "64", "--root", "1", "--resume")
    assert (other.status, "no run of these settings" in other.err) == (2, True)


@pytest.mark.mpi
def test_a_rival_runs_with_its_variables_and_without_palmette(tmp_path: Path) -> None:
    try:
        mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    rivals = (Rival("nb", "mpich", {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "nb"}),)
    settings = settings_of(
        collectives=("bcast",),
        sizes=(64,),
        seconds=0.05,
        min_pairs=3,
        max_pairs=6,
        warmup=1,
        preload=False,
        rivals=rivals,
    )
    run = measure(settings, LocalPlace(2, tmp_path))
    assert [(job.mpi, job.kind, job.error) for job in run.jobs] == [("mpich", "measure", None), ("nb", "rival", None)]
    assert len(side_cells(run)) == 1
    with pytest.raises(BenchError, match="needs a topology"):
        measure(replace(settings, rivals=(PRESETS["mpich-topology"],)), LocalPlace(2, tmp_path))


def test_a_job_says_where_it_was() -> None:
    assert Job("mpich", "5", "random:1", 0, "measure").where == "random:1"
    assert Job("mpich", "5", "random:1", 0, "measure", traffic="alltoall:half:64K").where == "random:1 loaded"
