"""Bytes of links that a recording tells, against what the interfaces of emulated hosts have counted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette.mpi.abi import LIBRARIES
from palmette.record import links as link_loads
from palmette.record.findings import Detail, findings_of
from palmette.record.machine import seats_of
from palmette.record.reading import read_job
from palmette.settings import force
from palmette_lab.lab import Lab

pytestmark = [pytest.mark.root, pytest.mark.mpi]

SPEC = "2leaf@200Mbit/s:2node@100Mbit/s:2core"
PROGRAM = """\
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, n = 20000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *a = calloc(size, n), *b = calloc(size, n);
    for (int i = 0; i < 10; ++i) {
        MPI_Allgather(a, n, MPI_CHAR, b, n, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Alltoall(a, n, MPI_CHAR, b, n, MPI_CHAR, MPI_COMM_WORLD);
        MPI_Bcast(a, size * n, MPI_CHAR, 3, MPI_COMM_WORLD);
        MPI_Allreduce(a, b, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Sendrecv(a, n, MPI_CHAR, (rank + 3) % size, 1, b, n, MPI_CHAR, (rank + size - 3) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
"""
FRAME, SEGMENT, ACKNOWLEDGEMENT = 1514, 1448, 66
"""Bytes of a full Ethernet frame, of the payload in it, and of a frame without payload."""


def on_wire(payload: float, other_way: float) -> float:
    """Return the bytes of frames: payload with headers, and an acknowledgement for each two frames of the other way."""
    return payload * FRAME / SEGMENT + other_way / SEGMENT / 2 * ACKNOWLEDGEMENT


def loads(lab: Lab, mpi: str, tmp_path: Path, **settings: str) -> tuple[link_loads.Links, dict[str, tuple[int, int]]]:
    """Run the program; return what its recording says of the links, and what the interfaces have counted."""
    try:
        found = mpi_install.find(mpi)
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    program, folder = tmp_path / "program", tmp_path / "calls"
    folder.mkdir()
    (tmp_path / "program.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([found.prefix / "bin" / "mpicc", "-O1", tmp_path / "program.c", "-o", program], check=True)
    abi = {"mpich": "mpich", "openmpi": "ompi"}[mpi]
    env = {
        "LD_PRELOAD": f"{LIBRARIES / f'libpalmette_record_{abi}.so'}:{LIBRARIES / f'libpalmette_{abi}.so'}",
        "PALMETTE_TRACE": str(folder),
        "PALMETTE_TOPOLOGY": str(lab.topology_path),
        "PALMETTE_SERVE_AFTER": "0",
        "PALMETTE_COMPARE": "0",
        **settings,
    }
    before = lab.link_bytes()
    done = lab.run([str(program)], mpi=mpi, env=env, capture=True, timeout_s=100)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = {name: (out - before[name][0], into - before[name][1]) for name, (out, into) in lab.link_bytes().items()}
    job = read_job(folder)
    seats, missing = seats_of(job, lab.topology_path)
    assert seats is not None and not missing
    return link_loads.of_trace(findings_of(job, seats, Detail(link_bins=16)).view, seats), counted


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_bytes_of_links_are_what_interfaces_count(
    make_lab: Callable[[str, str], Lab], mpi: str, tmp_path: Path
) -> None:
    links, counted = loads(make_lab(SPEC, "links"), mpi, tmp_path)
    assert links.at_least == 0 and links.uncounted == 0
    assert {link.group.name for link in links.links} == set(counted)
    for link in links.links:
        out, into = float(link.out.sum()), float(link.into.sum())
        assert counted[link.group.name][0] == pytest.approx(on_wire(out, into), rel=0.05), link.group.name
        assert counted[link.group.name][1] == pytest.approx(on_wire(into, out), rel=0.05), link.group.name


def test_what_the_mpi_sends_is_at_least_the_bound(make_lab: Callable[[str, str], Lab], tmp_path: Path) -> None:
    own = force(**dict.fromkeys(("allgather", "alltoall", "bcast", "allreduce"), "mpi"))
    links, counted = loads(make_lab(SPEC, "bounds"), "mpich", tmp_path, **own)
    assert links.at_least > 0.5
    for link in links.links:
        out, into = float(link.out.sum()), float(link.into.sum())
        # Of an all-gather, an all-to-all and a broadcast alone a link carries megabytes.
        assert 1e6 < out <= counted[link.group.name][0]
        assert 1e6 < into <= counted[link.group.name][1]
