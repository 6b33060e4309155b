"""Composed plans that run: through the C functions, and from Python with mpi4py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Cluster, Mpi

pytestmark = pytest.mark.mpi

PROGRAM = Path(__file__).with_name("programs") / "composed.py"


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_compositions_give_what_the_mpis_collectives_give(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "compose", "--rounds", 8, settings=cluster.settings(ranks))
    ran.assert_right()


@pytest.mark.parametrize("ranks", [3, 4])
def test_python_runs_them_on_arrays_with_mpi4pys_communicators(mpi: Mpi, ranks: int) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed: pip install mpi4py")
    if mpi.abi == "abi":
        pytest.skip("mpi4py's wheels are for the ABIs of MPICH and Open MPI")
    environment = f"PYTHONPATH={ROOT / 'python'}"
    ran = mpi.run(ranks, Path("/usr/bin/env"), environment, sys.executable, PROGRAM, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text
