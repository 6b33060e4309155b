"""What is around a collective: communicators, threads, errors, MPI_Init and MPI_Finalize, sessions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import FUNCTIONS, LEVEL_BY_LEVEL, SOAK, Cluster, Mpi, pretended

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 5])
def test_communicators_of_all_kinds_are_right(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(
        ranks,
        "communicators",
        "--cycles",
        20 * SOAK,
        "--alive",
        5,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(ranks)},
    )
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)
    assert "an inter-communicator" in ran.fallbacks()["gather"]


def test_three_thousand_communicators_made_and_freed_leave_ids_for_more(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(
        3, "communicators", "--cycles", 3000 * SOAK, "--alive", 5, settings={**LEVEL_BY_LEVEL, **cluster.settings(3)}
    )
    ran.assert_right()
    assert ran.served()["allgather"]["leaders:leaders=2"] > 1500


def test_communicators_that_stay_leave_room_for_the_users(mpi: Mpi, cluster: Cluster) -> None:
    # Without palmette MPICH has 2,046; Intel MPI itself ends a job that reduces on about 1,000.
    alive = 300 if mpi.name == "impi" else 1500
    ran = mpi.run(
        2, "communicators", "--cycles", 1, "--alive", alive, settings={**LEVEL_BY_LEVEL, **cluster.settings(2)}
    )
    ran.assert_right()
    assert ran.served()["gather"]["by_topology"] > 200


@pytest.mark.parametrize("threads", [2, 6])
def test_threads_run_collectives_at_the_same_time(mpi: Mpi, cluster: Cluster, threads: int) -> None:
    settings = {**LEVEL_BY_LEVEL, **cluster.settings(3)}
    ran = mpi.run(3, "threads", "--threads", threads, "--rounds", 24 * SOAK, settings=settings)
    if ran.status == 77:
        pytest.skip(f"{mpi.name} gives less than MPI_THREAD_MULTIPLE")
    ran.assert_right()
    served = ran.served()
    assert all(sum(served[function].values()) == threads * 24 * SOAK * 5 // 4 for function in FUNCTIONS), served


def test_errors_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "errors", settings={**LEVEL_BY_LEVEL, **cluster.settings(4)})
    ran.assert_right()
    assert set(ran.served()) == set(FUNCTIONS)


def test_callbacks_inside_finalize_may_run_collectives(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(4, "lifecycle", settings={**LEVEL_BY_LEVEL, **cluster.settings(4)})
    ran.assert_right(lines=4)
    assert set(ran.served()) == set(FUNCTIONS)


def test_sessions_need_no_world(mpi: Mpi, cluster: Cluster) -> None:
    settings = {**LEVEL_BY_LEVEL, **cluster.settings(4), "PALMETTE_VERBOSE": "2"}
    ran = mpi.run(4, "sessions", settings=settings)
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no sessions")
    ran.assert_right(lines=4)
    # No MPI_Finalize, no report. Elsewhere calls pass through: Open MPI 5.0 says that it is MPI 3, and Intel MPI's
    # MPI_Initialized that MPI_Init was called, so that palmette takes itself for loaded too late.
    if mpi.name == "mpich":
        assert "palmette: gather of 16 on 4 ranks by by_topology" in ran.err, ran.text


@pytest.mark.parametrize("variant", ["mpich", "mpich-abi"])
def test_nothing_outlives_the_mpi_of_its_session(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    # Intel MPI and Open MPI 5.0 can't start a second time in a process, with or without palmette.
    mpi = mpi_called(variant)
    settings = {**LEVEL_BY_LEVEL, **pretended(2, "01"), "PALMETTE_VERBOSE": "2"}
    for last in (False, False, True):
        # MPICH 5.0 hangs in about one of a hundred second starts, also without palmette.
        ran = mpi.run(2, "sessions", "--sessions", 3, "--world", 1, "--patience", 20, settings=settings)
        if ran.status == 0 or last:
            break
    ran.assert_right(lines=2)
    assert ran.err.count("palmette: gather of 16 on 2 ranks by by_topology") >= 3 + 2, ran.text
    assert set(ran.served()) == set(FUNCTIONS), "the world gets its report"
