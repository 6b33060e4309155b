"""ScaLAPACK's own tests, as Debian builds them: with palmette they come to what they come to alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from .conftest import LEVEL_BY_LEVEL, POLITE, Mpi, ProgramResult, _run, prepare
from .test_fortran import environment as debian_environment

pytestmark = [pytest.mark.mpi, pytest.mark.long]

FOLDER = Path("/usr/lib/x86_64-linux-gnu/scalapack")
# LU, least squares and Cholesky, QR of four kinds of numbers, eigenvalues, reductions to tridiagonal form.
PROGRAMS = ("xdlu", "xzls", "xdllt", "xcqr", "xdnep", "xztrd")
HOSTS = {"PALMETTE_FAKE_HOSTS": "0,1,0,1"}
WAYS: dict[str, dict[str, str]] = {"chosen": {}, "forced": LEVEL_BY_LEVEL}
LIMIT_S = 600.0


def findings(ran: ProgramResult) -> list[str]:
    """Return the lines with verdicts, without times; and the closing counts."""
    assert ran.status == 0, ran.text[-4000:]
    lines = [re.sub(r"\s+\d+\.\d+", "", line) for line in ran.out.splitlines() if re.search("PASS|FAIL|tests", line)]
    assert any("tests completed and passed" in line for line in lines), ran.text[-4000:]
    return lines


@pytest.fixture(params=["mpich", "openmpi", "impi"])
def launch(
    request: pytest.FixtureRequest, tmp_path: Path, mpi_called: Callable[[str], Mpi]
) -> Callable[[str, Mapping[str, str] | None], ProgramResult]:
    """Run one program on four ranks: launch("xdlu", settings), without palmette where `settings` is None.

    Debian's are linked with its MPICH and Open MPI; Intel MPI has MPICH's ABI under other names of files.
    """
    name = request.param
    kind = "openmpi" if name == "openmpi" else "mpich"
    folder = FOLDER / f"{kind}-tests"
    if not folder.is_dir():
        pytest.skip("ScaLAPACK's tests aren't installed: apt-get install scalapack-mpi-test")
    for data in folder.glob("*.dat"):
        # Four ranks on two processors: the first two of each list of sizes, blocks and grids take half a minute.
        text = re.sub(
            r"^(\d+)(\s+number of)", lambda m: f"{min(int(m[1]), 2)}{m[2]}", data.read_text(), flags=re.M | re.I
        )
        (tmp_path / data.name).write_text(text)
    environment = debian_environment(kind)
    if name == "impi":
        mpi = mpi_called("impi")
        libraries = mpi.installation.library_dir
        assert libraries is not None
        renamed = tmp_path / "lib"
        renamed.mkdir()
        (renamed / "libmpich.so.12").symlink_to(libraries / "libmpi.so.12")
        (renamed / "libmpichfort.so.12").symlink_to(libraries / "libmpifort.so.12")
        environment = {**mpi.environment(), "LD_LIBRARY_PATH": f"{renamed}:{libraries}"}
        launcher = str(mpi.installation.mpiexec)
    else:
        launcher = shutil.which(f"mpiexec.{name}") or ""
        environment |= POLITE["mpich"] if name == "mpich" else {}
    if not launcher:
        pytest.skip(f"no mpiexec.{name}: apt-get install mpich openmpi-bin")
    options = ["--oversubscribe"] if name == "openmpi" else []

    def run(program: str, settings: Mapping[str, str] | None) -> ProgramResult:
        words = [launcher, *options, "-n", "4", str(folder / program)]
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        given = dict(environment)
        if settings is not None:
            prepared = prepare(words, {**settings, "PALMETTE_REPORT": str(report), "PALMETTE_SERVE_AFTER": "0"}, given)
            words = list(prepared.command)
            given.update(prepared.environment)
        return _run(words, given, report, LIMIT_S, tmp_path)

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_finds_the_same(program: str, launch: Callable[[str, Mapping[str, str] | None], ProgramResult]) -> None:
    alone = findings(launch(program, None))
    for way, specs in WAYS.items():
        ran = launch(program, {**HOSTS, **specs})
        assert findings(ran) == alone, way
        served = sum(sum(counts.values()) for counts in ran.served().values())
        print(f"{program}, {way}: {len(alone)} lines, {served} calls served")
        assert served > 50
