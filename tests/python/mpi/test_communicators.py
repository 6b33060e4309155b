"""Communicators that follow the machine: by level, in an order, from C, C++, Python and Fortran, under each MPI."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from palmette import _core

from .conftest import PRELOADS, ROOT, Cluster, Mpi
from .test_fortran import compiled, environment

pytestmark = pytest.mark.mpi

PROGRAM = Path(__file__).with_name("programs") / "communicators.py"
LEVELS = ("leaf", "switch", "node", "host", "socket", "core")
"""Levels of the cluster, and other names of two."""
ORDERS = {
    "greedy": "ring",
    "recursive_doubling": "recursive_doubling",
    "binomial_gather": "gather",
    "binomial_bcast": "bcast",
}
"""Orders that the core has by another name."""


def job_of(settings: dict[str, str]) -> _core.Job:
    """Return where a run has its ranks."""
    machine = _core.Machine.from_file(settings["PALMETTE_TOPOLOGY"])
    return _core.Job(machine, f"hosts={settings['PALMETTE_FAKE_HOSTS']}")


def groups_of(job: _core.Job, host_of: list[str], leaf_of: dict[str, int], level: str) -> list[int]:
    """Return the group of each rank by its host's name alone, groups numbered in topology order.

    Ranks aren't bound: the levels inside of a host hold all of its ranks.
    """
    keys = [str(leaf_of[host]) if level in ("leaf", "switch") else host for host in host_of]
    numbers: dict[str, int] = {}
    for rank in sorted(range(job.size), key=job.position_of):
        numbers.setdefault(keys[rank], len(numbers))
    return [numbers[key] for key in keys]


def printed(out: str, name: str) -> list[int]:
    line = next(line for line in out.splitlines() if line.startswith(f"{name}:"))
    return [int(word) for word in line.partition(":")[2].split()]


@pytest.mark.parametrize("ranks", [1, 5, 8])
def test_they_hold_the_ranks_of_a_level_and_the_order_that_was_asked_for(
    mpi: Mpi, cluster: Cluster, ranks: int
) -> None:
    settings = cluster.settings(ranks)
    job = job_of(settings)
    host_of = settings["PALMETTE_FAKE_HOSTS"].split(",")[:ranks]
    leaf_of = {host: 0 if number < 3 else 1 for number, host in enumerate(cluster.hosts)}
    # Ranks aren't bound: what is inside of a host is unknown, and each is alone there.
    levels = [
        f"{level}={','.join(map(str, groups_of(job, host_of, leaf_of, level)))}"
        for level in LEVELS
        if level != "socket"
    ]
    ran = mpi.run(ranks, "machine_communicators", *levels, settings=settings)
    ran.assert_right()
    places = [rank * 7 % ranks for rank in range(ranks)]
    matrix = [abs(a - b) + 0.01 * i * j for i, a in enumerate(places) for j, b in enumerate(places)]
    for name, heuristic in ORDERS.items():
        assert printed(ran.out, f"order {name}") == list(_core.order_on_job(heuristic, job)), name
        assert printed(ran.out, f"matrix {name}") == list(_core.order_by_distance(heuristic, ranks, matrix)), name
    ring = printed(ran.out, "order ring")
    start = job.position_of(0)
    assert ring == [job.rank_at((start + i) % ranks) for i in range(ranks)]
    assert printed(ran.out, "matrix ring") == list(_core.bottleneck_ring(ranks, matrix).order)


def test_a_level_that_holds_all_ranks_is_known(mpi: Mpi, cluster: Cluster) -> None:
    # On one host: leaf and node have one group, of which the job keeps only that of nodes.
    settings = {**cluster.settings(3), "PALMETTE_FAKE_HOSTS": cluster.hosts[0]}
    ran = mpi.run(3, "machine_communicators", "leaf=0,0,0", "switch=0,0,0", "node=0,0,0", settings=settings)
    ran.assert_right()


@pytest.mark.parametrize("ranks", [3])
def test_python_has_them_as_mpi4pys_communicators(mpi: Mpi, ranks: int) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed: pip install mpi4py")
    if mpi.abi == "abi":
        pytest.skip("mpi4py's wheels are for the ABIs of MPICH and Open MPI")
    environment = f"PYTHONPATH={ROOT / 'python'}"
    ran = mpi.run(ranks, Path("/usr/bin/env"), environment, sys.executable, PROGRAM, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_fortran_has_them(mpi: str, tmp_path: Path) -> None:
    library = PRELOADS / f"libpalmette_{'mpich' if mpi == 'mpich' else 'ompi'}.so"
    linking = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{PRELOADS}", "-Wl,--allow-shlib-undefined"]
    module = ROOT / "src" / "palmette" / "interpose" / "palmette.f90"
    program = compiled(mpi, "communicators", tmp_path, f"-J{tmp_path}", *linking, str(module))
    launcher = shutil.which(f"mpiexec.{mpi}")
    assert launcher is not None
    words = [launcher, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", "3", str(program)]
    variables = {**environment(mpi), "PALMETTE_FAKE_HOSTS": "0,1,0"}
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["right"]), done.stdout + done.stderr
