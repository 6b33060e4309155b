"""tools/build.sh on a project of two files: what was compiled isn't compiled again, and what is installed stays there.

Of this project it takes the scripts and the presets; CMake and ninja are those of .venv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(not (ROOT / ".venv/bin/cmake").exists(), reason="there is no .venv with CMake (make build)"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]

PROJECT = """\
cmake_minimum_required(VERSION 3.26)
project(small LANGUAGES C)
set(PALMETTE_ABIS "" CACHE STRING "")
# Tells what is installed each time that this is configured.
file(GLOB seen LIST_DIRECTORIES false RELATIVE "${CMAKE_SOURCE_DIR}/python" "${CMAKE_SOURCE_DIR}/python/palmette/lib/*")
file(APPEND "${CMAKE_SOURCE_DIR}/seen" "${seen}\\n")
foreach(abi IN LISTS PALMETTE_ABIS)
  add_library(palmette_${abi} MODULE library.c)
  install(TARGETS palmette_${abi} LIBRARY DESTINATION palmette/lib COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
install(TARGETS palmette_mpich LIBRARY DESTINATION palmette/lib COMPONENT demo EXCLUDE_FROM_ALL)
add_custom_target(palmette_demo DEPENDS palmette_mpich)
add_executable(palmette_tests EXCLUDE_FROM_ALL test.c)
if(NOT EXISTS "${CMAKE_SOURCE_DIR}/gtest")
  message(STATUS "GoogleTest is missing")
endif()
"""
CCACHE = """\
#!/bin/sh
echo "$*" >> "${CCACHE_BASEDIR:?}/cached"
exec "$@"
"""


class SmallProject:
    """The project in a folder, built as make does it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log: set[tuple[str, ...]] = set()
        self.library = folder / "python" / "palmette" / "lib" / "libpalmette_mpich.so"
        for name in ("build.sh", "launch", "publish.sh"):
            (folder / "tools").mkdir(exist_ok=True)
            if (ROOT / "tools" / name).exists():
                shutil.copy(ROOT / "tools" / name, folder / "tools" / name)
        shutil.copy(ROOT / "CMakePresets.json", folder)
        (folder / ".venv").symlink_to(ROOT / ".venv")
        (folder / "CMakeLists.txt").write_text(PROJECT)
        (folder / "library.c").write_text("int answer(void) { return 1; }\n")
        (folder / "test.c").write_text("int main(void) { return 0; }\n")
        # The programs of this machine, without its ccache.
        self.programs = folder / "programs"
        self.programs.mkdir()
        for place in reversed(os.environ["PATH"].split(os.pathsep)):
            for program in Path(place).iterdir() if Path(place).is_dir() else ():
                if program.name != "ccache":
                    (self.programs / program.name).unlink(missing_ok=True)
                    (self.programs / program.name).symlink_to(program)

    def ccache(self, *, comes: bool) -> None:
        """Install a ccache, or take it away."""
        (self.programs / "ccache").unlink(missing_ok=True)
        if comes:
            (self.programs / "ccache").write_text(CCACHE)
            (self.programs / "ccache").chmod(0o755)

    def mpi(self, name: str) -> None:
        """Install an MPI, upon which make configures anew."""
        (self.folder / ".mpi" / name / "include").mkdir(parents=True, exist_ok=True)
        (self.folder / ".mpi" / name / "include" / "mpi.h").touch()
        self.changed()

    def changed(self) -> None:
        """Let the MPIs be newer than what was configured."""
        later = (self.folder / "build/release/configure.log").stat().st_mtime + 1 if self.built() else None
        (self.folder / ".mpi").mkdir(exist_ok=True)
        (self.folder / ".mpi" / ".stamp").touch()
        if later:
            os.utime(self.folder / ".mpi" / ".stamp", (later, later))

    def built(self) -> bool:
        """Whether it was configured before."""
        return (self.folder / "build/release/configure.log").exists()

    def build(self, *targets: str) -> None:
        """Run build.sh."""
        words = [self.folder / "tools/build.sh", "release", "1", *targets]
        done = subprocess.run(
            words, env=os.environ | {"PATH": str(self.programs)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        # Now, for CMake lets ninja forget all but the last time.
        for line in (self.folder / "build/release/.ninja_log").read_text().splitlines()[1:]:
            self.log.add(tuple(line.split("\t")))

    def compiled(self) -> Counter[str]:
        """Return how often each unit was compiled."""
        return Counter(name for _, _, _, name, _ in self.log if name.endswith(".o"))

    def seen(self) -> list[str]:
        """Return which libraries were installed, at each time that CMake configured."""
        return (self.folder / "seen").read_text().splitlines()


@pytest.fixture
def small(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path)


def test_no_target_undoes_what_another_one_has_made(small: SmallProject) -> None:
    small.build("palmette_demo")  # make demo, on a machine without ccache
    small.ccache(comes=True)
    small.mpi("openmpi")
    small.build()  # make build brings the other MPIs
    (small.folder / "gtest").touch()
    small.build("palmette_tests")  # make test brings GoogleTest
    small.changed()
    small.build()  # make install begins with make build
    small.ccache(comes=False)
    small.changed()
    small.build("palmette_demo")
    small.build("palmette_tests")
    small.build()
    assert set(small.compiled().values()) == {1} and len(small.compiled()) >= 4
    first, *later = small.seen()
    assert first == "" and len(later) >= 4
    assert all("palmette/lib/libpalmette_mpich.so" in line for line in later)
    assert {file.name for file in small.library.parent.iterdir()} == {
        f"libpalmette_{abi}.so" for abi in ("mpich", "abi", "ompi")
    }


def test_ccache_is_used_where_it_is(small: SmallProject) -> None:
    small.build("palmette_demo")
    assert not (small.folder / "cached").exists()
    small.ccache(comes=True)
    small.build("palmette_tests")
    assert "test.c" in (small.folder / "cached").read_text()


def test_a_library_is_replaced_whole_and_only_if_it_has_changed(small: SmallProject) -> None:
    small.build()
    with small.library.open("rb") as opened:
        before, place = small.library.read_bytes(), small.library.stat().st_ino
        small.changed()
        small.build()
        assert small.library.stat().st_ino == place
        source = small.folder / "library.c"
        source.write_text("int answer(void) { return 2; }\n")
        later = source.stat().st_mtime + 5  # than the object file, whatever a busy machine's clock ticks are
        os.utime(source, (later, later))
        small.build()
        assert small.library.stat().st_ino != place
        assert small.library.read_bytes() != before
        assert opened.read() == before  # who has mapped the old one keeps it
    assert [file.name for file in small.library.parent.iterdir() if file.name.startswith(".")] == []


def test_libraries_of_an_mpi_that_has_gone_go_once_the_rest_is_there(small: SmallProject) -> None:
    small.mpi("openmpi")
    small.build()
    assert (small.library.parent / "libpalmette_ompi.so").exists()
    shutil.rmtree(small.folder / ".mpi" / "openmpi")
    small.changed()
    small.build("palmette_demo")
    assert (small.library.parent / "libpalmette_ompi.so").exists(), "a part of the build knows nothing of the rest"
    small.build()
    assert not (small.library.parent / "libpalmette_ompi.so").exists()
    assert all("libpalmette_ompi.so" in line for line in small.seen()[1:])


def test_a_precompiled_header_is_of_the_text_that_stands_there(tmp_path: Path) -> None:
    if shutil.which("ccache") is None or shutil.which("g++") is None:
        pytest.skip("no ccache, or no g++: apt-get install ccache g++")
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache")}
    header, all_headers, source = tmp_path / "one.hpp", tmp_path / "all.hpp", tmp_path / "use.cpp"
    all_headers.write_text('#include "one.hpp"\n')

    def build(comment: str, number: int) -> None:
        header.write_text(f"// {comment}\n#pragma once\nstruct One {{}};\n")
        source.write_text(f'#include "one.hpp"\nOne one_{number};\n')
        precompiled = tmp_path / "all.hpp.gch"
        precompiled.unlink(missing_ok=True)
        for words in (
            ("-x", "c++-header", "-o", precompiled, "-c", all_headers),
            ("-include", all_headers, "-o", tmp_path / "use.o", "-c", source),
        ):
            flags = ("-fpch-preprocess", "-Winvalid-pch", "-MD", "-MF", tmp_path / "use.d", f"-I{tmp_path}")
            command = [ROOT / "tools" / "launch", "g++", *flags, *words]
            done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

    build("one comment", 1)
    build("another one", 2)
