"""64-bit Arm: the preload libraries of build/arm64 in jobs whose ranks are emulated (`make arm64`).

The launcher is this machine's; each rank is a qemu-aarch64 with the MPI for arm64 in it. The emulator orders accesses
to memory as this machine does; single copies, which it lacks, are brought by tests/emulated.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from . import test_record
from .conftest import (
    FUNCTIONS,
    LEVEL_BY_LEVEL,
    ROOT,
    TIMEOUT_S,
    Cluster,
    Mpi,
    ProgramResult,
    _installed,
    _run,
    forced,
    pretended,
)

pytestmark = [pytest.mark.mpi, pytest.mark.long]

BUILD = ROOT / "build" / "arm64"
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
# The launcher's and the rank's PMIx would exchange addresses of shared memory.
SETTINGS = {"mpich": {}, "openmpi": {"PMIX_MCA_gds": "hash"}}


class EmulatedMpi(Mpi):
    """An MPI for arm64, started by this machine's."""

    def program(self, name: str) -> Path:
        return BUILD / "tests" / "mpi" / f"{name}.{self.abi}"

    def run(
        self,
        ranks: int,
        program: str | Path,
        *arguments: object,
        settings: Mapping[str, str] | None = None,
        preload: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> ProgramResult:
        variables = dict(settings or {})
        recorded = {"PALMETTE_PROFILE", "PALMETTE_TRACE"} & variables.keys()
        libraries = [BUILD / "lib" / f"libpalmette_record_{self.abi}.so"] if recorded else []
        libraries += [BUILD / "lib" / f"libpalmette_{self.abi}.so"] if preload else []
        prefix = ROOT / ".mpi" / "arm64" / self.name
        rank = {
            "LD_LIBRARY_PATH": str(prefix / "lib"),
            "LD_PRELOAD": ":".join(map(str, [BUILD / "tests" / "libpalmette_emulated.so", *libraries])),
            "OPAL_PREFIX": str(prefix),
        }
        words = [*self.launch(ranks), *EMULATOR]
        for name, value in rank.items():
            words += ["-E", f"{name}={value}"]
        words += [str(self.program(program) if isinstance(program, str) else program), *map(str, arguments)]
        self.counter[0] += 1
        report = self.directory / f"report-{self.counter[0]}.json"
        variables |= {"PALMETTE_REPORT": str(report)} if preload else {}
        return _run(words, {**self.environment(), **SETTINGS[self.name], **variables}, report, timeout_s)


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, tmp_path: Path) -> Mpi:
    this = _installed(request.param, tmp_path)
    if not shutil.which(EMULATOR[0]):
        pytest.skip("qemu-aarch64 is missing: make arm64 installs it where it can")
    if not (BUILD / "lib" / f"libpalmette_{this.abi}.so").is_file():
        pytest.skip(f"{BUILD} isn't built: make arm64")
    return EmulatedMpi(this.installation, this.abi, tmp_path)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_results_are_those_of_the_mpi(mpi: Mpi, cluster: Cluster, ranks: int) -> None:
    ran = mpi.run(
        ranks, "random_arguments", "--seed", ranks, "--cases", 150,
        settings={**LEVEL_BY_LEVEL, **cluster.settings(ranks)},
    )  # fmt: skip
    ran.assert_right()
    for function in FUNCTIONS:
        assert sum(ran.served().get(function, {}).values()) > 0, f"{function} was never served: {ran.report}"


@pytest.mark.parametrize("hosts", ["", "0011", "01"])
def test_what_the_table_chooses_is_right(mpi: Mpi, hosts: str) -> None:
    ran = mpi.run(4, "random_arguments", "--seed", 7, "--cases", 100, settings=pretended(4, hosts))
    ran.assert_right()
    assert set(ran.served()) | set(ran.fallbacks()) == set(FUNCTIONS)


def test_the_memory_of_a_node_is_shared(mpi: Mpi) -> None:
    by_node = forced(bcast="shared", allreduce="shared", alltoall="shared")
    ran = mpi.run(4, "random_arguments", "--seed", 3, "--cases", 150, settings=by_node)
    ran.assert_right()
    assert {"bcast", "allreduce", "alltoall"} <= ran.served().keys()


def test_the_programs_are_right_without_palmette(mpi: Mpi) -> None:
    mpi.run(4, "random_arguments", "--cases", 100, preload=False).assert_right()


test_recorded_calls_are_those_of_the_program = test_record.test_calls_and_bytes_are_those_that_the_program_counts


def test_sections_begin_at_pages_of_any_size(mpi: Mpi) -> None:
    folder = test_record.folder_of(mpi)
    ran = mpi.run(2, "calls", settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    (file,) = folder.glob("*.palmette")
    assert file.stat().st_size % 65536 == 0
