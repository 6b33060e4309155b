"""Real runs: local ranks, and a lab where one can be built. They check what happens, not how fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.bench.runner import measure
from palmette.bench.settings import COLLECTIVES, NONBLOCKING, PASS_THROUGH_ROUNDS, Settings
from palmette.measure.errors import BenchError
from palmette.measure.places import LocalPlace, program
from palmette.mpi import install as mpi_install
from palmette.mpi.abi import abi_of_launcher, preload_library
from palmette.mpi.install import Installation
from palmette.run import RunError
from palmette_lab.lab import Lab
from palmette_lab.place import LabPlace

pytestmark = pytest.mark.mpi

CORRUPTER = """
#include <mpi.h>
int MPI_Gather(const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u, int root, MPI_Comm c) {
    int error = PMPI_Gather(s, n, t, r, m, u, root, c), rank;
    PMPI_Comm_rank(c, &rank);
    if (rank == root) ((unsigned char *)r)[70] ^= 1;
    return error;
}
"""


@pytest.fixture
def mpich() -> Installation:
    """MPICH with the benchmark program built for it."""
    try:
        found = mpi_install.find("mpich")
        program("mpich")
    except (mpi_install.MpiNotFoundError, BenchError) as error:
        pytest.skip(str(error))
    return found


@pytest.fixture
def _preload(mpich: Installation) -> None:
    try:
        preload_library(abi_of_launcher(mpich.launcher) or "mpich")
    except RunError as error:
        pytest.skip(str(error))


@pytest.fixture
def lab(make_lab: Callable[[str, str], Lab]) -> Lab:
    """A small fast lab of its own."""
    return make_lab("2leaf@400Mbit/s:2node@400Mbit/s:1core", "bench-test")


LENGTHS = {
    **dict.fromkeys(("gatherv", "scatterv", "allgatherv", "reduce_scatter"), "UNEVEN"),
    **dict.fromkeys(("alltoallv", "alltoallw"), "PAIRWISE"),
}
"""Which collectives have blocks of unequal lengths, by rank or by sender and receiver."""


def quick(**changes: Any) -> Settings:
    values: dict[str, Any] = {
        "collectives": ("gather",), "sizes": (64,), "placements": ("block",), "seconds": 0.05, "min_pairs": 3,
        "max_pairs": 12,
    }  # fmt: skip
    return Settings(**{**values, **changes})


def local(mpi: Installation, ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **mpi.environment()}
    words = [str(mpi.mpiexec), "-n", str(ranks), str(program("mpich")), *arguments]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_program_knows_the_collectives_that_settings_know(mpich: Installation) -> None:
    assert tuple(local(mpich, 1, "--list").stdout.split()) == COLLECTIVES


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("clock", ["shared", "barrier"])
def test_every_collective_gives_right_results_under_the_mpi_itself(mpich: Installation, ranks: int, clock: str) -> None:
    settings = quick(
        collectives=COLLECTIVES, sizes=(4, 1000), warmup=1, preload=False, max_pairs=3, root=ranks - 1, clock=clock
    )
    arguments = settings.program_arguments("/dev/stdout", spin=False, floor=False)
    done = local(mpich, ranks, *arguments)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["job", *["cell"] * settings.cells_per_job, "end"]
    for cell in events[1:-1]:
        assert cell["wrong_ranks"] == {"alone": 0, "palmette": 0}
        assert 1 <= len(cell["alone_s"]) == len(cell["palmette_s"]) <= 3
        assert all(time > 0 for time in cell["alone_s"] + cell["palmette_s"])
        assert (cell["size_bytes"] == 0) == (cell["collective"] in ("barrier", "ibarrier"))
        assert ("overlap" in cell) == (cell["collective"] in NONBLOCKING)
        lengths = {"UNEVEN": ranks, "PAIRWISE": ranks**2}.get(LENGTHS.get(cell["collective"], ""))
        assert len(cell.get("block_bytes", [])) == (lengths or 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sizes", "64,x"), "'x': a size is a whole number"),
        (("--collectives", "gather,gether"), "'gether': unknown collective"),
        (("--collectives", "reduce", "--sizes", "6"), "multiples of 4"),
        (("--collectives", "exscan", "--sizes", "6"), "multiples of 4"),
        (("--root", "2"), "no such rank"),
        (("--sizes",), "unknown option, or one without its value"),
        (("more",), "'more': an argument that belongs to no option"),
    ],
)
def test_the_program_refuses_bad_arguments_in_one_line(
    mpich: Installation, arguments: tuple[str, ...], message: str
) -> None:
    done = local(mpich, 2, *arguments)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("collbench:") and message in line]


def test_local_ranks_are_measured_and_all_samples_are_kept(mpich: Installation, tmp_path: Path) -> None:
    run = measure(quick(preload=False, repeat=2), LocalPlace(2, tmp_path))
    assert [job.error for job in run.jobs] == [None, None]
    cell = run.jobs[0].cells[0]
    assert 3 <= len(cell.alone_s) == len(cell.palmette_late_s) <= 12
    assert run.topology is None
    assert cell.bound is None


def test_a_barrier_that_does_not_wait_is_caught(mpich: Installation, tmp_path: Path) -> None:
    source, library = tmp_path / "hasty.c", tmp_path / "hasty.so"
    source.write_text("#include <mpi.h>\nint MPI_Barrier(MPI_Comm c) { (void)c; return MPI_SUCCESS; }\n")
    compiler = ["gcc", "-shared", "-fPIC", f"-I{mpich.prefix}/include", str(source), "-o", str(library)]
    subprocess.run(compiler, check=True, timeout=60)
    settings = quick(collectives=("barrier",), preload=False, env={"LD_PRELOAD": str(library)})
    (job,) = measure(settings, LocalPlace(2, tmp_path)).jobs
    assert job.cells[0].wrong_alone == 0
    assert job.cells[0].wrong_palmette > 0
    assert "rank 0 left before rank 1 entered" in (job.error or "")


def test_a_preload_that_changes_a_result_is_caught(mpich: Installation, tmp_path: Path) -> None:
    source, library = tmp_path / "corrupter.c", tmp_path / "corrupter.so"
    source.write_text(CORRUPTER)
    compiler = ["gcc", "-shared", "-fPIC", f"-I{mpich.prefix}/include", str(source), "-o", str(library)]
    subprocess.run(compiler, check=True, timeout=60)
    run = measure(quick(preload=False, env={"LD_PRELOAD": str(library)}), LocalPlace(2, tmp_path))
    assert run.jobs[0].cells[0].wrong_alone == 0
    assert run.jobs[0].cells[0].wrong_palmette > 0
    assert "wrong results in gather 64" in (run.jobs[0].error or "")
    assert "byte 70 of 128 received" in (run.jobs[0].error or "")


def test_a_job_beyond_its_time_is_ended_and_told(mpich: Installation, tmp_path: Path) -> None:
    run = measure(quick(preload=False, seconds=60, max_pairs=100_000, timeout_s=2), LocalPlace(2, tmp_path))
    assert run.jobs[0].error == "ended at its time limit of 2 s after 0 cells"


def test_local_ranks_have_no_floor(mpich: Installation, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="--floor needs a lab"):
        measure(quick(preload=False, floor=True), LocalPlace(2, tmp_path))


@pytest.mark.usefixtures("_preload")
def test_the_preload_is_on_all_ranks_and_reports(mpich: Installation, tmp_path: Path) -> None:
    run = measure(quick(sizes=(64, 4096)), LocalPlace(2, tmp_path))
    (job,) = run.jobs
    assert job.error is None
    assert job.palmette_ranks == 2
    assert job.report is not None
    counted = sum(entry["calls"] for kind in ("calls", "fallbacks") for entry in job.report[kind])
    assert counted >= sum(len(cell.palmette_s) for cell in job.cells)


@pytest.mark.usefixtures("_preload")
def test_the_cost_of_calls_that_are_passed_through_is_measured(mpich: Installation, tmp_path: Path) -> None:
    run = measure(quick(pass_through=True, collectives=()), LocalPlace(2, tmp_path))
    (job,) = run.jobs
    assert (job.error, job.kind, job.cells) == (None, "pass_through", [])
    assert [one.function for one in job.passes] == ["barrier", "barrier", "bcast", "allreduce"]
    assert [one.where.split(",")[0] for one in job.passes] == ["MPI_COMM_SELF", *["MPI_COMM_WORLD"] * 3]
    assert all(len(one.alone_ns) == len(one.palmette_ns) == PASS_THROUGH_ROUNDS for one in job.passes)
    # What is measured is what is passed through: the table of this job leaves everything to the MPI.
    assert job.report is not None
    assert job.report["calls"] == []


@pytest.mark.usefixtures("_preload")
def test_a_call_that_is_not_passed_through_fails_that_job(mpich: Installation, tmp_path: Path) -> None:
    settings = quick(pass_through=True, collectives=(), env={"PALMETTE_FORCE": "bcast=linear"})
    (job,) = measure(settings, LocalPlace(2, tmp_path)).jobs
    assert job.error is not None
    assert job.error.startswith("palmette served bcast, against the table")


@pytest.mark.parametrize("name", mpi_install.NAMES)
def test_ranks_with_a_core_each_are_bound_to_it(name: str, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only: nothing to bind two ranks to")
    try:
        mpi = mpi_install.find(name)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    place = LocalPlace(2, tmp_path)
    # A file each: what ranks print at the same time can get mixed up.
    told = tmp_path / "told"
    told.mkdir()
    show = f"import os; open(f'{told}/{{os.getpid()}}', 'w').write(' '.join(map(str, sorted(os.sched_getaffinity(0)))))"
    done = place.run(mpi, ["localhost"] * 2, [sys.executable, "-c", show], {}, 60)
    cores = [path.read_text(encoding="utf-8").split() for path in told.iterdir()]
    assert len(cores) == 2, done.stderr
    assert cores[0] != cores[1]
    assert all(len(of_one) == 1 for of_one in cores)


@pytest.mark.root
def test_a_lab_gives_bounds_floors_and_the_hosts_of_the_ranks(mpich: Installation, lab: Lab) -> None:
    run = measure(quick(sizes=(65536,), preload=False, floor=True, placements=("random:3",)), LabPlace(lab))
    assert [(job.kind, job.error) for job in run.jobs] == [("floor", None), ("measure", None)]
    job = run.jobs[1]
    assert sorted(set(job.hosts)) == lab.hosts
    cell = job.cells[0]
    assert cell.bound is not None
    # 400 Mbit/s bring three blocks of 64 KB to the root in 4.1 ms, and no measurement can be faster.
    assert cell.bound.seconds == pytest.approx(3 * 65536 / (50e6 * 1448 / 1514), rel=1e-3)
    assert min(cell.alone_s) > 0.9 * cell.bound.seconds


@pytest.mark.usefixtures("_preload")
def test_the_command_measures_stores_and_writes_the_page(
    mpich: Installation, palmette_lab: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("gather", "--sizes", "64", "--seconds", "0.05", "--max-iterations", "10", "-n", "2", "--mpi", "mpich")
    for _ in range(2):
        result = palmette_lab("bench", *arguments, "--page", "page.html")
        assert result.status == 0, result.err
    assert "MPICH" in result.out and "gather" in result.out
    assert max(map(len, result.out.splitlines())) <= 80
    assert "</html>" in (tmp_path / "page.html").read_text()
    compared = palmette_lab("bench", "report", "last~1", "last", "--json")
    assert json.loads(compared.out)["runs"] == [1, 2]
    report = palmette_lab("bench", "report", "1", "-o", "other.html")
    assert report.status == 0, report.err
    assert (tmp_path / "other.html").is_file()
