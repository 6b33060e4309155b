"""Counters of adapters in a recording: those of emulated hosts' interfaces, and another job's traffic in them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette.mpi.abi import LIBRARIES
from palmette.record.adapters import Adapter, Host, adapters_of, hosts_of, notes
from palmette.record.reading import read_job
from palmette_lab.lab import Lab

pytestmark = [pytest.mark.root, pytest.mark.mpi]

SPEC = "2leaf@200Mbit/s:2node@100Mbit/s:1core"
PROGRAM = """\
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, n = 1000000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *a = calloc(1, n), *b = calloc(1, n);
    for (int i = 0; i < atoi(argv[1]); ++i)
        MPI_Sendrecv(a, n, MPI_CHAR, (rank + 1) % size, 1, b, n, MPI_CHAR, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""
MESSAGES, BYTES = 25, 1_000_000


class RingJob:
    """A job of one rank a host, whose every rank sends to the next one."""

    def __init__(self, lab: Lab, folder: Path, *, beside_another: bool) -> None:
        try:
            found = mpi_install.find("mpich")
        except mpi_install.MpiNotFoundError as error:
            pytest.skip(str(error))
        program, recording = folder / "program", folder / "calls"
        recording.mkdir()
        (folder / "program.c").write_text(PROGRAM, encoding="utf-8")
        subprocess.run([found.prefix / "bin" / "mpicc", "-O1", folder / "program.c", "-o", program], check=True)
        env = {
            "LD_PRELOAD": f"{LIBRARIES / 'libpalmette_record_mpich.so'}:{LIBRARIES / 'libpalmette_mpich.so'}",
            "PALMETTE_PROFILE": str(recording),
        }
        other = threading.Thread(
            target=lambda: lab.run([str(program), "40"], mpi="mpich", capture=True, timeout_s=100)
        )  # fmt: skip
        if beside_another:
            other.start()
        before = lab.link_bytes()
        done = lab.run([str(program), str(MESSAGES)], mpi="mpich", env=env, capture=True, timeout_s=100)
        after = lab.link_bytes()
        if beside_another:
            other.join()
        assert done.returncode == 0, done.stdout + done.stderr
        self.counted = {name: (out - before[name][0], into - before[name][1]) for name, (out, into) in after.items()}
        job = read_job(recording)
        self.adapters: dict[str, Adapter] = {one.host: one for one in adapters_of(job)}
        self.hosts: list[Host] = hosts_of(job, adapters_of(job))
        self.notes = notes(job)


def test_they_are_what_interfaces_count(make_lab: Callable[[str, str], Lab], tmp_path: Path) -> None:
    lab = make_lab(SPEC, "counters")
    found = RingJob(lab, tmp_path, beside_another=False)
    assert set(found.adapters) == set(lab.hosts)
    for host, one in found.adapters.items():
        assert one.sent_bytes == pytest.approx(found.counted[host][0], rel=0.01), host
        assert one.received_bytes == pytest.approx(found.counted[host][1], rel=0.01), host
        assert 1.5e6 < one.most_bytes_per_s < 13e6, "of 12.5 million"
    for told in found.hosts:
        assert told.own_sent_bytes == told.own_received_bytes == MESSAGES * BYTES
        assert told.sent_bytes == pytest.approx(told.own_sent_bytes, rel=0.05)
        assert told.received_bytes == pytest.approx(told.own_received_bytes, rel=0.05)
    assert found.notes == []


def test_another_jobs_traffic_is_told(make_lab: Callable[[str, str], Lab], tmp_path: Path) -> None:
    found = RingJob(make_lab(SPEC, "others"), tmp_path, beside_another=True)
    for told in found.hosts:
        assert told.others_sent_bytes > 0.3 * MESSAGES * BYTES
    (note,) = found.notes
    assert "adapters carried more than this job's messages and plans account for" in note
    assert note.endswith("others' traffic")
