"""`cmake --install` with GNU directories: what is there, and that programs find it by CMake and by pkg-config."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from palmette.mpi.abi import SONAMES
from palmette.record.reading import read_job
from palmette.record.regions import regions_of

from .conftest import ROOT, Mpi

pytestmark = pytest.mark.mpi

BUILD = ROOT / "build" / "release"
CMAKE = Path(sys.prefix) / "bin" / "cmake"
PROGRAM = Path(__file__).with_name("programs") / "linked.c"

LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(palmette 0.1 REQUIRED)
add_executable(app {source})
target_include_directories(app PRIVATE {prefix}/include)
target_link_libraries(app PRIVATE palmette::{abi} {library} -Wl,--allow-shlib-undefined)
"""


def call(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (BUILD / "cmake_install.cmake").exists() or not CMAKE.exists():
        pytest.skip("there is no build in build/release (make build)")
    prefix = tmp_path_factory.mktemp("prefix")
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    return prefix


def library_of(mpi: Mpi) -> Path:
    if not (mpi.installation.prefix / "include" / "mpi.h").is_file() or mpi.installation.library_dir is None:
        pytest.skip(f"{mpi.name} has no headers here")
    return mpi.installation.library_dir / SONAMES[mpi.abi]


def build_folders(installed: Path) -> tuple[Path, Path]:
    """Return the library and the include folder, wherever this system's GNU directories are."""
    (library,) = installed.rglob("libpalmette_mpich.so")
    (header,) = installed.rglob("palmette.h")
    return library.parent, header.parent


def test_files_are_in_the_gnu_directories(installed: Path) -> None:
    library, include = build_folders(installed)
    names = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert f"{library.relative_to(installed)}/libpalmette_record_mpich.so" in names
    assert f"{library.relative_to(installed)}/cmake/palmette/palmetteConfig.cmake" in names
    assert {f"{include.relative_to(installed)}/palmette.h", f"{include.relative_to(installed)}/palmette.hpp"} <= names
    assert {"share/man/man1/palmette-run.1", "share/bash-completion/completions/palmette"} <= names
    assert not [name for name in names if name.startswith("palmette/")], "the Python package's own files"


def test_a_prefix_that_is_not_absolute_is_refused() -> None:
    done = subprocess.run([ROOT / "tools" / "install.sh", "here"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "install: name an absolute directory: make install PREFIX=/opt/palmette\n"


def test_a_program_finds_it_by_cmake(mpi: Mpi, installed: Path, tmp_path: Path) -> None:
    text = LISTS.format(source=PROGRAM, prefix=mpi.installation.prefix, abi=mpi.abi, library=library_of(mpi))
    if mpi.abi == "abi":
        text += "target_compile_definitions(app PRIVATE MPI_ABI)\n"
    (tmp_path / "CMakeLists.txt").write_text(text, encoding="utf-8")
    call(CMAKE, "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={installed}", "-DCMAKE_C_COMPILER=cc")
    call(CMAKE, "--build", tmp_path / "b")
    assert_served(mpi, tmp_path / "b" / "app")


def test_a_program_finds_it_by_pkg_config(mpi: Mpi, installed: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is missing")
    folder = build_folders(installed)[0] / "pkgconfig"
    ask = ["env", f"PKG_CONFIG_PATH={folder}", "pkg-config"]
    flags = call(*ask, "--cflags", "--libs", f"palmette-{mpi.abi}").split()
    assert call(*ask, "--cflags", "palmette").split() == flags[:1]
    define = ["-DMPI_ABI"] if mpi.abi == "abi" else []
    linking = [f"-Wl,-rpath,{build_folders(installed)[0]}", library_of(mpi), "-Wl,--allow-shlib-undefined"]
    include = f"-I{mpi.installation.prefix}/include"
    call("cc", *define, include, PROGRAM, "-o", tmp_path / "app", *flags, *linking)
    assert_served(mpi, tmp_path / "app")


def test_a_program_is_linked_with_the_recorder_by_pkg_config(mpi: Mpi, installed: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is missing")
    library = build_folders(installed)[0]
    ask = ["env", f"PKG_CONFIG_PATH={library / 'pkgconfig'}", "pkg-config", f"--define-variable=abi={mpi.abi}"]
    flags = call(*ask, "--cflags", "--libs", "palmette-record").split()
    define = ["-DMPI_ABI"] if mpi.abi == "abi" else []
    linking = [f"-Wl,-rpath,{library}", library_of(mpi), "-Wl,--allow-shlib-undefined", "-lpthread"]
    include = f"-I{mpi.installation.prefix}/include"
    program = PROGRAM.with_name("regions.c")
    call("cc", "-std=gnu11", *define, include, program, "-o", tmp_path / "app", *flags, *linking)
    folder = tmp_path / "recording"
    ran = mpi.run(2, tmp_path / "app", "nested", settings={"PALMETTE_PROFILE": str(folder)}, preload=False)
    assert ran.status == 0, ran.text
    job = read_job(folder)
    assert [process.recorded.calls for process in job.processes] == [10, 10]
    assert {one.name: one.calls for one in regions_of(job)} == {"": 0, "step": 6, "solve": 12}
    # Without the setting nothing is recorded.
    ran = mpi.run(1, tmp_path / "app", "count", 10, preload=False)
    assert ran.status == 0, ran.text


def assert_served(mpi: Mpi, program: Path) -> None:
    ran = mpi.run(3, program, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text
