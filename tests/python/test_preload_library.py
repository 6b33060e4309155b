"""What a preload library must be, whatever it does: it binds to the program's MPI and to nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

LIBRARIES = sorted((Path(__file__).resolve().parents[2] / "python" / "palmette" / "lib").glob("libpalmette_*.so"))
PROGRAMS = sorted((LIBRARIES[0].parents[1] / "bin").glob("*.ompi")) if LIBRARIES else []
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux[\w-]*)\.so\.\d+")

pytestmark = [
    pytest.mark.skipif(not LIBRARIES, reason="no preload library was built"),
    pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is missing (binutils)"),
]
each_library = pytest.mark.parametrize("library", LIBRARIES, ids=[file.name for file in LIBRARIES])


def readelf(*arguments: str | Path) -> str:
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout


def rows_of(library: Path) -> list[list[str]]:
    """Return the rows of the dynamic symbols: at 4 how they bind, at 6 where, at 7 the name."""
    rows = [line.split() for line in readelf("--dyn-syms", library).splitlines()[3:]]
    return [row for row in rows if len(row) > 7]


@each_library
def test_it_needs_only_the_c_library(library: Path) -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", library))
    assert [name for name in needed if not SYSTEM.fullmatch(name)] == []


@each_library
def test_it_has_no_rpath(library: Path) -> None:
    assert not re.search(r"R(UN)?PATH", readelf("-d", library))


@each_library
def test_it_shows_only_mpi_and_palmette_symbols(library: Path) -> None:
    shown = [row[7] for row in rows_of(library) if row[6] != "UND" and row[4] in ("GLOBAL", "WEAK", "UNIQUE")]
    assert any(name.startswith("MPI_") for name in shown)
    # The recorder also sees modules go, whose addresses others get, threads begin, handlers of signals, and functions
    # that were compiled to tell of themselves.
    instrumented = {f"__cyg_profile_func_{what}" for what in ("enter", "exit")}
    of_libc = {"dlclose", "pthread_create", "sigaction", "signal"}
    others = of_libc | instrumented if "_record_" in library.name else set()
    assert {name for name in shown if not re.match(r"(MPIX?|mpi|palmette)_", name)} == others


def test_the_twin_of_libsharp_shows_only_the_names_of_libsharp() -> None:
    twin = LIBRARIES[0].with_name("sharp") / "libsharp_coll.so.5"
    shown = [row[7] for row in rows_of(twin) if row[6] != "UND" and row[4] in ("GLOBAL", "WEAK", "UNIQUE")]
    assert "sharp_coll_init@@SHARP_COLL_5" in shown
    assert [name for name in shown if not re.match(r"(sharp_coll|SHARP_COLL)_", name)] == []
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", twin))
    assert [name for name in needed if not SYSTEM.fullmatch(name)] == []


@each_library
def test_it_leaves_no_mpi_symbol_to_the_loader(library: Path) -> None:
    # An interpreter opens its MPI in a scope that the loader doesn't search for a preload.
    taken = [row[7] for row in rows_of(library) if row[6] == "UND"]
    assert taken
    assert [name for name in taken if re.match(r"(?i)(p?mpi|ompi)_", name)] == []


@each_library
def test_a_program_without_mpi_runs_under_it_in_silence(library: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}
    done = subprocess.run(["/bin/echo", "fine"], env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


BUILD = Path(__file__).resolve().parents[2] / "build" / "release" / "CMakeFiles"
OBJECTS = sorted(file for file in BUILD.glob("palmette_*.dir/**/*.o"))


@pytest.mark.skipif(not OBJECTS, reason="build/release holds no object files")
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is missing (binutils)")
def test_nothing_of_it_is_destroyed_while_the_process_ends() -> None:
    # The program's own destructors may still call MPI: see base/never_destroyed.hpp.
    listing = subprocess.run(["nm", "-A", "-u", *OBJECTS], check=True, capture_output=True, text=True).stdout
    registered = re.findall(r"^(\S+):\s+U (__cxa_atexit|__cxa_thread_atexit|atexit)$", listing, re.MULTILINE)
    assert sorted({Path(file).name.removesuffix(".o") for file, _ in registered}) == []


@pytest.mark.parametrize("program", PROGRAMS, ids=[file.name for file in PROGRAMS])
def test_a_program_takes_addresses_of_the_mpis_variables_from_the_loader(program: Path) -> None:
    # It was linked with a stub, whose variables have other sizes: a copy of one would be of the wrong length.
    assert "COPY" not in readelf("--relocs", program)
    assert re.findall(r"\(NEEDED\).*\[(libmpi.*)\]", readelf("-d", program)) == ["libmpi.so.40"]
