"""Programs that open their MPI late and in a scope of their own: Python modules, hosts of plug-ins."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from palmette.mpi.abi import SONAMES, Abi
from palmette.record.reading import read_job

from .conftest import PRELOADS, Mpi, ProgramResult, _run
from .test_fortran import environment as debian_environment

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).with_name("programs")
# On one host every call of these would be the MPI's or shared memory's.
SERVED = {"PALMETTE_FORCE": "allreduce=leaders", "PALMETTE_FAKE_HOSTS": "0,1"}
BYPASSES = "so that its calls bypass palmette"


@pytest.fixture(params=["mpich", "openmpi", "impi"])
def own_abi(request: pytest.FixtureRequest, mpi_called: Callable[[str], Mpi]) -> Mpi:
    """Each MPI by its own ABI."""
    return mpi_called(request.param)


@pytest.fixture
def compiled(own_abi: Mpi, tmp_path: Path) -> Callable[..., Path]:
    """Compile a program of this folder with the MPI's header: compiled("plugin", "-shared")."""

    def compile_one(name: str, *options: str) -> Path:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        prefix, target = own_abi.installation.prefix, tmp_path / name
        words = [compiler, "-fPIC", f"-I{prefix}/include", f"{PROGRAMS / name}.c", "-o", str(target), *options, "-ldl"]
        subprocess.run(words, check=True)
        return target

    return compile_one


@pytest.fixture
def plugin(own_abi: Mpi, compiled: Callable[..., Path]) -> Path:
    """A plug-in, linked with the MPI."""
    return compiled("plugin", "-shared", f"-L{own_abi.installation.library_dir}", f"-l:{SONAMES[own_abi.abi]}")


def preloaded(mpi: Mpi, abis: list[Abi], words: list[str], settings: Mapping[str, str]) -> ProgramResult:
    """Run two ranks with the preload libraries of these ABIs, in their order, and nobody to choose among them."""
    report = mpi.directory / "report.json"
    settings = {**settings, "PALMETTE_REPORT": str(report)}
    variables = {**settings, "LD_PRELOAD": ":".join(str(PRELOADS / f"libpalmette_{abi}.so") for abi in abis)}
    launch = mpi.launch(2)
    given = [
        word
        for name, value in variables.items()
        for word in (["-x", f"{name}={value}"] if mpi.name == "openmpi" else ["-genv", name, value])
    ]
    return _run([launch[0], *given, *launch[1:], *words], mpi.environment(), report, 60)


def others(abi: Abi) -> list[Abi]:
    return [other for other in SONAMES if other != abi]


def test_mpi4py_is_served(own_abi: Mpi) -> None:
    pytest.importorskip("mpi4py")
    ran = own_abi.run(2, Path(sys.executable), PROGRAMS / "late.py", settings=SERVED)
    ran.assert_right()
    assert ran.served()["allreduce"] == {"leaders": 50}
    assert ran.err == ""


def test_mpi4py_with_all_symbols_bound_at_once_is_served(own_abi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpi4py")
    monkeypatch.setenv("LD_BIND_NOW", "1")
    ran = own_abi.run(2, Path(sys.executable), PROGRAMS / "late.py", settings=SERVED)
    ran.assert_right()
    assert ran.served()["allreduce"] == {"leaders": 50}


def test_mpi4py_that_is_switched_off_runs_as_alone(own_abi: Mpi) -> None:
    pytest.importorskip("mpi4py")
    ran = own_abi.run(2, Path(sys.executable), PROGRAMS / "late.py", settings={"PALMETTE_ENABLE": "0"})
    ran.assert_right()
    assert ran.served() == {} and ran.err == ""


def test_functions_that_an_mpi_lacks_are_not_found_in_a_preload(own_abi: Mpi) -> None:
    pytest.importorskip("mpi4py")
    # mpi4py looks whether they are there: those of the preload for another ABI are not.
    words = [sys.executable, str(PROGRAMS / "get_status.py")]
    ran = preloaded(own_abi, [own_abi.abi, *others(own_abi.abi)], words, {})
    if own_abi.name == "openmpi":  # which has none of MPI 4.1's
        assert "NotImplementedError" in ran.err
        return
    ran.assert_right()
    assert ran.err == ""


@pytest.mark.parametrize("program", ["late.py", "transforms.py"])
def test_the_mpi4py_of_debian_is_served(program: str, tmp_path: Path) -> None:
    python, launcher = Path("/usr/bin/python3"), shutil.which("mpiexec.openmpi")
    needed = "mpi4py_fft" if program == "transforms.py" else "mpi4py"
    if (
        launcher is None
        or subprocess.run([python, "-c", f"import {needed}"], capture_output=True, check=False).returncode
    ):
        pytest.skip(f"no {needed} for {python} with Open MPI: apt-get install python3-mpi4py-fft openmpi-bin")
    report = tmp_path / "report.json"
    variables = {"PALMETTE_REPORT": str(report), "PALMETTE_FAKE_HOSTS": "0,1", "PALMETTE_SERVE_AFTER": "0"}
    variables |= {"PALMETTE_FORCE": "allreduce=leaders;alltoallw=linear"}
    palmette = Path(sys.executable).with_name("palmette")
    words = [str(palmette), "run", launcher, "--oversubscribe", "-n", "2", str(python)]
    ran = _run([*words, str(PROGRAMS / program)], {**debian_environment("openmpi"), **variables}, report, 60)
    ran.assert_right()
    assert ("alltoallw" if program == "transforms.py" else "allreduce") in ran.served()


def test_a_plug_in_is_served(own_abi: Mpi, compiled: Callable[..., Path], plugin: Path) -> None:
    ran = own_abi.run(2, compiled("plugin_host"), plugin, settings=SERVED)
    ran.assert_right()
    assert ran.served()["allreduce"] == {"leaders": 100}
    assert ran.err == ""


def test_of_several_preloads_that_of_the_mpi_serves(own_abi: Mpi, compiled: Callable[..., Path], plugin: Path) -> None:
    host = str(compiled("plugin_host"))
    ran = preloaded(own_abi, [*others(own_abi.abi), own_abi.abi], [host, str(plugin)], SERVED)
    ran.assert_right()
    assert ran.served()["allreduce"] == {"leaders": 100}
    assert ran.err == ""


def test_a_preload_for_another_abi_steps_aside(own_abi: Mpi, compiled: Callable[..., Path], plugin: Path) -> None:
    wrong = others(own_abi.abi)[0]
    ran = preloaded(own_abi, [wrong], [str(compiled("plugin_host")), str(plugin)], SERVED)
    ran.assert_right()
    assert ran.report is None
    assert ran.err.count("palmette:") == 1
    assert f"the preload is for the ABI {wrong}" in ran.err and f"palmette run --abi {own_abi.abi}" in ran.err


ALONE = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int ranks = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("of %d\\n", ranks);
    return MPI_Finalize();
}
"""


def test_a_program_of_another_mpi_than_its_launchers_is_told_once(
    mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    """Two programs of one rank each: the preloads for MPICH's launcher can't serve them, and another --abi won't."""
    launcher, own = mpi_called("mpich"), mpi_called("openmpi")
    compiler, library = shutil.which("cc"), own.installation.library_dir
    if compiler is None or library is None:
        pytest.skip("no C compiler")
    (tmp_path / "alone.c").write_text(ALONE, encoding="utf-8")
    soname = f"-l:{SONAMES[own.abi]}"
    words = [compiler, f"-I{own.installation.prefix}/include", str(tmp_path / "alone.c"), "-o", str(tmp_path / "alone")]
    subprocess.run([*words, f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--allow-shlib-undefined", soname], check=True)
    preloads = ":".join(str(PRELOADS / f"libpalmette_{abi}.so") for abi in ("mpich", "abi"))
    given = ["/usr/bin/env", f"LD_PRELOAD={preloads}", f"LD_LIBRARY_PATH={library}"]
    ran = _run([*launcher.launch(2), *given, str(tmp_path / "alone")], launcher.environment(), tmp_path / "none", 60)
    assert (ran.status, ran.out.split()) == (0, ["of", "1", "of", "1"]), ran.text
    assert ran.err.count("palmette:") == 1, ran.err
    assert "its launcher is MPICH's" in ran.err and "2 jobs of one rank each" in ran.err and "--abi" not in ran.err


def test_a_host_that_looks_functions_up_is_right_and_told(own_abi: Mpi, compiled: Callable[..., Path]) -> None:
    library = own_abi.installation.library_dir
    assert library is not None
    ran = preloaded(own_abi, [own_abi.abi], [str(compiled("dlsym_host")), str(library / SONAMES[own_abi.abi])], {})
    ran.assert_right()
    assert ran.err.count("palmette:") == 1 and BYPASSES in ran.err


def test_a_program_that_never_starts_its_mpi_is_told_nothing(own_abi: Mpi) -> None:
    prefix = own_abi.installation
    assert prefix.library_dir is not None
    variables = {**own_abi.environment(), "LD_PRELOAD": str(PRELOADS / f"libpalmette_{own_abi.abi}.so")}
    code = f"import ctypes; ctypes.CDLL({str(prefix.library_dir / SONAMES[own_abi.abi])!r})"
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_mpi4py_is_recorded(own_abi: Mpi, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    code = "from mpi4py import MPI; c=MPI.COMM_WORLD; c.Barrier(); c.Barrier()"
    folder = tmp_path / "recording"
    ran = own_abi.run(2, Path(sys.executable), "-c", code, settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    ranks = [process.recorded for process in read_job(folder).processes if process.recorded.rank >= 0]
    assert len(ranks) == 2
    for recorded in ranks:
        assert sum(row.calls for row in recorded.aggregates if row.function == "MPI_Barrier") == 2
