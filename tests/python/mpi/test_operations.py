"""Reduction operations: every predefined one and user-defined ones, against the MPI's own MPI_Reduce_local."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from .conftest import SOAK, VARIANTS, Mpi

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_operation_gives_the_bytes_of_the_mpi(mpi_called: Callable[[str], Mpi], variant: str) -> None:
    ran = mpi_called(variant).run(2, "operations", "--rounds", SOAK, preload=False)
    ran.assert_right()
    pairs = re.search(r"^(\d+) pairs of predefined operation and type$", ran.out, re.MULTILINE)
    assert pairs is not None, ran.text
    # What an MPI lacks is few: Open MPI has neither bfloat16 nor Fortran's half, Intel MPI no complex of two quads.
    assert int(pairs[1]) >= 330, ran.text
