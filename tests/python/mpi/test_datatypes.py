"""Datatypes from every constructor, large counts among them."""

from __future__ import annotations

import pytest

from .conftest import Cluster, Mpi
from .test_nonblocking import TREES

pytestmark = pytest.mark.mpi


def test_types_of_all_constructors_move_the_same_bytes_and_raise_nothing(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(3, "datatypes", settings={**TREES, **cluster.settings(3)})
    ran.assert_right()
    assert set(ran.served()) >= {"bcast", "allgather", "allreduce"}
