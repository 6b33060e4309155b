"""Fixtures for all Python tests."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from palmette.settings_files import read_files
from palmette_lab.lab import Lab, LabError
from palmette_lab.lab.namespaces import check_can_build
from programs import MAINS, Result, calling

ROOT = Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts MPI jobs, networks or services: tools/run_tests.py runs all else side by side."""
    for item in items:
        if any(item.get_closest_marker(name) for name in ("mpi", "root")):
            item.add_marker("jobs")


def pytest_configure() -> None:
    """Let the commands that tests interrupt be interrupted: background jobs of a shell inherit that SIGINT is
    ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def bench_program() -> Callable[[str], ModuleType]:
    """A program of studies/, by its name, as a module."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, ROOT / "studies" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's PALMETTE_ variables and files don't change what a test sees; the output is 80 columns wide."""
    for name in list(os.environ):
        if name.startswith("PALMETTE_"):
            monkeypatch.delenv(name)
    if read_files().files:
        monkeypatch.setenv("PALMETTE_SITE", "0")
    monkeypatch.delenv("COLUMNS", raising=False)


SHORT = tempfile.gettempdir()
"""Where temporary folders of jobs stand, asked once, before a test changes TMPDIR: sockets' paths must be short."""


@pytest.fixture(autouse=True)
def _folder_for_temporary_files_of_jobs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give each test that starts jobs its own TMPDIR: a killed mpirun of Open MPI leaves `ompi.PID` there, and one that
    gets the same number later refuses to start."""
    if request.node.get_closest_marker("jobs") is None:
        yield
        return
    folder = tempfile.mkdtemp(prefix="pj", dir=SHORT)
    monkeypatch.setenv("TMPDIR", folder)
    yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root() -> Path:
    """The project's root folder."""
    return ROOT


@pytest.fixture
def fabrics() -> Path:
    """The folder of real fabric files, which stand beside the project and are no part of it."""
    folder = ROOT.parent / "shared" / "fabrics"
    if not folder.is_dir():
        pytest.skip("no ../shared/fabrics here: the real fabric files are no part of the project")
    return folder


@pytest.fixture
def make_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Lab]]:
    """Build a lab that goes when the test ends: `make_lab("2leaf:2node", name)`. Skips where none can be built."""
    monkeypatch.setenv("PALMETTE_LAB_STATE", str(tmp_path / "labs"))
    with ExitStack() as stack:

        def make(spec: str, name: str) -> Lab:
            try:
                check_can_build()
                made = Lab.up(spec, name=name)
            except LabError as error:
                pytest.skip(str(error))
            return stack.enter_context(made)

        yield make


@pytest.fixture
def palmette(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Call the command line in this process: `palmette("show", path)`."""
    return calling(MAINS["palmette"], capsys)


@pytest.fixture
def palmette_lab(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Call palmette-lab in this process: `palmette_lab("up", "2node")`."""
    return calling(MAINS["palmette-lab"], capsys)


@pytest.fixture
def palmette_aggregator(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Call palmette-aggregator in this process: `palmette_aggregator("token", "--new-key", path)`."""
    return calling(MAINS["palmette-aggregator"], capsys)
