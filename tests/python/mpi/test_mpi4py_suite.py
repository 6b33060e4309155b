"""mpi4py's own suite: with palmette each test ends as it does alone. Its files come by tools/setup_mpi4py.sh."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from palmette.run import prepare

from .conftest import LEVEL_BY_LEVEL, PRELOADS, ROOT, SOAK, Mpi, _run
from .test_fortran import environment as debian_environment

pytestmark = pytest.mark.mpi

RUNNER = Path(__file__).with_name("programs") / "suite_rank.py"
YIELD_SLEEPS = ROOT / "python" / "palmette" / "bin" / "libpalmette_yield_sleep.so"
SUITES = ROOT / ".venv" / "mpi4py"
ABI_PYTHON = SUITES / "abi" / "bin" / "python"
"""Python whose mpi4py is for the standard's ABI."""
DEBIAN_PYTHON = Path("/usr/bin/python3")
NAMES = ("mpich", "openmpi", "impi")
# They start other MPI jobs, or ask about the installed package.
LEFT_OUT = ("spawn", "dynproc", "msgspec", "mpiabi", "test_doc")
# Its ranks spin on MPI_Parrived without giving way: where processors are short, an hour instead of seconds.
SPINS = "p2p_buf_part"
LIMIT_S = 3600.0
MEMORY = "/dev/shm"
HOSTS = {1: "0", 2: "0,1", 3: "0,1,0", 4: "0,1,1,0", 5: "0,1,2,0,1"}
# A test or some of each module that calls collectives, by mpi4py's own way of naming them.
QUICK_TESTS = ("CCONgh*World.*", "TopoWorld.testCart*", "World.testAllreduce", "World.testAllgather", "Inter.testBcast")
QUICK_MODULES = ("test_cco_", "test_comm_topo")
MIN_TESTS = 20


@dataclass(frozen=True)
class Suite:
    """The main program of mpi4py's tests, and how ranks of a Python with that mpi4py are run."""

    main: Path
    run: Callable[[list[str], int, Mapping[str, str] | None], tuple[str, str]]
    """(arguments, ranks, settings): output and errors. Settings None: without palmette."""


def files_of(python: Path) -> Path:
    """Return the main program of the tests of a Python's mpi4py."""
    words = [str(python), "-c", "import mpi4py; print(mpi4py.__version__)"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{python} has no mpi4py")
    folder = SUITES / done.stdout.strip() / "test"
    found = next((folder / name for name in ("main.py", "runtests.py") if (folder / name).is_file()), None)
    if found is None:
        pytest.skip(f"no {folder}: run tools/setup_mpi4py.sh")
    return found


def suite_of(mpi: Mpi, python: Path = Path(sys.executable)) -> Suite:
    """Return the suite of a Python's mpi4py, by default the one that runs the tests, on one of the MPIs in .mpi."""
    if not python.is_file():
        pytest.skip(f"no {python}: run tools/setup_mpi4py.sh abi")

    def run(arguments: list[str], ranks: int, settings: Mapping[str, str] | None) -> tuple[str, str]:
        ran = mpi.run(ranks, python, *arguments, settings=settings, preload=settings is not None, timeout_s=LIMIT_S)
        if settings is not None and ranks > 1:
            assert ran.served(), "nothing was served"
        return ran.out, ran.err

    return Suite(files_of(python), run)


def suite_of_debian(folder: Path) -> Suite:
    """Return the suite of Debian's mpi4py, which has Open MPI 4.1."""
    launcher = shutil.which("mpiexec.openmpi")
    if launcher is None:
        pytest.skip("no mpiexec.openmpi: apt-get install openmpi-bin python3-mpi4py")

    def run(arguments: list[str], ranks: int, settings: Mapping[str, str] | None) -> tuple[str, str]:
        words = [launcher, "--oversubscribe", "-n", str(ranks), str(DEBIAN_PYTHON), *arguments]
        environment = debian_environment("openmpi")
        if settings is not None:
            given = {**settings, "PALMETTE_SERVE_AFTER": "0", "PALMETTE_SITE": "0"}
            prepared = prepare(words, given, environment, libraries=PRELOADS)
            words, environment = list(prepared.command), {**environment, **prepared.environment}
        ran = _run(words, environment, folder / "none.json", LIMIT_S)
        return ran.out, ran.err

    return Suite(files_of(DEBIAN_PYTHON), run)


def outcomes(
    suite: Suite, folder: Path, ranks: int, chosen: list[str], settings: Mapping[str, str] | None
) -> dict[str, list[str]]:
    """Return rank -> lines `OUTCOME TEST`."""
    folder.mkdir()
    # The third major version has these as options of its runner, too.
    left_out = (*LEFT_OUT, SPINS) if ranks > 2 * (os.cpu_count() or 1) else LEFT_OUT
    chosen = [*chosen, *(word for pattern in left_out for word in ("-e", pattern)), "--no-builddir"]
    out, err = suite.run([str(RUNNER), str(folder), str(suite.main), *chosen], ranks, settings)
    assert "Ran " in err, (out + err)[-4000:]
    return {file.name: sorted(file.read_text(encoding="utf-8").splitlines()) for file in folder.iterdir()}


@pytest.fixture
def yield_sleeps(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ranks outnumber processors, a rank that polls leaves its processor to others."""
    if ranks > (os.cpu_count() or 1):
        monkeypatch.setenv("LD_PRELOAD", str(YIELD_SLEEPS))
        for name in ("ENABLE_HEAVY_YIELD", "POLLS_BEFORE_YIELD"):  # else MPICH polls on
            monkeypatch.setenv(f"MPIR_CVAR_{name}", "1")


@pytest.fixture(autouse=True)
def no_jobs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI4PY_TEST_SPAWN", "0")
    if os.access(MEMORY, os.W_OK):  # its files are synced again and again: half of the time is a disk's
        monkeypatch.setenv("TMPDIR", MEMORY)


@pytest.mark.parametrize("name", NAMES)
def test_some_of_each_module_with_collectives_pass(name: str, mpi_called: Callable[[str], Mpi], tmp_path: Path) -> None:
    chosen = [word for module in QUICK_MODULES for word in ("-i", module)]
    chosen += [word for pattern in QUICK_TESTS for word in ("-k", f"*{pattern}")]
    settings = {"PALMETTE_FAKE_HOSTS": HOSTS[2], **LEVEL_BY_LEVEL, "PALMETTE_PROFILE": str(tmp_path / "profile")}
    ended = outcomes(suite_of(mpi_called(name)), tmp_path / "outcomes", 2, chosen, settings)
    assert sorted(ended) == ["0", "1"]
    for rank, lines in ended.items():
        assert len(lines) >= MIN_TESTS, lines
        assert [line for line in lines if not line.startswith(("passed", "skipped"))] == [], f"rank {rank}"


WAYS: dict[str, dict[str, str]] = {
    "by the table, profiled": {"PALMETTE_PROFILE": "recording"},
    "level by level, traced": {**LEVEL_BY_LEVEL, "PALMETTE_TRACE": "recording"},
}


@pytest.mark.long
@pytest.mark.usefixtures("yield_sleeps")
@pytest.mark.parametrize(
    "ranks",
    [
        ranks
        if ranks in (2, 3)
        else pytest.param(ranks, marks=pytest.mark.skipif(SOAK < 2, reason="PALMETTE_TEST_SOAK=2"))
        for ranks in HOSTS
    ],
)
@pytest.mark.parametrize("name", [*NAMES, "abi", "debian"])
def test_each_test_ends_as_it_does_alone(
    name: str, ranks: int, mpi_called: Callable[[str], Mpi], tmp_path: Path
) -> None:
    if name == "debian":
        suite = suite_of_debian(tmp_path)
    elif name == "abi":
        suite = suite_of(mpi_called("mpich-abi"), ABI_PYTHON)
    else:
        suite = suite_of(mpi_called(name))
    alone = outcomes(suite, tmp_path / "alone", ranks, [], None)
    assert len(alone) == ranks
    lines = [line.partition(" ")[0] for rank in alone.values() for line in rank]
    print(f"{name}, {ranks} ranks, alone: " + ", ".join(f"{lines.count(each)} {each}" for each in sorted({*lines})))
    for way, given in WAYS.items():
        folder = tmp_path / way.replace(" ", "-")
        settings = {"PALMETTE_FAKE_HOSTS": HOSTS[ranks]}
        settings |= {key: f"{folder}-{value}" if value == "recording" else value for key, value in given.items()}
        with_palmette = outcomes(suite, folder, ranks, [], settings)
        for rank, expected in alone.items():
            assert with_palmette[rank] == expected, f"{way}, rank {rank}"
