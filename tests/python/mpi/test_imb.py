"""Intel's MPI benchmarks, a program that knows nothing of palmette, unmodified, as it comes in Intel's wheel.

Its binary is built without data checks (its sources have them behind -DCHECK; there is no option for them, and no
column `defects` in its output), so a second preload does each operation once more by PMPI_ and compares.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi.abi import preload_library

from .conftest import LEVEL_BY_LEVEL, PRELOADS, ROOT, Cluster, Mpi, ProgramResult

pytestmark = pytest.mark.mpi

REDUCTIONS = ("Reduce", "Allreduce", "Reduce_scatter")
BENCHMARKS = (
    "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Bcast", "Alltoall", "Alltoallv",
    *REDUCTIONS,
)  # fmt: skip
SIZES = [0, *(2**k for k in range(15))]
RANKS = 6


@pytest.fixture
def imb(mpi_called: Callable[[str], Mpi]) -> Path:
    path = mpi_called("impi").installation.prefix / "bin" / "IMB-MPI1"
    if not path.is_file():
        pytest.skip(f"no {path}: Intel's wheel brings it")
    return path


def run(mpi: Mpi, imb: Path, settings: dict[str, str], *options: str) -> ProgramResult:
    return mpi.run(RANKS, imb, "-npmin", RANKS, "-iter", 5, "-warm_up", "off", *options, *BENCHMARKS, settings=settings)


def assert_complete(ran: ProgramResult) -> None:
    """Fail unless IMB ran every benchmark at every size, down to its closing line."""
    assert ran.status == 0, ran.text
    for benchmark in BENCHMARKS:
        part = re.search(
            rf"^# Benchmarking {benchmark} *$(.*?)(?=^# Benchmarking|^# All processes)", ran.out, re.M | re.S
        )
        assert part is not None, f"{benchmark} is missing in\n{ran.text}"
        sizes = [int(size) for size in re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+ *$", part[1], re.MULTILINE)]
        # Reductions are of floats.
        expected = [size for size in SIZES if size % 4 == 0] if benchmark in REDUCTIONS else SIZES
        assert sizes == expected, f"{benchmark}: {part[1]}"
    assert "# All processes entering MPI_Finalize" in ran.out


@pytest.mark.parametrize("variant", ["impi", "mpich"])
def test_imb_runs_under_the_preload(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, imb: Path, variant: str
) -> None:
    ran = run(mpi_called(variant), imb, {**LEVEL_BY_LEVEL, **cluster.settings(RANKS)}, "-msglog", "0:14")
    assert_complete(ran)
    served, empty = ran.served(), ran.empty()
    for benchmark in BENCHMARKS:
        # Five calls a size; IMB sums up numbers of four bytes.
        sizes = len(SIZES) - (2 if benchmark in REDUCTIONS else 0)
        function = benchmark.lower()
        assert sum(served[function].values()) + empty.get(function, 0) >= 5 * sizes, (served, empty)


@pytest.mark.parametrize("variant", ["impi", "mpich"])
def test_what_imb_gets_is_right(
    mpi_called: Callable[[str], Mpi], cluster: Cluster, imb: Path, variant: str, tmp_path: Path
) -> None:
    mpi = mpi_called(variant)
    compiler = shutil.which("c++")
    include = mpi_called("mpich").installation.prefix / "include"
    if compiler is None:
        pytest.skip("no C++ compiler for the checking library")
    checker = tmp_path / "checker.so"
    subprocess.run(
        [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{include}",
         ROOT / "tests" / "mpi" / "support" / "checker.cpp", "-o", checker],
        check=True,
    )  # fmt: skip
    # `palmette run` would put palmette before a library that replaces MPI_Gather: here it must stand behind.
    report = tmp_path / "report.json"
    environment = {**mpi.environment(), **LEVEL_BY_LEVEL, **cluster.settings(RANKS), "PALMETTE_REPORT": str(report)}
    library = preload_library("mpich", PRELOADS)
    words = [*mpi.launch(RANKS)[:-2], "-genv", "LD_PRELOAD", f"{checker}:{library}", "-n", str(RANKS), str(imb)]
    words += ["-npmin", str(RANKS), "-iter", "5", "-msglog", "0:14", *BENCHMARKS]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    ran = ProgramResult(done.returncode, done.stdout, done.stderr, json.loads(report.read_text(encoding="utf-8")))
    assert_complete(ran)
    assert {benchmark.lower() for benchmark in BENCHMARKS} <= set(ran.served()), (
        "the checker compared the MPI with itself"
    )
    verdicts = re.findall(r"^checker: (\d+) compared, (\d+) wrong$", done.stderr, re.MULTILINE)
    assert len(verdicts) == RANKS, done.stderr
    assert all(int(compared) > 4 * len(SIZES) * len(BENCHMARKS) and wrong == "0" for compared, wrong in verdicts)
