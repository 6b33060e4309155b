"""Recordings of several nodes: files that only their node sees, and clocks that differ."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette.mpi.abi import LIBRARIES, PROGRAMS
from palmette.record.reading import Job, read_job
from palmette_lab.lab import Lab

pytestmark = [pytest.mark.root, pytest.mark.mpi]

SPEC = "2leaf@200Mbit/s:2node@100Mbit/s:2core"
SHIFTS_NS = (0, 5_000_000_000, -300_000_000, 70_000)
"""Offsets of the four hosts' clocks from the first one's."""
PROGRAM = """\
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; ++i) {
        if (rank == i) usleep(20000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (argc > 1 && rank == 3) _exit(0);
    if (argc > 1) for (;;) pause();
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def lab(make_lab: Callable[[str, str], Lab]) -> Lab:
    return make_lab(SPEC, "record")


def recorded(lab: Lab, mpi: str, tmp_path: Path, *arguments: str) -> Job:
    """Run the program on eight ranks of four hosts, and fetch what each host has recorded for itself."""
    try:
        found = mpi_install.find(mpi)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([found.prefix / "bin" / "mpicc", "-O1", tmp_path / "program.c", "-o", program], check=True)
    # Each host has a folder of its own under the same path, as where nodes share no file system.
    private, fetched = tmp_path / "private", tmp_path / "fetched"
    private.mkdir()
    start = tmp_path / "start.sh"
    start.write_text(
        f"#!/bin/sh\nmkdir -p {fetched}/$(hostname) && mount --bind {fetched}/$(hostname) {private} && "
        f'exec {program} "$@"\n',
        encoding="utf-8",
    )
    start.chmod(0o755)
    abi = {"mpich": "mpich", "openmpi": "ompi"}[mpi]
    env = {
        "LD_PRELOAD": f"{LIBRARIES / f'libpalmette_record_{abi}.so'}:{LIBRARIES / f'libpalmette_{abi}.so'}",
        "PALMETTE_TRACE": str(private / "a" / "recording"),
        "PALMETTE_FAKE_CLOCKS": ",".join(str(SHIFTS_NS[rank // 2]) for rank in range(8)),
        "PALMETTE_TOPOLOGY": str(lab.topology_path),
    }
    done = lab.run([str(start), *arguments], mpi=mpi, env=env, capture=True, timeout_s=15 if arguments else 60)
    if not arguments:
        assert done.returncode == 0, done.stdout + done.stderr
    assert not list(private.iterdir())
    here = tmp_path / "recording"
    here.mkdir()
    for host in lab.hosts:
        (file,) = (fetched / host / "a" / "recording").glob("*.palmette")
        file.rename(here / file.name)
    return read_job(here)


def ends_of_barriers(job: Job) -> list[list[tuple[int, int]]]:
    """Return of each barrier the time at which each rank begins and ends it, by the first node's clock."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(5)]
    for process in job.processes:
        for call in process.calls():
            if call.function == "MPI_Barrier":
                offset, _ = process.clock_at(call.begin_real_ns)
                begin = call.begin_real_ns + offset
                found[call.instance - 1].append((begin, begin + round(call.seconds * 1e9)))
    return found


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_clocks_of_nodes_are_compared(lab: Lab, mpi: str, tmp_path: Path) -> None:
    job = recorded(lab, mpi, tmp_path)
    assert len(job.processes) == 8
    assert len({process.host for process in job.processes}) == 4
    assert job.missing_ranks() == []
    for process in job.processes:
        assert len(process.synced) == 2
        for point in process.synced:
            # All hosts are one machine, so the truth is known.
            wrong = point.offset_ns + SHIFTS_NS[process.recorded.rank // 2]
            assert abs(wrong) <= point.error_ns
    # Nobody leaves a barrier before all have come, by the common clock as well.
    error = max(process.clock_at(process.recorded.last_real_ns)[1] or 0 for process in job.processes)
    for barrier in ends_of_barriers(job):
        assert len(barrier) == 8
        assert min(end for _, end in barrier) >= max(begin for begin, _ in barrier) - 2 * error


def test_without_an_end_the_error_grows(lab: Lab, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    job = recorded(lab, "mpich", tmp_path, "never-ends")
    for process in job.processes:
        (point,) = process.synced
        later = point.real_ns + 10_000_000_000
        offset, error = process.clock_at(later)
        assert offset == point.offset_ns
        grown = 0 if process.recorded.rank < 2 else 500_000
        assert error == point.error_ns + grown


@pytest.mark.parametrize("inside", [False, True])
def test_a_job_on_a_lab_is_recorded_whoever_starts_palmette(lab: Lab, tmp_path: Path, inside: bool) -> None:
    """`palmette run --trace t palmette-lab run --palmette`, and `palmette-lab run -- palmette run --trace t` in each
    rank: no rank refuses what a faster one has begun."""
    folder = tmp_path / "t"
    palmette = [sys.executable, "-m", "palmette.cli.main"]
    record = [*palmette, "run", "--trace", str(folder)]
    on_lab = [sys.executable, "-m", "palmette_lab.cli.main", "run", "--lab", lab.state.name, "--mpi", "mpich"]
    heat = [str(PROGRAMS / "heat.mpich"), "3"]
    words = [*on_lab, "--", *record, *heat] if inside else [*record, *on_lab, "--palmette", "--", *heat]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    job = read_job(folder)
    assert [process.recorded.rank for process in job.processes] == list(range(8))
    assert "isn't preloaded" not in done.stderr
    # Of its own topology a lab run with palmette leaves a copy: a report knows the links.
    assert inside or "leaf0" in (folder / "topology.json").read_text(encoding="utf-8")
