"""Variants of palmette beside palmette, and the bound where aggregators reduce on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.bench.evaluate import evaluate, network_bounds
from palmette.bench.jobs import plan_jobs
from palmette.bench.results import Run
from palmette.bench.runner import measure
from palmette.bench.settings import Settings
from palmette.bench.side_by_side import side_cells
from palmette.bench.side_text import side_lines
from palmette.bench.targets import Target, outcomes
from palmette.bench.variants import PRESETS, Variant, parse_variant
from palmette.bench_page.content import command_line
from palmette.measure.errors import BenchError
from palmette.measure.places import LocalPlace, program
from palmette.mpi import install as mpi_install
from palmette.mpi.install import Installation

MakeRun = Callable[..., Run]
MACHINE = "aggregator@800Mbit/s:3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def test_a_variant_is_a_preset_or_settings_of_palmette() -> None:
    assert parse_variant("hosts") is PRESETS["hosts"]
    force = "gather=leaders:leaders=2,between=linear;allreduce=ring"
    expected = Variant("deep", {"PALMETTE_FORCE": force, "PALMETTE_SHARED": "0"})
    assert parse_variant(f"deep:PALMETTE_FORCE={force},PALMETTE_SHARED=0") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "expected hosts, in_network or NAME:K=V"),
        ("a/b:PALMETTE_FORCE=allreduce=ring", "expected hosts"),
        ("a:LD_PRELOAD=x", "LD_PRELOAD=x is no setting"),
        ("a:PALMETTE_SHARED=perhaps", "PALMETTE_SHARED"),
    ],
)
def test_other_variants_are_refused(text: str, message: str) -> None:
    with pytest.raises(BenchError, match=message):
        parse_variant(text)


def test_a_variant_of_no_palmette_is_refused() -> None:
    with pytest.raises(BenchError, match="--no-preload"):
        Settings(variants=(PRESETS["hosts"],), preload=False)


def test_variants_follow_their_mpi_in_what_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> Installation:
        return Installation(name, Path("/nowhere"), Path("/nowhere/bin/mpiexec"), None, "1.0")

    monkeypatch.setattr(mpi_install, "find", found)
    settings = Settings(
        collectives=("bcast", "allreduce"), sizes=(64,), placements=("block",), mpis=("mpich", "openmpi"),
        variants=(PRESETS["in_network"], Variant("x", {"PALMETTE_SHARED": "0"})),
    )  # fmt: skip
    assert [(job.name, job.kind, job.cells) for job in plan_jobs(settings)] == [
        (name, "measure", cells)
        for mpi in ("mpich", "openmpi")
        for name, cells in ((mpi, None), (f"{mpi}/in_network", (("allreduce", 64),)), (f"{mpi}/x", None))
    ]
    gathers = Settings(collectives=("gather",), placements=("block",), variants=(PRESETS["in_network"],))
    assert [job.name for job in plan_jobs(gathers)] == ["mpich"]


@pytest.fixture
def run(made_run: MakeRun) -> Run:
    """Three MPIs on a machine with an aggregator, and two variants, one a tenth and one twice as fast as palmette."""
    run = made_run(
        mpis=("mpich", "openmpi", "impi"), collectives=("allreduce", "bcast"), placements=("block",), noise=0.0
    )
    assert run.topology is not None
    run.topology["machine"] = _core.Machine.synthetic(MACHINE).to_json()
    run.settings["variants"] = [{"name": "hosts", "env": {}, "collectives": ["allreduce"]}]
    for job in run.jobs[:2]:
        for name, factor in (("hosts", 10.0), ("in_network", 0.5)):
            cells = [replace(cell, palmette_s=[factor * time for time in cell.palmette_s]) for cell in job.cells]
            of_sum = [cell for cell in cells if cell.collective == "allreduce"]
            run.jobs.append(replace(job, mpi=f"{job.mpi}/{name}", cells=of_sum))
    return run


def test_variants_stand_beside_the_mpis_and_count_for_no_verdict(run: Run) -> None:
    plain, variants = ([row for row in evaluate(run) if row.is_variant is which] for which in (False, True))
    assert {row.mpi for row in plain} == {"mpich", "openmpi", "impi"}
    assert {row.mpi for row in variants} == {f"{mpi}/{name}" for mpi in ("mpich", "openmpi") for name in PRESETS}
    (cell, *_) = cells = side_cells(run)
    assert cell.alone_s.keys() == cell.palmette_s.keys() == {"mpich", "openmpi", "impi"}
    own = cell.palmette_s["mpich"]
    assert cell.variants_s == pytest.approx({"hosts": 10 * own, "in_network": own / 2})
    assert cell.best_speed == pytest.approx(2)
    lines = side_lines(cells)
    assert max(map(len, lines)) <= 80
    assert any(
        {"hosts", "in_network"} <= {*line.split()} and line.split()[-3:] == ["bound", "in", "net"] for line in lines
    )
    (outcome,) = outcomes(run, (Target("alone", 1.05),))
    assert outcome.answer == "met"
    assert outcome.worst.keys() == {"mpich", "openmpi", "impi"}
    assert "--variant hosts" in command_line(run)


def test_one_mpi_and_a_variant_are_enough_to_stand_beside_each_other(run: Run) -> None:
    run.jobs = [job for job in run.jobs if job.mpi in ("mpich", "mpich/hosts")]
    assert {cell.collective for cell in side_cells(run)} == {"allreduce"}


def test_the_bound_with_aggregators_is_below_the_hosts_and_of_what_they_serve(run: Run) -> None:
    bounds = network_bounds(run)
    assert {collective for _, collective, _ in bounds} == {"allreduce"}
    large = [row for row in evaluate(run) if (row.collective, row.size_bytes) == ("allreduce", 262144)]
    for row in large:
        assert row.bound is not None and row.network_bound is not None and row.palmette_multiple is not None
        assert row.network_bound.seconds < row.bound.seconds
        assert (
            row.to_json()["network_multiple"]
            == row.network_multiple
            == pytest.approx(row.palmette_multiple * row.bound.seconds / row.network_bound.seconds)
        )
    assert all(row.network_bound is None for row in evaluate(run) if row.collective == "bcast")


def test_without_aggregators_there_is_one_bound(made_run: MakeRun) -> None:
    assert network_bounds(made_run(collectives=("allreduce",))) == {}


def test_the_tables_have_both_bounds_in_80_columns(
    palmette_lab: Callable[..., Any],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("palmette.cli.bench_collectives.measure", lambda *_, **__: run)
    result = palmette_lab(
        "bench", "allreduce", "-n", "2", "--mpi", "mpich", "--fail-if-any-slower", "--page", "page.html"
    )
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80
    assert "MPICH 1.2, palmette/in_network, block" in result.out
    assert "in net" in result.out
    assert "MPICH/in_network" in Path("page.html").read_text(encoding="utf-8")
    told = json.loads(palmette_lab("bench", "allreduce", "-n", "2", "--mpi", "mpich", "--json").out)
    assert told["side_by_side"][0]["variants_s"].keys() == {"hosts", "in_network"}


@pytest.mark.mpi
def test_a_variant_runs_with_its_settings(tmp_path: Path) -> None:
    try:
        mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    settings = Settings(
        collectives=("allreduce",), sizes=(65536,), placements=("block",), seconds=0.05, min_pairs=3, max_pairs=6,
        warmup=1, variants=tuple(parse_variant(f"{name}:PALMETTE_FORCE=allreduce={name}") for name in ("mpi", "ring")),
    )  # fmt: skip
    run = measure(settings, LocalPlace(2, tmp_path))
    assert [(job.mpi, job.error) for job in run.jobs] == [("mpich", None), ("mpich/mpi", None), ("mpich/ring", None)]
    assert [row.algorithm for row in evaluate(run)][1:] == ["mpi", "ring"]
