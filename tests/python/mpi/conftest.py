"""Running the programs of tests/mpi on the MPIs that are installed, with and without the preload library."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from palmette import _core, settings
from palmette.explain.decision import NONE
from palmette.mpi.abi import LIBRARIES, Abi
from palmette.mpi.install import Installation, MpiNotFoundError, find
from palmette.run import prepare

from .specs import COLLECTIVE_OF

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("PALMETTE_TEST_BUILD", ROOT / "build" / "release"))
"""Folder of the build under test, which may be the sanitizers' (docs/method/testing.md)."""
PROGRAMS = BUILD / "tests" / "mpi"
PRELOADS = BUILD / "lib" if "PALMETTE_TEST_BUILD" in os.environ else LIBRARIES
FIRST_PRELOAD = os.environ.get("PALMETTE_TEST_FIRST_PRELOAD", "")
"""What must stand first in LD_PRELOAD: a sanitizer's own library."""
RECORD = bool(os.environ.get("PALMETTE_TEST_RECORD", ""))
"""Every program is recorded besides, by --trace."""
SOAK = int(os.environ.get("PALMETTE_TEST_SOAK", "1"))
"""Multiplies the number of cases: 20 runs for an hour or so."""

TIMEOUT_S = 120.0 * max(1, SOAK)

_POSIX = ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE")
# Sixteen ranks on two cores: an MPI that polls without giving way takes minutes (see palmette_lab.lab.mpi_settings).
POLITE: dict[str, dict[str, str]] = {
    "mpich": {
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        **{f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir" for name in _POSIX},
    },
    "impi": {
        "I_MPI_COLL_INTRANODE": "pt2pt",
        "I_MPI_WAIT_MODE": "1",
        "I_MPI_PIN": "0",
        "I_MPI_FABRICS": "shm",
        "FI_PROVIDER": "tcp",
    },
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"},
}


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended, what it said, and palmette's report of it (None: it wrote none)."""

    status: int
    out: str
    err: str
    report: dict[str, Any] | None

    @property
    def text(self) -> str:
        return f"status {self.status}\n{self.out}\n{self.err}"

    def closing_lines(self) -> list[tuple[int, int]]:
        """Return (cases, wrong) of every closing line; an MPI may put the ends of two ranks' lines together."""
        return [(int(m[1]), int(m[2])) for m in re.finditer(r"(\d+) cases, (\d+) wrong", self.out)]

    def assert_right(self, lines: int = 1) -> None:
        """Fail unless the program ended well and checked something."""
        closing = self.closing_lines()
        assert self.status == 0, self.text
        assert len(closing) == lines, self.text
        assert all(cases > 0 and wrong == 0 for cases, wrong in closing), self.text

    def served(self) -> dict[str, dict[str, int]]:
        """Return function -> algorithm -> number of calls that palmette served, but for those without bytes."""
        return self._calls(lambda algorithm: algorithm != NONE)

    def empty(self) -> dict[str, int]:
        """Return function -> number of calls without bytes that palmette served."""
        return {function: counts[NONE] for function, counts in self._calls(lambda algorithm: algorithm == NONE).items()}

    def _calls(self, counted: Callable[[str], bool]) -> dict[str, dict[str, int]]:
        assert self.report is not None, f"no report was written\n{self.text}"
        result: dict[str, dict[str, int]] = {}
        for row in self.report["calls"]:
            if not counted(row["algorithm"]):
                continue
            counts = result.setdefault(row["function"], {})
            counts[row["algorithm"]] = counts.get(row["algorithm"], 0) + row["calls"]
        return result

    def fallbacks(self) -> dict[str, set[str]]:
        """Return function -> reasons for which calls were left to the MPI."""
        assert self.report is not None, f"no report was written\n{self.text}"
        result: dict[str, set[str]] = {}
        for row in self.report["fallbacks"]:
            result.setdefault(row["function"], set()).add(row["reason"])
        return result


@dataclass(frozen=True)
class Mpi:
    """An installed MPI, and the ABI for which the programs that run on it were built."""

    installation: Installation
    abi: Abi
    directory: Path
    counter: list[int] = field(default_factory=lambda: [0])

    @property
    def name(self) -> str:
        return self.installation.name

    def environment(self) -> dict[str, str]:
        """Return the environment of the launcher, and with it of local ranks.

        All calls are served, also the first, and none is the MPI's to compare it.
        """
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PALMETTE_", "OMPI_", "I_MPI_"))
        }
        environment.update(self.installation.environment(environment))
        environment.update(POLITE[self.name])
        environment["PALMETTE_SERVE_AFTER"] = "0"
        environment["PALMETTE_COMPARE"] = "0"
        environment["PALMETTE_SITE"] = "0"
        first = [FIRST_PRELOAD] if FIRST_PRELOAD else []
        if self.name == "openmpi":
            first.append(str(ROOT / "python" / "palmette" / "bin" / "libpalmette_yield_sleep.so"))
        if first:
            environment["LD_PRELOAD"] = ":".join([*first, *filter(None, environment.get("LD_PRELOAD", "").split(":"))])
        return environment

    def program(self, name: str) -> Path:
        path = PROGRAMS / f"{name}.{self.abi}"
        if not path.is_file():
            pytest.fail(f"{path} isn't built: run `make build`")
        return path

    def launch(self, ranks: int) -> list[str]:
        """Return the beginning of a command line."""
        options: list[str] = []
        if self.name == "openmpi":
            options = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
            options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [str(self.installation.mpiexec), *options, "-n", str(ranks)]

    def run(
        self,
        ranks: int,
        program: str | Path,
        *arguments: object,
        settings: Mapping[str, str] | None = None,
        preload: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> ProgramResult:
        """Run a test program (by name) or another one (by path) under palmette with these settings."""
        path = self.program(program) if isinstance(program, str) else program
        words = [*self.launch(ranks), str(path), *map(str, arguments)]
        environment = self.environment()
        self.counter[0] += 1
        report = self.directory / f"report-{self.counter[0]}.json"
        if preload:
            variables = {"PALMETTE_REPORT": str(report), **(settings or {})}
            if RECORD and "PALMETTE_PROFILE" not in variables:
                variables.setdefault("PALMETTE_TRACE", str(self.directory / f"trace-{self.counter[0]}"))
            prepared = prepare(words, variables, environment, libraries=PRELOADS)
            assert self.abi in prepared.evidence.abis, "the wrong preload library was picked"
            words = list(prepared.command)
            environment.update(prepared.environment)
        else:
            environment.update(settings or {})
        return _run(words, environment, report, timeout_s)


def _run(
    words: Sequence[str], environment: Mapping[str, str], report: Path, timeout_s: float, folder: Path | None = None
) -> ProgramResult:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"no end after {timeout_s:g} s: {' '.join(words)}\n{late.stdout!r}\n{late.stderr!r}")
    text = report.read_text(encoding="utf-8") if report.is_file() else None
    return ProgramResult(done.returncode, done.stdout, done.stderr, json.loads(text) if text is not None else None)


VARIANTS: dict[str, tuple[str, Abi]] = {
    "mpich": ("mpich", "mpich"),
    "mpich-abi": ("mpich", "abi"),
    "openmpi": ("openmpi", "ompi"),
    "impi": ("impi", "mpich"),
    "impi-abi": ("impi", "abi"),
}


def _installed(variant: str, directory: Path) -> Mpi:
    name, abi = VARIANTS[variant]
    try:
        return Mpi(find(name), abi, directory)
    except MpiNotFoundError as error:
        pytest.skip(str(error))


LOGIC = (
    "check", "check_lines", "comparison", "control", "left_to_mpi", "matrix", "reorder", "run", "site", "told_once",
    "tool_variables",
)  # fmt: skip
"""Modules about what is decided, counted and told: the same code under every MPI. Bytes are compared on all."""


MPIS_OF_TEST = {
    "test_compose.py::test_every_composition_is_right_on_1_to_24_ranks": ("openmpi",),
    "test_surroundings.py::test_three_thousand_communicators_made_and_freed_leave_ids_for_more": ("openmpi", "impi"),
    "test_surroundings.py::test_communicators_that_stay_leave_room_for_the_users": ("openmpi", "impi"),
    "test_reductions.py::test_a_setting_gives_the_same_bits_for_any_placement": ("mpich",),
}
"""Tests that take long, and the MPIs where they do in `make test`."""


UNEVEN_MODULES = ("compose", "large_counts", "nonblocking", "record", "sparse", "surroundings")
"""Modules about what an MPI may lack: a test skips on it, and has to run elsewhere."""


BY_TURNS = (("mpich", "openmpi"), ("mpich-abi", "impi"))
"""A test without cases runs on one of these pairs, tests by turns; cases besides the MPI run on one of the four each,
by turns. Of uneven modules tests without cases run on all four, and a case on a pair; logic's on one MPI, of the first
two."""


def _wanted(module: str, turn: int, *, alone: bool) -> tuple[str, ...]:
    """Return the MPIs of `make test` for a case, the `turn`th; `alone`: its test has no cases besides the MPI."""
    pair = BY_TURNS[turn % 2]
    if module in LOGIC:
        return (BY_TURNS[0][turn % 2],)
    if module in UNEVEN_MODULES:
        return (*BY_TURNS[0], *BY_TURNS[1]) if alone else pair
    return pair if alone else (pair[turn // 2 % 2],)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave cases on further MPIs to `make test-long`."""
    cases: dict[str, dict[str, dict[str, pytest.Item]]] = {}  # by test, by case, by MPI
    for item in items:
        called = getattr(item, "callspec", None)
        if item.path.parent != Path(__file__).parent or called is None or item.path.stem == "test_arguments":
            continue
        mpi = str(called.params.get("mpi", called.params.get("variant", "")))
        if mpi not in VARIANTS:
            continue
        test = item.nodeid.split("[")[0].rpartition("/")[2]
        case = f"-{called.id}-".replace(f"-{mpi}-", "-", 1).strip("-")
        cases.setdefault(test, {}).setdefault(case, {})[mpi] = item
    for test, of_the_test in cases.items():
        module = test.partition(".")[0].removeprefix("test_")
        # Whatever else is asked for, a test begins with the same MPI.
        for turn, (case, by_mpi) in enumerate(of_the_test.items(), zlib.crc32(test.encode())):
            wanted = MPIS_OF_TEST.get(test) or [mpi for mpi in _wanted(module, turn, alone=not case) if mpi in by_mpi]
            for mpi in by_mpi.keys() - (wanted or [list(by_mpi)[turn % len(by_mpi)]]):
                by_mpi[mpi].add_marker("long")


@pytest.fixture(params=["mpich", "mpich-abi", "openmpi", "impi"])
def mpi(request: pytest.FixtureRequest, tmp_path: Path) -> Mpi:
    """Each MPI with its own ABI, and MPICH with the standard one."""
    return _installed(request.param, tmp_path)


@pytest.fixture
def mpi_called(tmp_path: Path) -> Callable[[str], Mpi]:
    """Return an MPI by the name of a variant; skips where it isn't installed."""
    return lambda variant: _installed(variant, tmp_path)


@dataclass(frozen=True)
class Cluster:
    """A cluster to pretend: its file and its hosts."""

    path: Path
    hosts: list[str]

    def settings(self, ranks: int, order: str = "scattered") -> dict[str, str]:
        """Return the settings that put `ranks` on the hosts: in blocks, or scattered and unevenly."""
        if order == "block":
            hosts = [rank * len(self.hosts) // ranks for rank in range(ranks)]
        else:
            hosts = [(3 * rank + rank // 4) % len(self.hosts) for rank in range(ranks)]
        names = ",".join(self.hosts[host] for host in hosts)
        return {"PALMETTE_TOPOLOGY": str(self.path), "PALMETTE_FAKE_HOSTS": names}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Two leaves with three and two hosts of two sockets, costs of all levels known."""
    machine = _core.Machine.synthetic("2leaf@50Mbit/s:3+2node@100Mbit/s:2socket:4core").to_json()
    for level, latency_s in zip(machine["levels"], (4e-5, 3e-5, 2e-6, 1e-6), strict=True):
        level |= {"latency_s": latency_s, "overhead_s": latency_s / 4}
    path = tmp_path / "topology.json"
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return Cluster(path, _core.Machine.from_file(path).hosts)


def algorithms_of(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the algorithms that settings force, by function."""
    return settings.forced(chosen.get(settings.FORCE, ""))


def forced(over: Mapping[str, str] | None = None, **specs: str) -> dict[str, str]:
    """Return settings that force algorithms, forced(gather="linear"), beside those of the settings `over`."""
    before = dict(over or {})
    return {**before, **settings.force(**{**algorithms_of(before), **specs})}


def pretended(ranks: int, hosts: str) -> dict[str, str]:
    """Return the settings that put ranks on hosts: pretended(5, "001") repeats to 0,0,1,0,0; nothing: this host."""
    if not hosts:
        return {}
    return {"PALMETTE_FAKE_HOSTS": ",".join(hosts[rank % len(hosts)] for rank in range(ranks))}


FUNCTIONS = tuple(COLLECTIVE_OF)
"""All functions that are served."""
LEVEL_BY_LEVEL = forced(
    gather="by_topology",
    gatherv="linear",
    scatter="by_topology",
    scatterv="linear",
    allgather="leaders:leaders=2",
    allgatherv="leaders",
    bcast="by_topology",
    alltoall="node_aware",
    alltoallv="node_aware",
    alltoallw="linear",
    barrier="by_topology",
    reduce="by_topology",
    allreduce="leaders",
    reduce_scatter="leaders",
    reduce_scatter_block="leaders",
    scan="recursive_doubling",
    exscan="linear",
)
"""An algorithm for each function that no communicator of more than one rank refuses."""
