"""By which way data goes inside of a node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from palmette import _core
from palmette.tune.plan import plan_site
from palmette.tune.results import Cell
from palmette.tune.transports import BY_SEGMENT, IN_PLACE, transports

LAB = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"
CELL = Cell("allreduce", 262144)


def job(spec: str) -> _core.Job:
    return _core.Job(_core.Machine.synthetic(spec), "block")


class FixedSite:
    """Hosts without a way to run anything."""

    description, mpi, placement, spins, folder = "fixed", "mpich", "block", True, None

    def __init__(self, hosts: list[str], topology: Path) -> None:
        self.hosts: list[str] | None = hosts
        self.topology_path: Path | None = topology

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        raise AssertionError("nothing is run")


def site(spec: str, folder: Path) -> FixedSite:
    machine = _core.Machine.synthetic(spec)
    path = folder / "topology.json"
    document = {"format": "palmette-topology", "version": 1, "machine": machine.to_json()}
    path.write_text(json.dumps(document), encoding="utf-8")
    return FixedSite([host for host in machine.hosts for _ in range(4)], path)


def test_on_one_node_there_are_once_in_place_and_always_by_the_segment() -> None:
    found = transports(job("1node:4core"), CELL, "shared:batch=32K")
    assert found == [f"shared:batch=32K,single={IN_PLACE}", f"shared:batch=32K,single={BY_SEGMENT}"]


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        ("allreduce", "leaders:between=ring,inside=shared"),
        ("bcast", "by_topology:leaf=linear,node=shared,top=linear"),
        ("reduce", "by_topology:leaf=linear,node=shared,top=linear"),
        ("reduce_scatter", "leaders:inside=shared"),
        ("alltoall", "node_aware:inside=shared"),
        ("alltoall", "leaders:inside=shared"),
        ("allgather", "locality_bruck:inside=shared"),
    ],
)
def test_where_nodes_share_memory_inside_of_another_algorithm_it_can_be_read_in_place(function: str, spec: str) -> None:
    here = job(LAB)
    (found,) = transports(here, Cell(function, 262144), spec)
    assert found == f"{spec},single={IN_PLACE}"
    # The same plan: the runtime alone reads the key.
    element = 4 if _core.is_reduction(function) else 1
    programs = [
        _core.make_program(here, 3, function, one, 0, 262144, shared_memory=True, element_bytes=element).to_json()
        for one in (spec, found)
    ]
    assert programs[0] == programs[1]
    assert "expose" in json.dumps(programs[0])


@pytest.mark.parametrize("spec", ["ring", "mpi", "leaders:inside=binomial", "leaders:inside=shared,single=64K"])
def test_what_shares_no_memory_or_says_how_has_no_other_way(spec: str) -> None:
    assert transports(job(LAB), CELL, spec) == []


def test_short_messages_have_no_other_way() -> None:
    assert transports(job("1node:4core"), Cell("allreduce", 1024), "shared") == []


def test_a_tuning_on_one_node_measures_every_way_through_its_memory(tmp_path: Path) -> None:
    plan = plan_site(site("1node:4core", tmp_path), [CELL], None, 600.0, 14)
    asked = plan.questions[0].predicted_s
    assert any(spec.startswith("shared") and f"single={IN_PLACE}" in spec for spec in asked)
    assert any(spec.startswith("shared") and f"single={BY_SEGMENT}" in spec for spec in asked)
    assert any("shared" not in spec for spec in asked), "messages, too"
    assert len(asked) <= 14


def test_a_tuning_of_few_candidates_keeps_the_best_by_the_model(tmp_path: Path) -> None:
    plan = plan_site(site("1node:4core", tmp_path), [CELL], None, 600.0, 3)
    asked = list(plan.questions[0].predicted_s)
    assert len(asked) == 3
    assert "single" not in asked[0]


def test_single_without_shared_memory_is_an_error_that_says_what_to_add() -> None:
    with pytest.raises(_core.Error, match="add inside=shared"):
        _core.refusal(job(LAB), "allreduce", "leaders:single=4K", 0, 1024)
