"""palmette under every job, by Slurm's TaskProlog (packaging/slurm)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from palmette.mpi.abi import ABIS, LIBRARIES, PROGRAMS
from palmette.mpi.install import MpiNotFoundError, find
from slurm.cluster import in_slurm, require_slurm

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what jobs of a cluster wrote whose slurm.conf names the prolog."""
    require_slurm()
    try:
        mpich = find("mpich")
    except MpiNotFoundError as error:
        pytest.skip(str(error))
    program = PROGRAMS / "heat.mpich"
    folder = tmp_path_factory.mktemp("prolog")
    (folder / "prefix" / "lib").mkdir(parents=True)
    for abi in ABIS:
        (folder / "prefix" / "lib" / f"libpalmette_{abi}.so").symlink_to(LIBRARIES / f"libpalmette_{abi}.so")
    (folder / "prefix" / "etc" / "palmette").mkdir(parents=True)
    (folder / "prefix" / "etc" / "palmette" / "settings").write_text(f"PALMETTE_JOBLOG={folder}/jobs.jsonl\n")
    text = (ROOT / "packaging" / "slurm" / "task_prolog.sh").read_text()
    assert "\nprefix=/opt/palmette/0.1.0\n" in text
    prolog = folder / "task_prolog.sh"
    prolog.write_text(text.replace("prefix=/opt/palmette/0.1.0", f"prefix={folder}/prefix"))
    prolog.chmod(0o755)
    told = "sh -c 'echo $LD_PRELOAD'"
    paths = f"export LD_LIBRARY_PATH={mpich.library_dir}\n"
    ran = in_slurm(
        folder,
        {"leaf0": ["h0", "h1"]},
        2,
        f"srun -n 1 {told} > with.txt\n"
        f"PALMETTE_ENABLE=0 srun -n 1 {told} > without.txt\n"
        f"LD_PRELOAD=/x/libpalmette_mpich.so srun -n 1 {told} > again.txt 2> /dev/null\n"
        "sbatch --wait -n 1 -o batch.txt --wrap 'echo $LD_PRELOAD' > sbatch.log\n"
        f"{paths}srun -n 2 --mpi=pmi2 {program} > job.txt 2>&1\n",
        f"TaskProlog={prolog}\n",
    )
    assert ran.returncode == 0, ran.stderr + (folder / "job.txt").read_text()
    return folder


def test_every_task_gets_the_libraries(jobs: Path) -> None:
    expected = ":".join(f"{jobs}/prefix/lib/libpalmette_{abi}.so" for abi in ABIS)
    assert (jobs / "with.txt").read_text().strip() == expected
    assert (jobs / "batch.txt").read_text().strip() == expected


def test_a_user_opts_out_and_what_is_there_is_left_alone(jobs: Path) -> None:
    assert (jobs / "without.txt").read_text().strip() == ""
    assert (jobs / "again.txt").read_text().strip() == "/x/libpalmette_mpich.so"


def test_an_mpi_job_under_srun_leaves_a_line_with_its_number(jobs: Path) -> None:
    (line,) = [json.loads(text) for text in (jobs / "jobs.jsonl").read_text().splitlines()]
    assert line["job"].isdigit()
    assert line["ranks"] == 2
    assert line["program"] == "heat.mpich"
    assert line["calls_served"] + line["calls_left"] > 0
