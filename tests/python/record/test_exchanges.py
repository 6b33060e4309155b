"""Exchanges in rows and columns of a grid of ranks share links."""

from __future__ import annotations

import pytest

from palmette import _core
from palmette.record.exchanges import Exchanges

RATE = 1e6


@pytest.fixture
def job() -> _core.Job:
    """Eight ranks in order on four nodes, two below each leaf."""
    return _core.Job(_core.Machine.synthetic(f"2leaf@{RATE:.0f}B/s:2node@{RATE:.0f}B/s:2core"), "block", 8)


def test_rows_and_columns_take_what_their_links_need_together(job: _core.Job) -> None:
    exchanges = Exchanges()
    for row in ((0, 1, 2, 3), (4, 5, 6, 7)):
        exchanges.add("MPI_Alltoallw", row, 1000)
    for column in ((0, 4), (1, 5), (2, 6), (3, 7)):
        exchanges.add("MPI_Alltoallw", column, 1000)
    # A row: two ranks of a node send to two of the other node of their leaf, and nothing leaves the leaf.
    assert exchanges.seconds(job, "MPI_Alltoallw", (0, 1, 2, 3)) == pytest.approx(2 * 2 * 1000 / RATE)
    # A column alone would take 1 ms: all four leave the leaf by the same uplink.
    assert exchanges.seconds(job, "MPI_Alltoallw", (1, 5)) == pytest.approx(4 * 1000 / RATE)


def test_the_largest_of_several_sizes_counts(job: _core.Job) -> None:
    exchanges = Exchanges()
    exchanges.add("MPI_Alltoallv", (0, 2), 10)
    exchanges.add("MPI_Alltoallv", (0, 2), 3000)
    exchanges.add("MPI_Alltoallv", (0, 2), 20)
    assert exchanges.seconds(job, "MPI_Alltoallv", (0, 2)) == pytest.approx(3000 / RATE)


def test_what_stays_inside_of_a_node_crosses_no_link(job: _core.Job) -> None:
    exchanges = Exchanges()
    exchanges.add("MPI_Alltoallv", (0, 1), 1000)
    assert exchanges.seconds(job, "MPI_Alltoallv", (0, 1)) == 0
