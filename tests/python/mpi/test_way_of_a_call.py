"""The way of a call, as ARCHITECTURE.md has it: a repeated MPI_Allreduce is followed line by line in a debugger."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from palmette.mpi.abi import PROGRAMS

from .conftest import ROOT, forced, pretended

pytestmark = [pytest.mark.mpi, pytest.mark.long]

FOLLOW = Path(__file__).with_name("programs") / "follow_call.py"
MOST_FILES = 7
"""Compiled files of palmette that a call may come through between the wrapper and the transport."""


def told() -> list[str]:
    """The files that ARCHITECTURE.md names, in order."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text.partition("## The way of a call")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.cpp)`", part, re.MULTILINE)


def test_a_repeated_allreduce_crosses_the_files_that_are_told(tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("no gdb: apt-get install gdb")
    built = subprocess.run(
        [ROOT / "tools" / "build.sh", "dev", "2", "palmette_mpich"], check=False, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    library = ROOT / "build" / "dev" / "lib" / "libpalmette_mpich.so"
    mpiexec = ROOT / ".mpi" / "mpich" / "bin" / "mpiexec"
    heat = PROGRAMS / "heat.mpich"
    # Rank 0 in the debugger, the other one beside it.
    script = (
        f'if [ "$PMI_RANK" = 0 ]; then exec gdb -q -batch -x {FOLLOW} --args {heat} 40; '
        f'else LD_PRELOAD="$FOLLOWED" exec {heat} 40; fi'
    )
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PALMETTE_")},
        **forced(pretended(2, "01"), allreduce="recursive_doubling"),
        "PALMETTE_SERVE_AFTER": "0", "PALMETTE_COMPARE": "0", "PALMETTE_SITE": "0",
        "LD_LIBRARY_PATH": str(ROOT / ".mpi" / "mpich" / "lib"), "FOLLOWED": str(library), "NUMBER": "12",
    }  # fmt: skip
    ran = subprocess.run(
        [mpiexec, "-n", "2", "sh", "-c", script],
        env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert "ENDED" in ran.stdout, ran.stdout[-3000:] + ran.stderr[-3000:]
    files = re.findall(r"^FILE .*/src/palmette/(\S+\.cpp)$", ran.stdout, re.MULTILINE)
    until = next(index for index, file in enumerate(files) if "transport" in file)
    crossed = list(dict.fromkeys(files[:until]))
    assert crossed == told()
    assert 3 < len(crossed) <= MOST_FILES
