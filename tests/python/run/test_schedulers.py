"""`palmette run` and `palmette doctor` under Flux, ALPS, PALS, PBS and LSF, by stand-ins of their interfaces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.doctor import examine
from palmette.mpi.allocation import allocation
from palmette.mpi.errors import RunError
from palmette.mpi.launch import Job, LauncherKind, LaunchError, identify, launcher
from palmette.run import prepare
from palmette.run.command_line import read_command_line

STAND_IN = Path(__file__).with_name("stand_in.py")
NAMES: dict[LauncherKind, str] = {"flux": "flux", "aprun": "aprun", "pals": "mpiexec"}
Made = Callable[[LauncherKind], Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Make a launcher of a kind; return its path."""

    def make(kind: LauncherKind) -> Path:
        path = tmp_path / kind / NAMES[kind]
        path.parent.mkdir()
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" {kind} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


def ranks(command: tuple[str, ...] | list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """Run a line; return what each rank says."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


LINES: list[tuple[LauncherKind, str, int]] = [
    ("flux", "run -n4 ./app --fast", 4),
    ("flux", "run -N 2 -n 4 -l -o cpu-affinity=off --env=OMP_NUM_THREADS=2 ./app", 4),
    ("flux", "run --ntasks=3 --env=-* --env=HOME ./app", 3),
    ("aprun", "-n4 -N2 ./app --fast", 4),
    ("aprun", "-n 4 -N 2 -cc depth -d 8 -q -e OMP_NUM_THREADS=8 ./app", 4),
    ("aprun", "-n 2 ./app : -n 1 ./app io", 3),
    ("pals", "-n 4 --ppn 2 --cpu-bind depth ./app", 4),
    ("pals", "-n4 -ppn 2 -hosts x1,x2 --env=OMP_NUM_THREADS=8 --envall ./app", 4),
    ("pals", "-n 2 ./app : -n 1 --env A=1 ./app io", 3),
]


@pytest.mark.parametrize(("kind", "line", "count"), LINES)
def test_each_rank_gets_what_is_preloaded_and_each_setting(
    made: Made, build: Callable[..., Path], libraries: Path, tmp_path: Path, kind: LauncherKind, line: str, count: int
) -> None:
    build("app", needs=["libmpi.so.12"], where=tmp_path)
    path = made(kind)
    settings = {"PALMETTE_FORCE": "bcast=ring:up_to=4K,seg=$x;barrier=mpi"}
    environment = {"PATH": f"{path.parent}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    prepared = prepare([path.name, *line.split()], settings, environment, directory=tmp_path, libraries=libraries)
    assert (prepared.launcher, prepared.abi if hasattr(prepared, "abi") else prepared.evidence.abi) == (kind, "mpich")
    found = ranks([str(path), *prepared.command[1:]], environment | prepared.environment)
    assert [one["rank"] for one in found] == list(range(count))
    for one in found:
        assert one["program"][0] == "./app"
        assert one["sees"]["LD_PRELOAD"] == str(libraries / "libpalmette_mpich.so")
        assert one["sees"]["PALMETTE_FORCE"] == settings["PALMETTE_FORCE"]
    # The launcher itself runs without.
    assert "LD_PRELOAD" not in prepared.environment


def test_what_the_user_sets_stays(made: Made, build: Callable[..., Path], libraries: Path, tmp_path: Path) -> None:
    build("app", needs=["libmpi.so.12"], where=tmp_path)
    path = made("flux")
    environment = {"PATH": f"{path.parent}:/usr/bin:/bin"}
    words = ["flux", "run", "-n2", "--env=LD_PRELOAD=/tools/other.so", "--env=PALMETTE_VERBOSE=2", "./app"]
    prepared = prepare(words, {"PALMETTE_VERBOSE": "1"}, environment, directory=tmp_path, libraries=libraries)
    for one in ranks([str(path), *prepared.command[1:]], environment | prepared.environment):
        assert one["sees"]["PALMETTE_VERBOSE"] == "2"
        assert set(one["sees"]["LD_PRELOAD"].split(":")) == {"/tools/other.so", str(libraries / "libpalmette_mpich.so")}


@pytest.mark.parametrize("line", ["alloc -N2 ./app", "batch script.sh", "proxy 5 flux run ./app", ""])
def test_what_starts_no_tasks_is_told_where_palmette_run_stands(line: str) -> None:
    with pytest.raises(RunError, match="put `palmette run` before `flux run`"):
        read_command_line("flux", ["flux", *line.split()])


def test_ranks_are_put_on_hosts(made: Made, tmp_path: Path) -> None:
    def words(kind: LauncherKind, hosts: list[str]) -> list[str]:
        return launcher(kind).command(Path(NAMES[kind]), Job(["./app"], hosts, tmp_path, {"A": "1"}))

    scattered, blocks = ["n1", "n2", "n1"], ["n1", "n1", "n2", "n2"]
    flux = words("flux", scattered)
    taskmap = next(word for word in flux if word.startswith("--taskmap=hostfile:"))
    assert Path(taskmap.partition(":")[2]).read_text(encoding="utf-8").split() == scattered
    assert {"--nodes=2", "--ntasks=3", "--requires=hosts:n1,n2", "--env=A=1"} < set(flux)
    assert words("pals", blocks)[1:] == ["-n", "4", "--ppn", "2", "--hosts", "n1,n2", "--env", "A=1", "./app"]
    assert words("aprun", blocks)[1:] == ["-n", "4", "-N", "2", "-L", "n1,n2", "-e", "A=1", "./app"]
    for kind in ("pals", "aprun"):
        with pytest.raises(LaunchError, match="MPICH_RANK_REORDER_METHOD"):
            words(kind, scattered)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [*NAMES])
def test_doctor_names_the_launcher_and_the_line_to_type(made: Made, libraries: Path, kind: LauncherKind) -> None:
    path = made(kind)
    known = identify(path)
    assert known is not None and known.kind == kind and known.version.count(".") == 2
    findings = examine({"PATH": str(path.parent)}, libraries)
    assert [one.kind for one in findings.launchers] == [kind]


JOBS: list[tuple[dict[str, str], str]] = [
    ({"PBS_JOBID": "12.server", "PBS_NODEFILE": "nodes"}, "in job 12.server of PBS, 2 hosts of 1 to 2 ranks"),
    ({"PBS_JOBID": "12.server", "PBS_NODEFILE": "none"}, "in job 12.server of PBS: PBS_NODEFILE=none: No such file"),
    ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 4 b 4"}, "in job 7 of LSF, 2 hosts of 4 ranks"),
    ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "nodes"}, "in job 7 of LSF, 2 hosts of 1 to 2 ranks"),
    ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 4 b"}, "in job 7 of LSF: LSB_MCPU_HOSTS has no number behind each host"),
    ({"FLUX_JOB_ID": "f3", "FLUX_JOB_NNODES": "8", "SLURM_JOB_ID": "1"}, "in job f3 of Flux, 8 hosts"),
    ({"SLURM_JOB_ID": "9", "SLURM_JOB_NUM_NODES": "1"}, "in job 9 of Slurm, 1 host"),
    ({"COBALT_JOBID": "5", "COBALT_NODEFILE": "nodes"}, "in job 5 of Cobalt, 2 hosts of 1 to 2 ranks"),
]


@pytest.mark.parametrize(("variables", "sentence"), JOBS)
def test_doctor_says_in_which_job_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes").write_text("node1\nnode1\nnode2\n\n", encoding="utf-8")
    found = allocation(variables)
    assert found is not None and found.sentence.startswith(sentence)
    checks = examine(variables | {"PATH": ""}, tmp_path).checks
    assert next(check.detail for check in checks if check.name == "job").startswith(sentence)


def test_without_a_job_doctor_says_nothing_of_one(tmp_path: Path) -> None:
    assert allocation({}) is None
    assert "job" not in [check.name for check in examine({"PATH": ""}, tmp_path).checks]
