"""Composed plans that run: through the C functions, and from Python with mpi4py."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.mpi.abi import SONAMES

from .conftest import ROOT, Cluster, Mpi

pytestmark = pytest.mark.mpi

PROGRAM = Path(__file__).with_name("programs") / "composed.py"


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_compositions_give_what_the_mpis_collectives_give(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(ranks, "compose", "--rounds", 8, settings=cluster.settings(ranks))
    ran.assert_right()


@pytest.mark.slow
def test_every_composition_is_right_on_1_to_24_ranks(mpi: Mpi, cluster: Cluster) -> None:
    ran = mpi.run(24, "compose", "--rounds", 0, "--every", 1, "--timeout", 110, settings=cluster.settings(24))
    ran.assert_right()
    (cases, _), *_ = ran.closing_lines()
    assert cases >= 24 * 11 * 2, "on rank 0, which is in all communicators"


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


@pytest.mark.parametrize("counted", [1024, 0], ids=["counted", "consensus"])
@pytest.mark.parametrize("ranks", [1, 5])
def test_messages_come_to_ranks_that_do_not_expect_them(mpi: Mpi, cluster: Cluster, ranks: int, counted: int) -> None:
    settings = {**cluster.settings(ranks), "PALMETTE_FAKE_COUNTED_RANKS": str(counted)}
    ran = mpi.run(ranks, "arrivals", "--rounds", 12, settings=settings)
    ran.assert_right()


def test_python_sends_to_ranks_that_do_not_expect_it(mpi: Mpi) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed: pip install mpi4py")
    if mpi.abi == "abi":
        pytest.skip("mpi4py's wheels are for the ABIs of MPICH and Open MPI")
    program = PROGRAM.with_name("exchange.py")
    ran = mpi.run(4, Path("/usr/bin/env"), f"PYTHONPATH={ROOT / 'python'}", sys.executable, program, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text


@pytest.mark.parametrize(
    "file",
    [
        PROGRAM.with_name("linked.c"), PROGRAM.with_name("linked.cpp"), PROGRAM.with_name("groups.c"),
        ROOT / "examples/compose/allreduce.c",
    ],
    ids=lambda file: file.name,
)  # fmt: skip
def test_programs_may_be_linked_with_what_the_package_brings(
    mpi: Mpi, file: Path, palmette: Callable[..., Any], tmp_path: Path
) -> None:
    language = ["c++", "-std=c++20"] if file.suffix == ".cpp" else ["cc", "-std=c11"]
    if shutil.which(language[0]) is None:
        pytest.skip(f"no {language[0]} here")
    flags = palmette("compose", "--cflags", "--libs", {"mpich": "mpich", "ompi": "openmpi", "abi": "abi"}[mpi.abi])
    assert flags.status == 0, flags.err
    prefix = mpi.installation.prefix
    if not (prefix / "include" / "mpi.h").is_file() or mpi.installation.library_dir is None:
        pytest.skip(f"{mpi.name} has no headers here")
    words = [
        *language, *("-Wall", "-Wextra", "-Werror", "-isystem", str(prefix / "include")),
        *(["-DMPI_ABI"] if mpi.abi == "abi" else []), str(file), "-o", str(tmp_path / "linked"), *flags.out.split(),
        str(mpi.installation.library_dir / SONAMES[mpi.abi]), "-Wl,--allow-shlib-undefined",
    ]  # fmt: skip
    subprocess.run(words, check=True, timeout=100)
    ran = mpi.run(3, tmp_path / "linked", preload=False)
    assert (ran.status, ran.out.split()[-1:], ran.out.count("\n")) == (0, ["right"], 1), ran.text
