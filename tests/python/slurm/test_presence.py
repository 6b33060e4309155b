"""Which ranks run with palmette's library is known before it sends anything, also where two nodes are one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.mpi.abi import LIBRARIES, PROGRAMS
from palmette.mpi.install import MpiNotFoundError, find
from slurm.cluster import in_slurm, require_slurm

pytestmark = pytest.mark.root


def test_two_nodes_of_a_machine_see_their_own_ranks(tmp_path: Path) -> None:
    require_slurm()
    try:
        mpich = find("mpich")
    except MpiNotFoundError as error:
        pytest.skip(str(error))
    preload = LIBRARIES / "libpalmette_mpich.so"
    # Rank by rank they'd wait for each other in MPI_Init.
    job = f"timeout 30 srun -N 2 --ntasks-per-node 1 --mpi=pmi2 --export=ALL,LD_PRELOAD={preload},PALMETTE_REPORT=1"
    script = f"export LD_LIBRARY_PATH={mpich.library_dir}\n{job} {PROGRAMS / 'heat.mpich'} 40 > job.txt 2>&1\n"
    ran = in_slurm(tmp_path, {"leaf0": ["h0", "h1"]}, 2, script)
    told = (tmp_path / "job.txt").read_text()
    assert ran.returncode == 0, told
    assert "without palmette's library" not in told
    assert "allreduce" in told, "the report says what was served"
