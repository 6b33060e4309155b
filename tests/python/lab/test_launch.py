"""Command lines of the launchers, and finding MPIs."""

from __future__ import annotations

from pathlib import Path

import pytest

from palmette.mpi import install as mpi_install
from palmette.mpi import launch
from palmette.mpi.install import Installation
from palmette.mpi.launch.identify import identify_text
from palmette_lab.lab.mpi_settings import lab_settings

HOSTS = ["h1", "h0", "h1", "h2"]


def job(tmp_path: Path, *, agent: Path | None = None) -> launch.Job:
    return launch.Job(
        ["./app", "-x"], HOSTS, tmp_path / "runs", {"LD_PRELOAD": "/a.so:/b.so", "NAME": "two words"}, agent, ["-v"]
    )


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_hydra_maps_each_rank_to_the_index_of_its_host(tmp_path: Path) -> None:
    words = launch.launcher("hydra").command(Path("/m/mpiexec"), job(tmp_path, agent=Path("/rsh")))
    assert after(words, "-hosts") == "h1,h0,h2"
    assert after(words, "-rankmap") == "0,1,0,2"
    assert after(words, "-launcher-exec") == "/rsh"
    assert words[-3:] == ["-v", "./app", "-x"]


def test_intels_hydra_gets_a_machine_file_with_one_line_a_rank(tmp_path: Path) -> None:
    words = launch.launcher("intel_hydra").command(Path("/m/mpiexec"), job(tmp_path))
    assert Path(after(words, "-machinefile")).read_text() == "h1\nh0\nh1\nh2\n"
    assert after(words, "-n") == "4"


def test_prrte_walks_through_its_host_file(tmp_path: Path) -> None:
    words = launch.launcher("prrte").command(Path("/m/mpirun"), job(tmp_path, agent=Path("/rsh")))
    assert Path(after(words, "--hostfile")).read_text().split() == HOSTS
    assert after(words, "--map-by") == "seq"
    assert "/rsh" in words


def test_srun_reads_the_host_of_each_task_from_slurm_hostfile(tmp_path: Path) -> None:
    srun = launch.launcher("srun")
    assert "--distribution=arbitrary" in srun.command(Path("srun"), job(tmp_path))
    assert Path(srun.environment(job(tmp_path))["SLURM_HOSTFILE"]).read_text().split() == HOSTS


def test_srun_refuses_an_agent_and_values_with_commas(tmp_path: Path) -> None:
    srun = launch.launcher("srun")
    with pytest.raises(launch.LaunchError, match="no replacement for ssh"):
        srun.command(Path("srun"), job(tmp_path, agent=Path("/rsh")))
    with pytest.raises(launch.LaunchError, match="because of the comma"):
        srun.pass_environment({"PALMETTE_FORCE": "gather=k_nomial:radix=4,segment=64"})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("hydra", ["-genv", "A", "b c"]),
        ("intel_hydra", ["-genv", "A", "b c"]),
        ("prrte", ["-x", "A=b c"]),
        ("srun", ["--export=ALL,A=b c"]),
    ],
)
def test_variables_are_given_to_the_ranks_alone(kind: launch.LauncherKind, expected: list[str]) -> None:
    assert launch.launcher(kind).pass_environment({"A": "b c"}) == expected
    assert launch.launcher(kind).pass_environment({}) == []


@pytest.mark.parametrize(
    ("text", "kind", "version"),
    [
        ("HYDRA build details:\n    Version:                                 5.0.2\n", "hydra", "5.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b)\n", "intel_hydra", "2021.18.1"),
        ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to ...\n", "prrte", "5.0.11"),
        ("mpirun (Open MPI) 4.1.4\n", "prrte", "4.1.4"),
        ("mpiexec (OpenRTE) 4.1.4\n", "prrte", "4.1.4"),
        ("prterun (PRRTE) 3.0.8\n", "prrte", "3.0.8"),
        ("slurm-wlm 22.05.8\n", "srun", "22.05.8"),
        ("slurm 23.11.4\n", "srun", "23.11.4"),
    ],
)
def test_a_launcher_is_known_by_what_it_says_of_itself(text: str, kind: str, version: str) -> None:
    found = identify_text(text)
    assert found is not None
    assert (found.kind, found.version) == (kind, version)


def test_another_program_is_no_launcher() -> None:
    assert identify_text("echo (GNU coreutils) 9.1") is None
    assert launch.identify(Path("/no/such/program")) is None


def fake_mpich(prefix: Path) -> None:
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libmpi.so.12").touch()
    mpiexec = prefix / "bin" / "mpiexec"
    mpiexec.write_text("#!/bin/sh\nprintf 'HYDRA build details:\\n    Version: 9.8.7\\n'\n")
    mpiexec.chmod(0o755)


def test_an_mpi_is_found_at_the_prefix_in_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mpich(tmp_path / "m")
    monkeypatch.setenv("PALMETTE_MPI_MPICH", str(tmp_path / "m"))
    found = mpi_install.find("mpich")
    assert (found.version, found.launcher, found.library_dir) == ("9.8.7", "hydra", tmp_path / "m" / "lib")
    assert found.environment({"LD_LIBRARY_PATH": "/other"})["LD_LIBRARY_PATH"] == f"{tmp_path}/m/lib:/other"


def test_a_prefix_that_holds_another_mpi_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mpich(tmp_path / "m")
    monkeypatch.setenv("PALMETTE_MPI_OPENMPI", str(tmp_path / "m"))
    with pytest.raises(mpi_install.MpiNotFoundError, match="no bin/mpiexec of openmpi there"):
        mpi_install.find("openmpi")


def test_an_mpi_in_path_is_found_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mpich(tmp_path / "m")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "elsewhere" / ".venv"))
    monkeypatch.setenv("PATH", f"{tmp_path}/m/bin")
    assert mpi_install.find("mpich").prefix == tmp_path / "m"
    assert [found.name for found in mpi_install.find_all()] == ["mpich"]


def test_a_preload_of_the_user_stands_before_the_one_of_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libpalmette_yield_sleep.so").touch()
    monkeypatch.setenv("PALMETTE_LAB_BIN", str(tmp_path))
    mpi = Installation("openmpi", tmp_path, tmp_path / "mpiexec", None, "5")
    settings = lab_settings(mpi, {"LD_PRELOAD": "/palmette.so", "OMPI_MCA_pml": "ucx"})
    assert settings.ranks["LD_PRELOAD"] == f"/palmette.so:{tmp_path}/libpalmette_yield_sleep.so"
    assert settings.ranks["OMPI_MCA_pml"] == "ucx"
    assert "LD_PRELOAD" not in settings.launcher
