"""Reductions of numbers whose sums depend on the order: the same bits on all ranks and in every run."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from .conftest import SOAK, Cluster, Mpi, ProgramResult, forced, pretended
from .specs import every_spec

pytestmark = pytest.mark.mpi

VARIANTS = ("mpich", "openmpi", "impi")


def digest(ran: ProgramResult) -> str:
    ran.assert_right()
    found = re.search(r"^digest ([0-9a-f]{16})$", ran.out, re.MULTILINE)
    assert found is not None, ran.text
    return found[1]


@pytest.mark.parametrize("place", ["", "0011", "0012221"])
def test_all_ranks_and_all_calls_give_the_same_bits(mpi: Mpi, place: str) -> None:
    ranks = 7
    digests = {
        digest(mpi.run(ranks, "reproducible", "--cases", 60 * SOAK, settings=pretended(ranks, place))) for _ in range(2)
    }
    assert len(digests) == 1, "the bits changed from run to run"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(spec, marks=[pytest.mark.long] * (number % 3 > 0))
        for number, spec in enumerate(every_spec()["allreduce"])
    ],
)
def test_each_allreduce_gives_all_ranks_the_same_bits(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, spec: str
) -> None:
    variant = VARIANTS[every_spec()["allreduce"].index(spec) % len(VARIANTS)]
    ran = mpi_called(variant).run(
        6, "reproducible", "--cases", 40 * SOAK, settings={**forced(allreduce=spec), **cluster.settings(6)}
    )
    digest(ran)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_setting_gives_the_same_bits_for_any_placement(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    ranks = 8
    digests = {
        place: digest(
            mpi_called(variant).run(
                ranks, "reproducible", "--cases", 60 * SOAK,
                settings={"PALMETTE_REPRODUCIBLE": "1", **pretended(ranks, place)},
            )
        )
        for place in ("00001111", "01", "0012221", "01234567")
    }  # fmt: skip
    assert len(set(digests.values())) == 1, digests
