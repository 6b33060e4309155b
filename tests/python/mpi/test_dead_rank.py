"""Ranks that die under an MPI that goes on without them (ULFM)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest

from .conftest import PRELOADS, Mpi, forced, pretended

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("how", "settings"),
    [
        ("blocking", {**forced(allreduce="recursive_doubling"), **pretended(4, "0011")}),
        ("blocking", {**forced(allreduce="leaders"), **pretended(4, "0011")}),
        ("blocking", forced(allreduce="shared")),
        ("nonblocking", {**forced(allreduce="rabenseifner"), **pretended(4, "0123")}),
    ],
    ids=["messages", "leaders", "shared", "nonblocking"],
)
def test_the_others_get_the_mpis_error_class_and_go_on(
    mpi_called: Callable[[str], Mpi], how: str, settings: dict[str, str]
) -> None:
    mpi = mpi_called("openmpi")
    environment = mpi.environment()
    naps = environment.pop("LD_PRELOAD", "")
    told = {**settings, "PALMETTE_VERBOSE": "2", "LD_PRELOAD": f"{PRELOADS / 'libpalmette_ompi.so'}:{naps}"}
    launcher, *options = mpi.launch(4)
    words = [launcher, "--with-ft", "ulfm", *options]
    for name, value in told.items():
        words += ["-x", f"{name}={value}"]
    words += [str(mpi.program("dead_rank")), how]
    try:
        ran = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        out, err = ran.stdout, ran.stderr
    except subprocess.TimeoutExpired as late:
        # Open MPI's launcher now and then waits for the dead; what the ranks say counts.
        out, err = (part.decode() if isinstance(part, bytes) else part or "" for part in (late.stdout, late.stderr))
    if "ulfm" in err and "not" in err and not out:
        pytest.skip("this Open MPI has no ULFM")
    lines = [(int(m[1]), int(m[2])) for m in re.finditer(r"^(\d+) cases, (\d+) wrong$", out, re.MULTILINE)]
    assert len(lines) == 3, f"{out}\n{err}"
    assert all(cases == 22 and wrong == 0 for cases, wrong in lines), f"{out}\n{err}"
    assert err.count("palmette: allreduce of") >= 10, err
