"""Sparse sums from Python, on mpi4py's communicators."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Cluster, Mpi

pytestmark = pytest.mark.mpi

PROGRAM = Path(__file__).with_name("programs") / "sparse.py"


@pytest.mark.parametrize("ranks", [1, 5])
def test_footprints_are_summed_to_their_owners_and_spread_back(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed: pip install mpi4py")
    if mpi.abi == "abi":
        pytest.skip("mpi4py's wheels are for the ABIs of MPICH and Open MPI")
    settings = [f"{name}={value}" for name, value in cluster.settings(ranks).items()]
    environment = [f"PYTHONPATH={ROOT / 'python'}", *settings]
    ran = mpi.run(ranks, Path("/usr/bin/env"), *environment, sys.executable, PROGRAM, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text
