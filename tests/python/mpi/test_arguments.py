"""Random arguments: the same bytes as from the MPI, whatever types, counts, roots and communicators."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette import _core

from .conftest import FUNCTIONS, SOAK, Cluster, Mpi, forced

pytestmark = pytest.mark.mpi

BY_TOPOLOGY = forced(
    gather="by_topology",
    gatherv="linear",
    scatter="by_topology",
    scatterv="linear",
    allgather="leaders:leaders=2",
    allgatherv="leaders",
)

# Each set is one run; what isn't named falls to the same algorithm for all.
SPECS: dict[str, dict[str, str]] = {
    "linear": forced(gather="linear", scatter="linear", allgather="ring", gatherv="linear", scatterv="linear"),
    "linear_by_rank": forced(
        gather="linear:order=rank", scatter="linear:order=rank", allgather="ring:order=rank,nested=no"
    ),
    "binomial": forced(gather="k_nomial", scatter="k_nomial", allgather="bruck", allgatherv="bruck"),
    "wide": forced(
        gather="k_nomial:radix=5,order=rank", scatter="k_nomial:radix=3", allgather="bruck:radix=4,order=rank"
    ),
    "segments": forced(
        gather="k_nomial:radix=3,segment=64",
        scatter="k_nomial:segment=100",
        allgather="ring:segment=128",
        allgatherv="ring:segment=1000",
    ),
    "by_topology": forced(gather="by_topology", scatter="by_topology", allgather="leaders", allgatherv="leaders"),
    "levels": forced(
        gather="by_topology:node=linear,leaf=k_nomial.4,top=linear,segment=256",
        scatter="by_topology:node=k_nomial.3,top=binomial,segment=256",
        allgather="leaders:leaders=2,between=bruck,inside=k_nomial.3",
        allgatherv="leaders:leaders=2,inside=binomial",
    ),
    "direct": forced(
        gather="by_topology:direct=200,segment=64",
        scatter="by_topology:direct=200",
        allgather="leaders:leaders=3,layout=rails",
        allgatherv="leaders:between=bruck.3",
    ),
    # Here and below, functions that the test is not about are forced as well: the table leaves some to the MPI, and
    # Intel MPI's own gather frees memory twice for some derived types (docs/guide/run.md).
    "doubling": forced(
        gather="linear", scatter="linear", allgather="recursive_doubling", allgatherv="recursive_doubling:order=rank"
    ),
    "neighbours": forced(
        gather="linear", scatter="linear", allgather="neighbor_exchange", allgatherv="neighbor_exchange:order=rank"
    ),
    "v_forms": forced(
        gather="linear",
        scatter="linear",
        allgather="ring",
        gatherv="linear:order=rank",
        scatterv="linear:order=rank",
        allgatherv="ring:order=rank",
    ),
}


def base_name(spec: str) -> str:
    return spec.split(":", maxsplit=1)[0]


@pytest.mark.parametrize("ranks", [1, 2, 4, 7, 16])
def test_results_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(
        ranks, "random_arguments", "--seed", ranks, "--cases", 150 * SOAK,
        settings={**BY_TOPOLOGY, **cluster.settings(ranks)},
    )  # fmt: skip
    ran.assert_right()
    served = ran.served()
    if ranks == 1:
        assert served == {}
        assert all("a communicator of one rank" in reasons for reasons in ran.fallbacks().values())
        return
    for function in FUNCTIONS:
        assert sum(served[function].values()) > 0, f"{function} was never served: {ran.report}"


@pytest.mark.parametrize("order", ["block", "scattered"])
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("variant", ["mpich", "openmpi", "impi"])
def test_each_algorithm_gives_the_right_bytes(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, variant: str, name: str, order: str
) -> None:
    ranks = 8 if order == "block" else 7
    # These refuse some numbers of ranks and leave smaller communicators to the MPI, which must then not meet ranks with
    # different types.
    picky = name in ("doubling", "neighbours")
    ranks = 8 if picky else ranks
    settings = {**SPECS[name], **cluster.settings(ranks, order)}
    ran = mpi_called(variant).run(
        ranks,
        "random_arguments",
        "--by-packing",
        int(not picky),
        "--seed",
        len(name),
        "--cases",
        60 * SOAK,
        settings=settings,
    )
    ran.assert_right()
    served = ran.served()
    for variable, spec in SPECS[name].items():
        function = variable.removeprefix("PALMETTE_").lower()
        algorithms = {base_name(algorithm) for algorithm in served[function]}
        assert algorithms == {base_name(spec)}, f"{function}: {served[function]}, {ran.fallbacks().get(function)}"


def test_every_algorithm_is_among_the_forced_ones() -> None:
    tried = {
        (variable.removeprefix("PALMETTE_").lower().removesuffix("v"), base_name(spec))
        for specs in SPECS.values()
        for variable, spec in specs.items()
    }
    known = {(str(algorithm.collective), algorithm.name) for algorithm in _core.algorithms()}
    assert known - tried == set()


@pytest.mark.parametrize("variant", ["mpich", "openmpi", "impi"])
def test_without_a_file_the_nodes_come_from_the_mpi(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    ran = mpi_called(variant).run(
        6, "random_arguments", "--cases", 60 * SOAK,
        settings={**BY_TOPOLOGY, "PALMETTE_FAKE_HOSTS": "0,1,2,0,1,2"},
    )  # fmt: skip
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_the_inside_of_this_host_comes_from_the_file(mpi: Mpi, tmp_path: Path) -> None:
    inside = [{"level": "socket", "count": 2, "children": [{"level": "core", "count": 2}]}]
    machine = {
        "levels": [{"name": "node"}, {"name": "socket"}, {"name": "core"}],
        "insides": {"two": inside},
        "tree": {"name": "all", "children": [{"name": socket.gethostname(), "level": "node", "inside": "two"}]},
    }
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    ran = mpi.run(4, "random_arguments", "--cases", 60 * SOAK, settings={**BY_TOPOLOGY, "PALMETTE_TOPOLOGY": str(path)})
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_a_host_that_the_file_does_not_know_is_told_and_costs_nothing(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "random_arguments", "--cases", 40, settings={"PALMETTE_TOPOLOGY": str(cluster.path)})
    ran.assert_right()
    assert "is not in it" in ran.err + json.dumps(ran.report), ran.text


@pytest.mark.parametrize("settings", [{}, {"PALMETTE_ENABLE": "0"}], ids=["by_table", "off"])
def test_calls_that_are_left_to_the_mpi_are_right_and_counted(mpi: Mpi, settings: dict[str, str]) -> None:
    ran = mpi.run(4, "random_arguments", "--cases", 80 * SOAK, settings=settings)
    ran.assert_right()
    if not settings:
        # One node: nothing to win over the MPI's shared memory.
        assert ran.served() == {}
        assert set(ran.fallbacks()) == set(FUNCTIONS)


def test_the_programs_are_right_without_palmette(mpi: Mpi) -> None:
    mpi.run(4, "random_arguments", "--cases", 80, preload=False).assert_right()
