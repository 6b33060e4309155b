"""Programs and preload libraries made for the tests of `palmette run`: nothing of them is an MPI, only named like
one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi.abi import ABIS


@pytest.fixture(autouse=True)
def _answers_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept on disk by other runs doesn't change what a test sees, nor is anything left behind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """A folder with a preload library for each ABI, as far as names go."""
    folder = tmp_path / "palmette-lib"
    folder.mkdir()
    for abi in ABIS:
        (folder / f"libpalmette_{abi}.so").touch()
    return folder


@pytest.fixture
def launchers(tmp_path: Path) -> dict[str, str]:
    """Scripts that say `--version` as the launchers do, by kind."""
    says = {
        "hydra": ("mpiexec.hydra", "HYDRA build details:\n    Version:      5.0.2"),
        "intel_hydra": ("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.18 Build 1"),
        "prrte": ("prterun", "prterun (PRRTE) 3.0.14"),
        "srun": ("srun", "slurm 25.05.3"),
        "unknown": ("mpiexec_mpt", "MPT 2.30"),
    }
    result = {}
    for kind, (name, text) in says.items():
        folder = tmp_path / kind
        folder.mkdir()
        path = folder / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n", encoding="utf-8")
        path.chmod(0o755)
        result[kind] = str(path)
    return result


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Link a program or a library with made-up libraries, as a compiler would with real ones.

    build("app", needs=["libmpi.so.12"]), build("libx.so", needs=[...], library=True, folder=..., options=[...]).
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path / "built"
    folder.mkdir()

    def link(
        name: str,
        *,
        needs: list[str] | None = None,
        library: bool = False,
        where: Path | None = None,
        options: list[str] | None = None,
        source: str = "",
    ) -> Path:
        target = (where or folder) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        stubs = []
        for number, soname in enumerate(needs or []):
            stub = folder / f"stub-{target.name}-{number}.so"
            subprocess.run(
                [compiler, "-shared", "-fPIC", "-xc", "/dev/null", f"-Wl,-soname,{soname}", "-o", stub], check=True
            )
            stubs.append(str(stub))
        code = source or ("" if library else "int main(void) { return 0; }")
        subprocess.run(
            [compiler, *(["-shared", "-fPIC", f"-Wl,-soname,{name}"] if library else []), "-xc", "-", "-xnone",
             "-Wl,--no-as-needed,--allow-shlib-undefined", *stubs, *(options or []), "-o", str(target)],
            input=code, text=True, check=True,
        )  # fmt: skip
        return target

    return link
