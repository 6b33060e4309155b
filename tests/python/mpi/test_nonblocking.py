"""Collectives in the background: MPI_Ibcast and the like, persistent ones, and every way to wait for them."""

from __future__ import annotations

import pytest

from .conftest import LEVEL_BY_LEVEL, SOAK, Cluster, Mpi, ProgramResult, algorithms_of, forced, pretended

pytestmark = pytest.mark.mpi

TREES = forced(
    bcast="k_nomial:segment=4K", reduce="k_nomial", allreduce="rabenseifner", reduce_scatter="ring",
    reduce_scatter_block="pairwise", gather="by_topology", gatherv="linear", scatter="by_topology", scatterv="linear",
    allgather="leaders", allgatherv="ring", alltoall="bruck", alltoallv="pairwise", alltoallw="pairwise",
    barrier="dissemination", scan="recursive_doubling", exscan="recursive_doubling",
)  # fmt: skip
BY_LEVEL = forced(LEVEL_BY_LEVEL, alltoallv="linear")
"""Lengths of blocks that others forward aren't known in time (see below)."""
KINDS = algorithms_of(TREES).keys() - {"alltoallw"}


def in_background(ran: ProgramResult) -> dict[str, int]:
    """Return function -> calls that were served without blocking."""
    assert ran.report is not None, ran.text
    found: dict[str, int] = {}
    for row in ran.report["calls"]:
        if not row["blocking"] and row["calls"] > 0:
            found[row["function"]] = found.get(row["function"], 0) + row["calls"]
    return found


@pytest.mark.parametrize("ranks", [2, 5, 8])
@pytest.mark.parametrize("specs", [TREES, BY_LEVEL], ids=["trees", "by_level"])
def test_many_at_a_time_among_messages_are_right(mpi: Mpi, cluster: Cluster, ranks: int, specs: dict[str, str]) -> None:
    ran = mpi.run(
        ranks, "nonblocking", "--seed", ranks, "--cases", 40 * SOAK, settings={**specs, **cluster.settings(ranks)}
    )
    ran.assert_right()
    served = in_background(ran)
    assert set(served) >= KINDS, f"not served: {KINDS - set(served)}, {ran.fallbacks()}"


def test_those_left_to_the_mpi_are_right_and_counted(mpi: Mpi) -> None:
    # Open MPI crashes when a communicator goes while its own collective is under way.
    left = forced(**dict.fromkeys(algorithms_of(TREES), "mpi"))
    ran = mpi.run(4, "nonblocking", "--cases", 30 * SOAK, "--free-communicator", 0, settings=left)
    ran.assert_right()
    assert set(ran.fallbacks()) >= KINDS
    assert in_background(ran) == {}


def test_blocks_of_unknown_length_that_others_forward_pass_through(mpi: Mpi, cluster: Cluster) -> None:
    settings = {**forced(TREES, alltoallv="node_aware", gatherv="by_topology"), **cluster.settings(5)}
    ran = mpi.run(5, "nonblocking", "--cases", 40 * SOAK, settings=settings)
    ran.assert_right()
    for function in ("alltoallv", "gatherv"):
        assert "blocks that others forward without knowing their lengths" in ran.fallbacks()[function]
        assert function not in in_background(ran)


def test_a_communicator_without_a_blocking_call_before_passes_through(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(3, "first_call", settings={**TREES, **cluster.settings(3)})
    ran.assert_right()
    assert in_background(ran) == {"bcast": 1}, ran.report
    assert "a communicator on which no blocking collective was called before" in ran.fallbacks()["bcast"]


@pytest.mark.parametrize("specs", [TREES, BY_LEVEL], ids=["trees", "by_level"])
@pytest.mark.parametrize("ranks", [2, 5])
def test_persistent_ones_run_again_and_again(mpi: Mpi, cluster: Cluster, ranks: int, specs: dict[str, str]) -> None:
    ran = mpi.run(ranks, "persistent", "--seed", 3, "--rounds", 5 * SOAK, settings={**specs, **cluster.settings(ranks)})
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no persistent collectives")
    ran.assert_right()
    # Six communicators with three to nine operations: most kinds are among them, each in every round.
    served = in_background(ran)
    assert len(served) > 8, served
    assert max(served.values()) >= 5 * SOAK


# What forwards blocks can't be persistent where lengths are unknown: linear ones are.
LISTS = forced(
    allgatherv="leaders",
    gatherv="linear",
    scatterv="linear",
    reduce_scatter="leaders",
    alltoallv="linear",
    alltoallw="linear",
)


@pytest.mark.parametrize("ranks", [2, 3])
def test_persistent_ones_keep_lists_that_the_program_reuses(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "lists_gone", settings={**LISTS, **cluster.settings(ranks)})
    if ran.status == 77:
        pytest.skip(f"{mpi.name} has no persistent collectives")
    ran.assert_right()
    assert set(in_background(ran)) >= {"allgatherv", "gatherv", "scatterv", "reduce_scatter", "alltoallv", "alltoallw"}


@pytest.mark.parametrize("hosts", ["0123", "0011"])
def test_freeing_a_communicator_waits_for_nobody(mpi: Mpi, hosts: str) -> None:
    ran = mpi.run(4, "freed_communicators", settings={**TREES, **pretended(4, hosts)}, timeout_s=60)
    ran.assert_right()
    assert in_background(ran)["allreduce"] >= 10, ran.fallbacks()


def test_communicators_freed_with_a_call_under_way_leave_nothing_behind(mpi: Mpi) -> None:
    # More than the 512 that may be served at a time.
    settings = {**TREES, **pretended(2, "01")}
    ran = mpi.run(2, "freed_communicators", "--rounds", 520, settings=settings)
    ran.assert_right()
    assert in_background(ran)["allreduce"] >= 520, ran.fallbacks()
