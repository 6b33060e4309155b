"""mpi4py's own suite, to its end: with palmette each test ends as it does alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from .conftest import LEVEL_BY_LEVEL, Mpi

pytestmark = [pytest.mark.mpi, pytest.mark.long]

RUNNER = Path(__file__).with_name("programs") / "suite_rank.py"
VERSION = "4.1.2"
# Files, windows and spawned processes have no collectives that palmette serves; the others ask about the package.
LEFT_OUT = ("spawn", "dynproc", "test_io", "test_file", "rma", "test_win", "msgspec", "mpiabi", "test_doc")
LIMIT_S = 1200.0
HOSTS = {2: "0,1", 3: "0,1,0"}
WAYS: dict[str, dict[str, str]] = {"chosen": {}, "forced": LEVEL_BY_LEVEL}


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the main program of mpi4py's tests, from its source distribution."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed")
    folder = tmp_path_factory.mktemp("mpi4py")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "mpi4py"]
    done = subprocess.run([*words, "--dest", folder, f"mpi4py=={VERSION}"], capture_output=True, text=True, check=False)
    files = list(folder.glob("*.tar.gz"))
    if not files:
        pytest.skip(f"mpi4py {VERSION} can't be had: {done.stderr.strip().splitlines()[-1:]}")
    with tarfile.open(files[0]) as packed:
        packed.extractall(folder, filter="data")
    return folder / f"mpi4py-{VERSION}" / "test" / "main.py"


def outcomes(mpi: Mpi, ranks: int, suite: Path, settings: Mapping[str, str] | None) -> dict[str, list[str]]:
    """Return rank -> lines `OUTCOME TEST`. `settings` None: without palmette."""
    folder = mpi.directory / f"outcomes-{mpi.counter[0]}"
    folder.mkdir()
    left_out = [word for pattern in LEFT_OUT for word in ("-e", pattern)]
    ran = mpi.run(
        ranks, Path(sys.executable), RUNNER, folder, suite, "--no-builddir", *left_out,
        settings=settings, preload=settings is not None, timeout_s=LIMIT_S,
    )  # fmt: skip
    assert "Ran " in ran.err, ran.text[-4000:]
    if settings is not None:
        served = {name: sum(counts.values()) for name, counts in ran.served().items()}
        print(f"{mpi.name}: {sum(served.values())} calls of {len(served)} functions served")
        assert sum(served.values()) > 1000
    return {file.name: sorted(file.read_text(encoding="utf-8").splitlines()) for file in folder.iterdir()}


@pytest.mark.parametrize("ranks", HOSTS)
@pytest.mark.parametrize("name", ["mpich", "openmpi", "impi"])
def test_each_test_ends_as_it_does_alone(
    name: str, ranks: int, suite: Path, mpi_called: Callable[[str], Mpi], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPI4PY_TEST_SPAWN", "0")
    mpi = mpi_called(name)
    alone = outcomes(mpi, ranks, suite, None)
    assert len(alone) == ranks
    lines = [line.partition(" ")[0] for rank in alone.values() for line in rank]
    print(f"{name}, {ranks} ranks, alone: " + ", ".join(f"{lines.count(each)} {each}" for each in sorted({*lines})))
    for way, specs in WAYS.items():
        with_palmette = outcomes(mpi, ranks, suite, {"PALMETTE_FAKE_HOSTS": HOSTS[ranks], **specs})
        for rank, expected in alone.items():
            assert with_palmette[rank] == expected, f"{way}, rank {rank}"
