"""Fixtures of the tests of exports: jobs, and a program that tells how an MPI combined operands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from palmette import _core
from palmette.mpi import install as mpi_install
from palmette.mpi import launch

PROGRAM = Path(__file__).parent / "programs" / "operands.c"
RANKS = 4


@pytest.fixture
def job() -> _core.Job:
    """Four ranks, two on each of two hosts behind two switches, in order."""
    return _core.Job(_core.Machine.synthetic("2leaf:1node:2core"))


def table_of(rows: list[dict[str, object]]) -> _core.Table:
    """A decision table of these rows."""
    return _core.Table.from_json({"format": "palmette-table", "version": 1, "rows": rows})


@pytest.fixture(scope="session")
def operands_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the program built for an MPI: `operands_program("mpich")`."""
    folder = tmp_path_factory.mktemp("operands")

    def build(name: str) -> Path:
        try:
            mpi = mpi_install.find(name)
        except mpi_install.MpiNotFoundError as error:
            pytest.skip(str(error))
        path = folder / name
        if not path.exists():
            environment = {**os.environ, **mpi.environment()}
            words = [str(mpi.prefix / "bin" / "mpicc"), "-std=gnu11", "-O1", str(PROGRAM), "-o", str(path)]
            subprocess.run(words, env=environment, check=True, capture_output=True, timeout=60)
        return path

    return build


@pytest.fixture
def operands(
    operands_program: Callable[[str], Path], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the program under an MPI on this machine: `operands("mpich", {"K": "V"}, "allreduce", "4096")`."""

    def run(name: str, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        program = operands_program(name)
        mpi = mpi_install.find(name)
        polite = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
        if name == "openmpi":
            polite = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm", "OMPI_MCA_mpi_yield_when_idle": "1"}
        variables = {**mpi.environment(), **polite, **environment}
        words = launch.Job([str(program), *arguments], ["localhost"] * RANKS, tmp_path, variables)
        command = launch.launcher(mpi.launcher).command(mpi.mpiexec, words)
        return subprocess.run(
            command, env={**os.environ, **mpi.environment()}, cwd=tmp_path, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip

    return run
