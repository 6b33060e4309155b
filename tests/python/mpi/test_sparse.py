"""Sparse sums from Python, on mpi4py's communicators."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from collections.abc import Callable
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


@pytest.mark.parametrize(("method", "parts"), [("sirt", 1), ("cgls", 3)])
def test_tomography_is_the_same_by_allreduce_by_alltoallv_and_by_sparse_sums(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, method: str, parts: int, tmp_path: Path
) -> None:
    for module in ("mpi4py", "scipy"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} isn't installed: pip install {module}")
    example = ROOT / "examples" / "tomography" / "reconstruct.py"
    sizes = ["--cells", "32", "--angles", "48", "--slices", "3", "--tile", "4", "--method", method, "--parts", parts]
    # Three ranks on one host: strips.
    settings = {**cluster.settings(4), "PALMETTE_FAKE_HOSTS": ",".join(cluster.hosts[n] for n in (0, 0, 0, 4))}
    environment = [f"PYTHONPATH={ROOT / 'python'}", *(f"{name}={value}" for name, value in settings.items())]
    ran = mpi_called("mpich").run(
        4, Path("/usr/bin/env"), *environment, sys.executable, example, *sizes, "--json", tmp_path / "figures.json",
        preload=False,
    )  # fmt: skip
    assert ran.status == 0, ran.text
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert figures["order"] == "strips"
    assert figures["apart"] < 1e-5
    for way in ("allreduce", "alltoallv", "palmette"):
        assert figures[way]["adjoint"] < 1e-6
        residuals = figures[way]["residuals"]
        assert all(after < before for before, after in itertools.pairwise(residuals))
    assert set(figures["palmette"]["volumes"]) == {"leaf", "node"}
    for level, summed in figures["palmette"]["volumes"].items():
        flat = figures["alltoallv"]["volumes"][level]
        assert 0 < summed["sum"] == summed["spread"] < flat["sum"] == flat["spread"]
    # Vectors of all rays, once out of the other host and once into it.
    assert figures["allreduce"]["volumes"]["node"] == {"sum": 2 * 32 * 48 * 3 * 4, "spread": 0}
