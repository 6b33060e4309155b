"""Starting real programs by `palmette run`: options of the launcher, sanitizers, scripts that name no MPI."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import TIMEOUT_S, Mpi

pytestmark = pytest.mark.mpi

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank = -1, sum = 0;
  int *one = malloc(sizeof *one);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  *one = rank + 1;
  MPI_Allreduce(one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d\\n", sum);
  free(one);
  MPI_Finalize();
  return argc > 1 ? one[0] : 0;
}
"""
FORCED = ("--force", "allreduce=recursive_doubling")


def compiled(mpi: Mpi, *options: str) -> Path:
    """The program for that MPI; skips where it can't be built."""
    compiler = shutil.which("cc")
    if compiler is None or mpi.installation.library_dir is None:
        pytest.skip("no C compiler, or no MPI in a prefix of its own")
    name = {"mpich": "libmpi.so.12", "ompi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}[mpi.abi]
    folder = mpi.installation.library_dir
    source, target = mpi.directory / "program.c", mpi.directory / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    words = [
        compiler,
        "-g",
        "-O0",
        *options,
        f"-I{mpi.installation.prefix / 'include'}",
        str(source),
        str(folder / name),
    ]
    done = subprocess.run(
        [*words, f"-Wl,-rpath,{folder}", "-o", str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"the compiler can't: {done.stderr}")
    return target


def run(
    mpi: Mpi, *words: str, settings: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """`palmette run` with a report; what it did, and the report, empty where none was written."""
    report = mpi.directory / "report.json"
    environment = {**mpi.environment(), "XDG_CACHE_HOME": str(mpi.directory / "cache"), **(settings or {})}
    done = subprocess.run(
        [sys.executable, "-m", "palmette.cli.main", "run", "--report", str(report), *FORCED, *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    return done, found


def served(report: Mapping[str, Any]) -> set[str]:
    return {row["function"] for row in report.get("calls", [])}


def assert_right(done: subprocess.CompletedProcess[str], report: Mapping[str, Any]) -> None:
    text = f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, text
    assert done.stdout.count("sum 3") == 2, text
    assert "allreduce" in served(report), f"{text}\n{report}"


@pytest.fixture(params=["mpich", "openmpi", "impi"])
def own(request: pytest.FixtureRequest, mpi_called: Any) -> Mpi:
    """Each MPI with its own ABI, whose headers are in its prefix."""
    found: Mpi = mpi_called(request.param)
    return found


def test_a_program_with_the_address_sanitizer_runs_and_is_still_watched(own: Mpi) -> None:
    program = str(compiled(own, "-fsanitize=address"))
    # What MPIs never free isn't asked here.
    settings = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=23"}
    assert_right(*run(own, *own.launch(2), program, settings=settings))
    done, _ = run(own, *own.launch(2), program, "use after free", settings=settings)
    assert "heap-use-after-free" in done.stderr
    assert done.returncode != 0


def test_the_value_of_a_launchers_option_is_not_the_program(mpi_called: Any) -> None:
    mpi: Mpi = mpi_called("openmpi")
    launcher, *options = mpi.launch(2)
    assert_right(*run(mpi, launcher, "--with-ft", "ulfm", *options, str(compiled(mpi))))


def script(path: Path, *words: str) -> str:
    path.write_text(f"#!/bin/sh\nset -e\n{' '.join(words)}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_script_that_the_launcher_starts_is_served(own: Mpi) -> None:
    wrapper = script(own.directory / "wrapper.sh", f"exec {compiled(own)}")
    assert_right(*run(own, *own.launch(2), wrapper))


def test_a_script_that_starts_the_launcher_itself_is_served(own: Mpi) -> None:
    job = script(own.directory / "job.sh", *own.launch(2), str(compiled(own)))
    assert_right(*run(own, job))
