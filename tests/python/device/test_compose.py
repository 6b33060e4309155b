"""Compositions on device memory, by every way: results are NumPy's, and nothing is left behind.

All of it runs on the fakes of tests/fakes, whose device memory the host can't touch and whose work is late.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpi.conftest import ROOT, Mpi, ProgramResult, mpi_called  # noqa: F401  (a fixture)

from . import fake

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py isn't installed"),
]

PROGRAM = Path(__file__).with_name("programs") / "composed.py"
MPIS = ["mpich", "openmpi"]


def run(
    mpi: Mpi, ranks: int, *arguments: str, path: str = "auto", **driver: object
) -> tuple[ProgramResult, list[fake.Log]]:
    """Run the program on the fakes, and check what they saw of palmette; `driver`: settings of the fake libcuda."""
    mpi.counter[0] += 1
    log = mpi.directory / f"log-{mpi.counter[0]}"
    # The MPI's library is found there, too.
    base = {name: value for name, value in mpi.environment().items() if name == "LD_LIBRARY_PATH"}
    variables = fake.environment(base, log=log, **{"devices": 2, "seed": ranks, **driver})
    variables |= {"PALMETTE_DEVICE": path, "PYTHONPATH": str(ROOT / "python")}
    words = [*(f"{name}={value}" for name, value in variables.items()), sys.executable, PROGRAM, *arguments]
    ran = mpi.run(ranks, Path("/usr/bin/env"), *words, preload=False)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 1, ran.text
    seen = fake.logs(log)
    for saw in seen:
        assert saw.live("libpalmette") == [], ran.text
        assert saw.contexts("libpalmette") == [], ran.text
        assert saw.late_errors == [], ran.text
    return ran, seen


FACTORINGS = (
    "method=direct",
    "hierarchy=2:2 method=ring,tree.2 stripes=2 pipeline=3 landings=2",
    "hierarchy=2:2 method=direct/1,ring@copy",
    "hierarchy=2:2 method=tree.2,direct@ipc pipeline=2",
    "method=ring@ipc",
    "method=direct@nccl",
)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        pytest.param(name, kinds, marks=[pytest.mark.long] * (column % len(MPIS) != row))
        for row, name in enumerate(MPIS)
        for column, kinds in enumerate(("d", "dh", "xhdm", "p"))
    ],
)
def test_results_are_right_wherever_each_ranks_buffers_lie(
    mpi_called: Callable[[str], Mpi],  # noqa: F811
    name: str,
    kinds: str,
) -> None:
    _, seen = run(mpi_called(name), 4, kinds, *FACTORINGS, lazy=kinds == "d")
    assert len(seen) == 4 - 2 * (kinds == "dh") - (kinds == "xhdm")
    if kinds == "d":
        assert all(saw.calls("cuIpcOpenMemHandle_v2", "libpalmette") > 0 for saw in seen)
    for saw in seen:
        opened = saw.calls("cuIpcOpenMemHandle_v2", "libpalmette")
        assert saw.calls("cuIpcCloseMemHandle", "libpalmette") == opened


@pytest.mark.parametrize("refusal", [{"no_ipc": True}, {"no_ipc_open": True}, {"path": "staging"}, {"no_pin": True}])
def test_what_devices_cant_do_among_each_other_goes_through_the_host(
    mpi_called: Callable[[str], Mpi],  # noqa: F811
    refusal: dict[str, object],
) -> None:
    path = str(refusal.pop("path", "auto"))
    _, seen = run(mpi_called("mpich"), 3, "d", "method=ring@ipc", "method=direct@ipc", path=path, **refusal)
    assert len(seen) == 3


def test_arrays_that_cant_be_bound_are_refused_in_one_line(
    mpi_called: Callable[[str], Mpi],  # noqa: F811
) -> None:
    run(mpi_called("mpich"), 2, "d", "--errors")


@pytest.mark.parametrize("name", MPIS)
def test_floats_of_16_bits_are_summed_where_the_mpi_has_them(
    mpi_called: Callable[[str], Mpi],  # noqa: F811
    name: str,
) -> None:
    if name == "openmpi":
        pytest.skip("Open MPI's float of 16 bits has no name in its header")
    run(mpi_called(name), 3, "d", "--half")


@pytest.mark.parametrize("call", ["cuMemcpyAsync:3", "cuMemcpyAsync:*", "cuEventRecord:2", "cuEventQuery:1"])
def test_a_device_that_fails_is_an_error_of_its_rank_and_hangs_none(
    mpi_called: Callable[[str], Mpi],  # noqa: F811
    call: str,
) -> None:
    run(mpi_called("mpich"), 3, "dh", "--failing", fail=call)
