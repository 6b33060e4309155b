"""Memory of other ranks that the system doesn't let them read, where single copies are in use."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Mpi, ProgramResult, forced, pretended

pytestmark = pytest.mark.mpi

FUNCTIONS = ("bcast", "allgather", "gather", "allreduce", "reduce", "alltoall")
SINGLE = {**forced(**dict.fromkeys(FUNCTIONS, "shared:single=16K")), "PALMETTE_COMPARE": "0"}


def refused_reads(ran: ProgramResult) -> Any:
    assert ran.report is not None, ran.text
    return ran.report["refused_reads"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_refusal_in_the_middle_of_a_run_harms_nobody(mpi: Mpi, ranks: int) -> None:
    ran = mpi.run(ranks, "unreadable", "ordinary", settings={**SINGLE, "PALMETTE_FAKE_REFUSED_READS": "4"})
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)
    assert refused_reads(ran) > 0


def test_nothing_is_refused_where_all_can_be_read(mpi: Mpi) -> None:
    ran = mpi.run(2, "unreadable", "ordinary", "--rounds", 1, settings=SINGLE)
    ran.assert_right()
    assert refused_reads(ran) == 0


@pytest.mark.parametrize("ranks", [2, 3])
def test_buffers_that_nobody_else_can_read_are_moved_all_the_same(mpi: Mpi, ranks: int) -> None:
    ran = mpi.run(ranks, "unreadable", "secret", settings=SINGLE)
    if ran.status == 77:
        pytest.skip("the system has no memfd_secret")
    ran.assert_right()
    assert refused_reads(ran) > 0


def test_algorithms_with_messages_too_go_another_way(mpi: Mpi) -> None:
    levels = forced(
        bcast="by_topology:inside=shared,single=16K", allgather="leaders:inside=shared,single=16K",
        allreduce="leaders:inside=shared,single=16K",
    )  # fmt: skip
    settings = {**SINGLE, **levels, **pretended(4, "0011"), "PALMETTE_FAKE_REFUSED_READS": "2"}
    ran = mpi.run(4, "unreadable", "ordinary", settings=settings)
    ran.assert_right()


def test_composed_plans_send_what_they_may_not_read(mpi: Mpi) -> None:
    settings = {**pretended(3, "0"), "PALMETTE_FAKE_REFUSED_READS": "3"}
    ran = mpi.run(3, "compose", "--rounds", 8, settings=settings)
    ran.assert_right()
    assert refused_reads(ran) > 0
