"""What is going to be measured, and for how long."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from palmette import _core
from palmette.tune.errors import TuneError
from palmette.tune.forecast import Forecast, chosen, forecasts
from palmette.tune.job import Question
from palmette.tune.plan import cells_of, expected_s, plan_site
from palmette.tune.results import MPI, TABLE, Cell

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


class FixedSite:
    """Hosts without a way to run anything."""

    description, mpi, placement, spins, folder = "fixed", "mpich", "block", False, None

    def __init__(self, hosts: list[str] | None, topology: Path | None) -> None:
        self.hosts, self.topology_path = hosts, topology

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(list(arguments), 1, "", "mpiexec: no such host")


@pytest.fixture
def site(tmp_path: Path) -> FixedSite:
    machine = _core.Machine.synthetic(LAB)
    path = tmp_path / "topology.json"
    path.write_text(
        json.dumps({"format": "palmette-topology", "version": 1, "machine": machine.to_json()}), encoding="utf-8"
    )
    return FixedSite([host for host in machine.hosts for _ in range(2)], path)


def test_cells_are_functions_times_sizes_and_one_barrier() -> None:
    cells = cells_of(("bcast", "allreduce", "barrier"), (6, 64), 3)
    assert cells == [
        Cell("bcast", 6, 3), Cell("bcast", 64, 3), Cell("allreduce", 4, 0), Cell("allreduce", 64, 0),
        Cell("barrier", 0, 0),
    ]  # fmt: skip


def test_a_plan_asks_for_the_present_choice_and_the_mpi_and_the_best_by_the_model(site: FixedSite) -> None:
    plan = plan_site(site, cells_of(("allreduce", "bcast"), (1024, 65536), 0), None, 600.0, 10)
    assert len(plan.questions) == 4
    for question in plan.questions:
        assert question.candidates[:2] == (TABLE, MPI)
        assert 3 <= len(question.predicted_s) <= 10
        assert plan.present[question.cell] not in question.predicted_s
    assert plan.measured < plan.tried
    assert 0 < plan.expected_s <= 600.0


def test_less_time_means_fewer_candidates(site: FixedSite) -> None:
    cells = cells_of(("alltoall",), (262144,), 0)
    much, little = (plan_site(site, cells, None, seconds, 14) for seconds in (6000.0, 30.0))
    assert len(little.questions[0].predicted_s) < len(much.questions[0].predicted_s)


def test_each_family_of_algorithms_near_the_best_is_measured() -> None:
    job = _core.Job(_core.Machine.synthetic(LAB), "random:1")
    found = forecasts(job, Cell("allreduce", 65536))
    assert [one.seconds for one in found if one.seconds] == sorted(one.seconds for one in found if one.seconds)
    taken = chosen(found, 10)
    assert len(taken) == 10
    assert len({one.family for one in taken}) >= 4
    assert taken[0] == found[0]


def test_what_is_far_behind_isnt_measured_for_its_family() -> None:
    found = [Forecast("a", 1.0), Forecast("a:k=1", 1.1), Forecast("a:k=2", 1.2), Forecast("b", 100.0)]
    assert [one.spec for one in chosen(found, 3)] == ["a", "a:k=1", "a:k=2"]
    assert chosen([], 3) == []


def test_more_candidates_take_longer() -> None:
    few = Question(Cell("bcast", 64), {"a": 1e-3, "b": 2e-3})
    many = Question(Cell("bcast", 64), {"a": 1e-3, "b": 2e-3, "c": 3e-3, "d": None})
    assert expected_s(few, 1e-3) < expected_s(many, 1e-3)


def test_a_launcher_that_starts_nothing_is_told(site: FixedSite) -> None:
    silent = FixedSite(None, None)
    with pytest.raises(TuneError, match="no such host"):
        plan_site(silent, cells_of(("bcast",), (64,), 0), None, 60.0, 5)


def test_a_root_outside_of_the_job_is_told(site: FixedSite) -> None:
    with pytest.raises(TuneError, match="root 99"):
        plan_site(site, cells_of(("bcast",), (64,), 99), None, 60.0, 5)


def test_the_present_choice_in_other_words_isnt_a_candidate(site: FixedSite) -> None:
    plan = plan_site(site, cells_of(("allreduce",), (1024,), 0), None, 600.0, 20)
    ((cell, present),) = plan.present.items()
    assert present == "leaders:level=leaf,between=all,inside=linear"
    assert "leaders:between=all,level=leaf" not in {one.spec for one in plan.forecasts[cell]}
    assert any(one.family == "leaders" for one in plan.forecasts[cell])


def test_the_same_plan_in_other_words_takes_no_place_from_another() -> None:
    found = [Forecast(f"leaders:between={x},inside=shared", 1.0) for x in ("ring", "all", "direct", "rabenseifner")]
    found += [Forecast("leaders:leaders=2", 1.5), Forecast("ring:segment=8K", 2.0), Forecast("ring", 2.5)]
    taken = [one.spec for one in chosen(found, 4)]
    assert taken == ["leaders:between=ring,inside=shared", "leaders:leaders=2", "ring:segment=8K", "ring"]
    assert len(chosen(found, 6)) == 6, "where places are left the others come, too"
