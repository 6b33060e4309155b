"""Random arguments: the same bytes as from the MPI, whatever types, counts, roots, operations and communicators."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from palmette import _core

from .conftest import FUNCTIONS, LEVEL_BY_LEVEL, SOAK, Cluster, Mpi, algorithms_of, forced, pretended
from .specs import COLLECTIVE_OF, every_spec, number_of_sets, spec_set

pytestmark = pytest.mark.mpi

# Ranks may have different types with equal signatures, which the MPIs themselves don't bear: none of these
# specifications refuses a communicator and so leaves it to the MPI.
FOR_ANY_TYPES: dict[str, dict[str, str]] = {
    "linear": forced(
        gather="linear",
        scatter="linear",
        allgather="ring",
        gatherv="linear",
        scatterv="linear",
        allgatherv="ring",
        bcast="linear",
        alltoall="linear",
        alltoallv="linear",
        alltoallw="linear",
    ),
    "by_rank": forced(
        gather="linear:order=rank",
        gatherv="linear:order=rank",
        scatter="linear:order=rank",
        scatterv="linear:order=rank",
        allgather="ring:order=rank,nested=no",
        allgatherv="ring:order=rank",
        bcast="linear:order=rank",
        alltoall="pairwise:partners=shift",
        alltoallv="pairwise:window=1,levels=together",
        alltoallw="pairwise:window=3",
    ),
    "binomial": forced(
        gather="k_nomial",
        gatherv="linear",
        scatter="k_nomial",
        scatterv="linear",
        allgather="bruck",
        allgatherv="bruck",
        bcast="k_nomial",
        alltoall="bruck",
        alltoallv="pairwise",
        alltoallw="linear",
    ),
    "segments": forced(
        gather="k_nomial:radix=3,segment=64",
        gatherv="linear",
        scatter="k_nomial:segment=100",
        scatterv="linear",
        allgather="ring:segment=128",
        allgatherv="ring:segment=1000",
        bcast="chain:segment=100",
        alltoall="bruck:radix=3",
        alltoallv="linear:partners=shift",
        alltoallw="pairwise",
    ),
    "levels": forced(
        gather="by_topology:node=linear,leaf=k_nomial.4,top=linear,segment=256",
        gatherv="linear",
        scatter="by_topology:node=k_nomial.3,top=binomial,segment=256",
        scatterv="linear",
        allgather="leaders:leaders=2,between=bruck,inside=k_nomial.3",
        allgatherv="leaders:leaders=3,layout=rails",
        bcast="by_topology:node=chain,leaf=k_ary.2,top=chain,segment=300",
        alltoall="node_aware",
        alltoallv="linear",
        alltoallw="linear",
    ),
}

MAPS = {"one_node": "", "pairs": "0011", "scattered": "01", "uneven": "0012221", "alone": "0123456789abcdef"}
"""Which pretended host each rank is on."""

WITH_LEVELS, PER_SPEC_SET, BY_TABLE, ANY_TYPES = 150, 120, 100, 60
"""Cases of a run."""
RANKS = (1, 2, 3, 4, 7, 8, 16)
EVERY_MPI = ("mpich", "mpich-abi", "openmpi", "impi", "impi-abi")
THREE_MPIS = ("mpich", "openmpi", "impi")


def by_turns(variants: tuple[str, ...], cases: Iterable[object], count: int, *always: str) -> list[Any]:
    """Return MPI and case of all: `count` MPIs of each case by turns, beside `always`; the rest for test-long."""
    left = [name for name in variants if name not in always]
    chosen = []
    for turn, case in enumerate(cases):
        now = {*always, *(left[(turn + 2 * i) % len(left)] for i in range(count))}
        chosen += [pytest.param(name, case, marks=() if name in now else pytest.mark.long) for name in variants]
    return chosen


def base_name(spec: str) -> str:
    return spec.split(":", maxsplit=1)[0]


def test_there_are_at_least_twenty_thousand_cases() -> None:
    cases = len(EVERY_MPI) * len(RANKS) * WITH_LEVELS
    cases += len(THREE_MPIS) * number_of_sets() * PER_SPEC_SET
    cases += len(EVERY_MPI) * len(MAPS) * BY_TABLE
    cases += len(THREE_MPIS) * len(FOR_ANY_TYPES) * ANY_TYPES
    assert cases >= 20_000


def test_every_algorithm_is_among_the_forced_ones() -> None:
    tried = {
        (collective, base_name(spec))
        for index in range(number_of_sets())
        for function, spec in spec_set(index).items()
        for collective in [COLLECTIVE_OF[function]]
    }
    known = {(str(one.collective), one.name) for one in _core.algorithms() if not one.in_network}
    assert known - tried == set()
    assert all(every_spec().values())


@pytest.mark.parametrize(("variant", "ranks"), by_turns(EVERY_MPI, RANKS, 2))
def test_results_are_those_of_the_mpi(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, variant: str, ranks: int
) -> None:
    ran = mpi_called(variant).run(
        ranks, "random_arguments", "--seed", ranks, "--cases", WITH_LEVELS * SOAK,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(ranks)},
    )  # fmt: skip
    ran.assert_right()
    served = ran.served()
    if ranks == 1:
        assert served == {}
        assert all("a communicator of one rank" in reasons for reasons in ran.fallbacks().values())
        return
    for function in FUNCTIONS:
        assert sum(served.get(function, {}).values()) > 0, f"{function} was never served: {ran.report}"


@pytest.mark.parametrize(("variant", "index"), by_turns(THREE_MPIS, range(number_of_sets()), 1, "mpich"))
def test_each_algorithm_gives_the_right_bytes(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, variant: str, index: int
) -> None:
    specs = spec_set(index)
    # On MPICH where no algorithm refuses the world, on the others everywhere.
    which = 0 if variant == "mpich" else index + THREE_MPIS.index(variant)
    ranks = (8, 7, 4, 6, 16)[which % 5]
    places = (
        cluster.settings(ranks, "block"),
        cluster.settings(ranks),
        pretended(ranks, MAPS["uneven"]),
        pretended(ranks, MAPS["one_node"]),
    )
    ran = mpi_called(variant).run(
        ranks, "random_arguments", "--seed", 100 * index + ranks, "--cases", PER_SPEC_SET * SOAK,
        settings={**forced(**specs), **places[which % 4]},
    )  # fmt: skip
    ran.assert_right()
    served = ran.served()
    for function, spec in specs.items():
        algorithms = {base_name(algorithm) for algorithm in served.get(function, {})}
        assert algorithms <= {base_name(spec)}, f"{function}: {served[function]}"
        seen = algorithms or function in ran.fallbacks() or function in ran.empty()
        assert seen, f"{function} by {spec} was neither served nor refused"


@pytest.mark.parametrize(("variant", "place"), by_turns(EVERY_MPI, MAPS, 2))
def test_what_the_table_chooses_is_right(mpi_called: Callable[[str], Mpi], variant: str, place: str) -> None:
    ranks = 7 if place == "uneven" else 8
    ran = mpi_called(variant).run(
        ranks, "random_arguments", "--seed", 7, "--cases", BY_TABLE * SOAK, settings=pretended(ranks, MAPS[place])
    )
    ran.assert_right()
    assert set(ran.served()) | set(ran.fallbacks()) == set(FUNCTIONS)


@pytest.mark.parametrize(("variant", "name"), by_turns(THREE_MPIS, FOR_ANY_TYPES, 1))
def test_types_need_not_be_the_same_on_all_ranks(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, variant: str, name: str
) -> None:
    ran = mpi_called(variant).run(
        7, "random_arguments", "--alone", 1, "--moving-only", 1, "--seed", len(name), "--cases", ANY_TYPES * SOAK,
        settings={**FOR_ANY_TYPES[name], **cluster.settings(7)},
    )  # fmt: skip
    ran.assert_right()
    served = ran.served()
    for function, spec in algorithms_of(FOR_ANY_TYPES[name]).items():
        algorithms = {base_name(algorithm) for algorithm in served[function]}
        assert algorithms == {base_name(spec)}, f"{function}: {served[function]}, {ran.fallbacks().get(function)}"


def test_the_inside_of_this_host_comes_from_the_file(mpi: Mpi, tmp_path: Path) -> None:
    inside = [{"level": "socket", "count": 2, "children": [{"level": "core", "count": 2}]}]
    machine = {
        "levels": [{"name": "node"}, {"name": "socket"}, {"name": "core"}],
        "insides": {"two": inside},
        "tree": {"name": "all", "children": [{"name": socket.gethostname(), "level": "node", "inside": "two"}]},
    }
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    settings = {**LEVEL_BY_LEVEL, "PALMETTE_TOPOLOGY": str(path)}
    ran = mpi.run(4, "random_arguments", "--cases", 120 * SOAK, settings=settings)
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_a_host_that_the_file_does_not_know_is_told_and_costs_nothing(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "random_arguments", "--cases", 40, settings={"PALMETTE_TOPOLOGY": str(cluster.path)})
    ran.assert_right()
    assert "is not in it" in ran.err + json.dumps(ran.report), ran.text


def test_switched_off_nothing_is_served_and_all_is_right(mpi: Mpi) -> None:
    mpi.run(4, "random_arguments", "--cases", 80 * SOAK, settings={"PALMETTE_ENABLE": "0"}).assert_right()


def test_one_case_can_be_done_alone(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(
        4, "random_arguments", "--seed", 3, "--first", 57, "--cases", 1,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(4)},
    )  # fmt: skip
    ran.assert_right()
    assert sum(sum(calls.values()) for calls in ran.served().values()) <= 4


def test_the_programs_are_right_without_palmette(mpi: Mpi) -> None:
    mpi.run(4, "random_arguments", "--cases", 200, preload=False).assert_right()
