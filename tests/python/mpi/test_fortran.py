"""Fortran programs built with Debian's MPICH and Open MPI, through mpif.h, use mpi and use mpi_f08."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from palmette.record.reading import read_job
from palmette.record.sums import sums_of
from palmette.run import prepare

from .conftest import PRELOADS, ROOT
from .test_matrix import rows
from .test_nonblocking import TREES

pytestmark = pytest.mark.mpi

SOURCES = ROOT / "tests" / "mpi" / "fortran"
# What tests/mpi/fortran/collectives.inc calls on MPI_COMM_WORLD.
BLOCKING = {"bcast": 2, "gather": 1, "allgather": 1, "scatter": 1, "allgatherv": 1, "allreduce": 3, "reduce": 2}
BLOCKING |= {"alltoall": 1, "barrier": 2}
NONBLOCKING = {"bcast": 3, "allreduce": 2, "barrier": 2}


def environment(mpi: str) -> dict[str, str]:
    """Return this process's environment without other MPIs' libraries and settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PALMETTE_", "OMPI_", "I_MPI_", "MPIR_"))}
    kept.pop("LD_LIBRARY_PATH", None)
    if mpi == "openmpi":
        kept |= {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1",
        }
    return kept


def compiled(mpi: str, binding: str, folder: Path, *options: str) -> Path:
    """Compile one of the three programs with Debian's wrapper of the compiler; skips without it."""
    compiler = shutil.which(f"mpifort.{mpi}")
    if compiler is None or shutil.which("gfortran") is None:
        pytest.skip(
            f"no mpifort.{mpi} with gfortran: apt-get install gfortran libmpich-dev mpich libopenmpi-dev openmpi-bin"
        )
    program = folder / binding
    # Without interfaces (mpif.h) buffers of different types in two calls are an error of newer compilers.
    words = [
        compiler,
        "-w",
        "-fallow-argument-mismatch",
        "-ffree-line-length-none",
        *options,
        f"{SOURCES / binding}.F90",
    ]
    done = subprocess.run([*words, "-o", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def run(mpi: str, program: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run three ranks under palmette."""
    launcher = shutil.which(f"mpiexec.{mpi}")
    assert launcher is not None
    words = [launcher, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "3", str(program)]
    variables = environment(mpi)
    prepared = prepare(words, settings, variables, libraries=PRELOADS)
    assert prepared.evidence.abi == {"mpich": "mpich", "openmpi": "ompi"}[mpi]
    return subprocess.run(
        prepared.command,
        env={**variables, **prepared.environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("binding", ["mpif_h", "use_mpi", "use_mpi_f08"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_each_call_is_served_once(mpi: str, binding: str, tmp_path: Path) -> None:
    program = compiled(mpi, binding, tmp_path)
    report = tmp_path / "report.json"
    settings = {**TREES, "PALMETTE_REPORT": str(report), "PALMETTE_FAKE_HOSTS": "0,1,0", "PALMETTE_SERVE_AFTER": "0"}
    done = run(mpi, program, settings)
    assert done.returncode == 0, done.stdout + done.stderr
    closing = re.search(r"^(\d+) cases, (\d+) wrong$", done.stdout, re.MULTILINE)
    assert closing is not None, done.stdout + done.stderr
    assert int(closing[1]) > 60 and int(closing[2]) == 0, done.stdout
    served: dict[bool, dict[str, int]] = {True: {}, False: {}}
    found = json.loads(report.read_text(encoding="utf-8"))
    for row in found["calls"]:
        counts = served[row["blocking"]]
        counts[row["function"]] = counts.get(row["function"], 0) + row["calls"]
    assert served == {True: {**BLOCKING, "reduce": 2}, False: NONBLOCKING}
    # Once each, by the program's arguments: the second grid asked for no reordering.
    reordered = {row["function"]: row["calls"] for row in found["topologies"] if row["reordered"]}
    assert reordered == {"cart_create": 1, "graph_create": 1, "dist_graph_create_adjacent": 1}, found["topologies"]
    assert sum(row["calls"] for row in found["topologies"]) == 5


@pytest.mark.parametrize("binding", ["mpif_h", "use_mpi", "use_mpi_f08"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_each_message_is_counted_once(mpi: str, binding: str, tmp_path: Path) -> None:
    program = compiled(mpi, binding, tmp_path, "-DMESSAGES")
    folder = tmp_path / "recording"
    done = run(mpi, program, {"PALMETTE_PROFILE": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr
    # To the next: 40 + 80 + 3 x 120 bytes and, on the ring of the grid, 4 and 12; 4 and 8 to the one before.
    assert rows(folder, "sent") == {
        (rank, peer): (496, 7) if peer == (rank + 1) % 3 else (12, 2)
        for rank in range(3) for peer in range(3) if peer != rank
    }  # fmt: skip
    # 1, 2, 3 or 4, 5, 6 and 7 integers.
    assert rows(folder, "exchanged") == {(0, 1): (96, 6), (1, 0): (100, 6)}
    # The recorder's account is the same; alltoall's and alltoallw's blocks of ranks 0 and 1, to themselves as well.
    for process in read_job(folder).processes:
        found = {row.function: 0 for row in process.recorded.aggregates}
        for row in process.recorded.aggregates:
            found[row.function] += 0 if row.is_request else row.bytes
        pair = process.recorded.rank < 2
        assert {name: size for name, size in found.items() if size} == {
            "MPI_Sendrecv": 40, "MPI_Irecv": 80, "MPI_Isend": 80, "MPI_Startall": 240, "MPI_Start": 120,
            "MPI_Neighbor_alltoall": 8, "MPI_Neighbor_alltoallw": 20,
            **({"MPI_Alltoall": 24, "MPI_Alltoallv": 32 + 4 * process.recorded.rank, "MPI_Ialltoallw": 24,
                "MPI_Alltoallw": 28} if pair else {}),
        }  # fmt: skip


@pytest.mark.parametrize("binding", ["mpif_h", "use_mpi", "use_mpi_f08"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_each_call_is_recorded_once(mpi: str, binding: str, tmp_path: Path) -> None:
    program = compiled(mpi, binding, tmp_path, "-g")
    folder = tmp_path / "recording"
    folder.mkdir()
    done = run(mpi, program, {"PALMETTE_PROFILE": str(folder), "PALMETTE_SERVE_AFTER": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    job = read_job(folder)
    assert [process.recorded.rank for process in job.processes] == [0, 1, 2]
    for process in job.processes:
        calls: dict[str, int] = {}
        requests: dict[str, int] = {}
        for row in process.recorded.aggregates:
            to = requests if row.is_request else calls
            to[row.function] = to.get(row.function, 0) + row.calls
        assert not process.recorded.outstanding
        for function, number in BLOCKING.items():
            assert calls[f"MPI_{function.capitalize()}"] == number, (function, calls)
        for function, number in NONBLOCKING.items():
            assert calls[f"MPI_I{function}"] == number, (function, calls)
            assert requests[f"MPI_I{function}"] == number, (function, requests)
    places = {str(row.place) for row in sums_of(job).rows}
    # Where the calls are written, a file that the program's source includes.
    lines = (ROOT / "tests/mpi/fortran/collectives.inc").read_text(encoding="utf-8").splitlines()
    told = [int(place.partition(":")[2]) for place in places if place.startswith("collectives.inc:")]
    assert len(told) > 10
    # Where a call takes several lines, any of them may be told.
    assert all("MPI_" in "".join(lines[max(0, line - 4) : line]) for line in told), [lines[line - 1] for line in told]
