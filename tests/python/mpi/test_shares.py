"""Programs whose shares of processor time are known, by function and line of C and of Python: samples say the same.

Shares are of processor time that the program measures itself, so that other load changes nothing but the number of
samples.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.analysis import Trace
from palmette.record.contexts import Contexts

from .conftest import Mpi

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).parent / "programs"
MARK = re.compile(r"(?:/\*|#) (\w+) (\d+)(?: \*/)?$")


def planted(source: Path) -> dict[int, tuple[str, float]]:
    """Return function and share by line."""
    lines = enumerate(source.read_text(encoding="utf-8").splitlines(), 1)
    return {number: (found[1], int(found[2]) / 100) for number, text in lines if (found := MARK.search(text))}


def sampled(mpi: Mpi, *words: object) -> Contexts:
    folder = mpi.directory / "shares"
    settings = {"PALMETTE_TRACE": str(folder), "PALMETTE_SAMPLE": "250"}
    ran = mpi.run(1, *words, settings=settings, timeout_s=1800)  # type: ignore[arg-type]
    assert ran.status == 0, ran.text
    contexts = Trace(folder).contexts
    assert contexts is not None
    return contexts


def compare(found: dict[Any, float], expected: dict[Any, float], within: float) -> None:
    whole = sum(found.get(key, 0.0) for key in expected)
    told = {key: found.get(key, 0.0) / whole for key in expected}
    print({key: (round(told[key], 4), expected[key]) for key in expected})
    for key, share in expected.items():
        assert told[key] == pytest.approx(share, abs=within), told


def by_function(marks: dict[int, tuple[str, float]]) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    for function, share in marks.values():
        shares[function] += share
    return shares


@pytest.mark.parametrize(("seconds", "within"), [(1.5, 0.12), pytest.param(60, 0.02, marks=pytest.mark.long)])
def test_functions_and_lines_of_c(mpi_called: Callable[[str], Mpi], seconds: float, within: float) -> None:
    cc = shutil.which("cc")
    if cc is None or shutil.which("addr2line") is None:
        pytest.skip("no C compiler, or no binutils")
    mpi, marks = mpi_called("mpich"), planted(PROGRAMS / "shares.c")
    prefix = mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lmpi"]
    program = mpi.directory / "shares.bin"
    subprocess.run([cc, "-O1", "-g", PROGRAMS / "shares.c", "-o", program, *link], check=True, capture_output=True)
    contexts = sampled(mpi, program, seconds)
    compare({site.function: whole for site, whole, _ in contexts.functions()}, by_function(marks), within)
    lines: dict[int, float] = defaultdict(float)
    for line in contexts.lines():
        if line.site.function in by_function(marks):
            lines[line.site.line] += line.cpu_s
    compare(lines, {number: share for number, (_, share) in marks.items()}, within)


@pytest.mark.parametrize(("seconds", "within"), [(1.5, 0.12), pytest.param(60, 0.02, marks=pytest.mark.long)])
def test_functions_of_python(mpi_called: Callable[[str], Mpi], seconds: float, within: float) -> None:
    pytest.importorskip("mpi4py")
    mpi, marks = mpi_called("mpich"), planted(PROGRAMS / "shares.py")
    contexts = sampled(mpi, Path(sys.executable), PROGRAMS / "shares.py", seconds)
    functions = {site.function: whole for site, whole, _ in contexts.functions() if site.kind == "python"}
    compare(functions, by_function(marks), within)
    # The line that calls: what work() takes isn't its own.
    called: dict[int, float] = defaultdict(float)
    for site, seconds_in in contexts.sums_of(0):
        chain = [contexts.sites[one] for one in contexts.callers(site)]
        called[next((one.line for one in chain if one.function in by_function(marks)), 0)] += seconds_in
    compare(called, {number: share for number, (_, share) in marks.items()}, within)
