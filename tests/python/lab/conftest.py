"""Fixtures of the lab's tests: what they need, a state folder of their own, compiled MPI programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette_lab.lab import Lab, LabError
from palmette_lab.lab.namespaces import check_can_build

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture(scope="session")
def _can_build(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """Why labs can't be built here, or None."""
    if os.geteuid() != 0:
        return "needs root to make network namespaces"
    os.environ["PALMETTE_LAB_STATE"] = str(tmp_path_factory.mktemp("probe"))
    try:
        check_can_build()
        Lab.up("2node@100Mbit/s", name="probe").down()
    except LabError as error:
        return str(error)
    finally:
        del os.environ["PALMETTE_LAB_STATE"]
    return None


@pytest.fixture
def lab_state(_can_build: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state folder of this test alone; what a test leaves up is taken down. Skips where no lab can be built."""
    if _can_build is not None:
        pytest.skip(_can_build)
    folder = tmp_path / "labs"
    monkeypatch.setenv("PALMETTE_LAB_STATE", str(folder))
    yield folder
    from palmette_lab.lab import build, state

    for name in state.known_labs():
        build.tear_down(name)


@pytest.fixture
def lab(lab_state: Path) -> Iterator[Lab]:
    """The lab of the issue: 8 hosts of 2 ranks on 3 leaves."""
    with Lab.up("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core") as made:
        yield made


@pytest.fixture(scope="session")
def ranks_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile `ranks` for an MPI; Intel's runs the one of MPICH, whose ABI it shares. Skips where that can't be
    done."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name: str) -> Path:
        try:
            mpi_install.find(name)
            compiler = mpi_install.find("mpich" if name == "impi" else name)
        except mpi_install.MpiNotFoundError as error:
            pytest.skip(str(error))
        program = folder / f"ranks.{compiler.name}"
        mpicc = compiler.prefix / "bin" / "mpicc"
        if not mpicc.exists():
            pytest.skip(f"{compiler.name} has no mpicc")
        if not program.exists():
            subprocess.run([mpicc, "-O1", PROGRAMS / "ranks.c", "-o", program], check=True, timeout=60)
        return program

    return compiled
