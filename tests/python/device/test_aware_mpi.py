"""Where the MPI takes device memory itself, calls that are left to it get the program's own buffers, and new kinds of
calls on device memory are left to it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpi.conftest import ROOT, Mpi, ProgramResult

from . import fake

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py isn't installed"),
]

PROGRAM = Path(__file__).with_name("programs") / "aware.py"
REASON = "the MPI takes device memory itself"
LAYER = ROOT / "tests" / "mpi" / "support" / "takes_devices.c"


def run(mpi: Mpi, layer: bool = True, **settings: str) -> ProgramResult:
    """Run the program over an MPI with the layer, on the fakes."""
    library = mpi.directory / "libtakes_devices.so"
    # mpi4py calls functions with large counts where the MPI has them.
    large = [] if mpi.name == "openmpi" else ["-D_C=_c"]
    include = mpi.installation.prefix / "include"
    words = ["cc", "-shared", "-fPIC", "-O1", *large, f"-I{include}", LAYER, "-o", library]
    linked = "libmpi.so.40" if mpi.name == "openmpi" else "libmpi.so.12"
    subprocess.run([*words, f"-L{mpi.installation.library_dir}", f"-l:{linked}"], check=True)
    log = mpi.directory / f"log-{mpi.counter[0]}"
    base = fake.environment({}, log=log, devices=1)
    variables = {name: value for name, value in base.items() if name.startswith("PALMETTE_")}
    words = [fake.search_path(mpi.environment())]
    script = mpi.directory / "below.sh"
    below = f':{library}"' if layer else '"'
    script.write_text(f'#!/bin/sh\nexport LD_PRELOAD="$LD_PRELOAD{below}\nexec "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    settings = {"PALMETTE_COMPARE": "0", **variables, **settings}
    ran = mpi.run(3, Path("/usr/bin/env"), *words, script, sys.executable, PROGRAM, settings=settings, timeout_s=100)
    ran.assert_right()
    for saw in fake.logs(log):
        assert saw.live("libpalmette") == [], ran.text
        assert saw.late_errors == [], ran.text
    return ran


def rows(ran: ProgramResult) -> dict[str, dict[str, int]]:
    """Return the report's rows of calls on device memory."""
    assert ran.report is not None
    return {row["function"]: row for row in ran.report["device"]["calls"]}


def made_below(ran: ProgramResult) -> int:
    """Return how many calls on device memory the layer has made on all ranks."""
    return sum(int(count) for count in re.findall(r"calls with device memory: (\d+)", ran.err))


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_it_gets_the_programs_own_buffers(mpi_called: Callable[[str], Mpi], name: str) -> None:
    ran = run(mpi_called(name))
    for function in ("allreduce", "bcast"):
        row = rows(ran)[function]
        assert row["by_the_mpi"] > 0, ran.report
        assert row["failures"] == 0
    # Lengths that were first seen on the host are palmette's, and staged.
    assert rows(ran)["allreduce"]["by_the_mpi"] < rows(ran)["allreduce"]["calls"]
    assert rows(ran)["allreduce"]["bytes_read"] > 0
    assert made_below(ran) == sum(row["by_the_mpi"] for row in rows(ran).values())
    assert ran.report is not None
    left = {row["function"]: row["rank_calls"] for row in ran.report["fallbacks"] if row["reason"] == REASON}
    # New kinds of blocking calls; nonblocking ones are the MPI's where no costs are known.
    assert left["allreduce"] > 24


@pytest.mark.parametrize("settings", [{"PALMETTE_DEVICE": "auto,no-mpi"}, {}], ids=["said", "asked"])
def test_nothing_is_left_to_one_that_does_not(mpi_called: Callable[[str], Mpi], settings: dict[str, str]) -> None:
    ran = run(mpi_called("mpich"), layer=bool(settings), **settings)
    assert made_below(ran) == 0
    assert all(row["by_the_mpi"] == 0 for row in rows(ran).values())


def test_a_way_of_palmettes_that_is_asked_for_is_taken(mpi_called: Callable[[str], Mpi]) -> None:
    for settings in ({"PALMETTE_DEVICE": "staging"}, {"PALMETTE_FORCE": "allreduce=shared"}):
        ran = run(mpi_called("mpich"), **settings)
        assert ran.report is not None
        left = [row["function"] for row in ran.report["fallbacks"] if row["reason"] == REASON]
        assert "allreduce" not in left
        assert ("bcast" in left) == ("PALMETTE_FORCE" in settings)
