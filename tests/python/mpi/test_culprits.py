"""Late ranks of sampled runs: findings name the line that was planted, whatever the machine does besides.

Work is measured in processor time, and no figure is compared with another machine's: names of lines alone are.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.analysis import Trace
from palmette.record.findings import Finding
from palmette.record.late import LateCause

from .conftest import Mpi

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).parent / "programs"
RATE_HZ = 500
"""Samples a second of processor time: the late rank of each run has some 200 where timers tick 250 times a second."""
LATE_MS = 40
"""Delay in each of 20 steps."""


def marked(source: Path, mark: str) -> list[int]:
    """Return the numbers of the lines with a comment."""
    lines = enumerate(source.read_text(encoding="utf-8").splitlines(), 1)
    return [number for number, line in lines if re.search(rf"(/\*|#) {mark}\b", line)]


def function_of(source: Path, line: int) -> range:
    """Return the lines of the function around one: from one that begins at the margin to the next."""
    lines = source.read_text(encoding="utf-8").splitlines()
    margin = [number for number, text in enumerate(lines, 1) if text[:1].strip() and text[0] not in "}"]
    first = max(number for number in margin if number <= line)
    return range(first, min((number for number in margin if number > line), default=len(lines) + 1))


def traced(mpi: Mpi, *words: object, ranks: int = 3) -> Trace:
    folder = mpi.directory / "calls"
    settings = {"PALMETTE_TRACE": str(folder), "PALMETTE_SAMPLE": str(RATE_HZ), "OPENBLAS_NUM_THREADS": "1"}
    ran = mpi.run(ranks, *words, settings=settings)  # type: ignore[arg-type]
    assert ran.status == 0, ran.text
    return Trace(folder)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Mpi], Path]:
    """Return the program, compiled."""
    cc = shutil.which("cc")
    if cc is None or shutil.which("addr2line") is None:
        pytest.skip("no C compiler, or no binutils")
    path = tmp_path_factory.mktemp("culprits") / "culprits"

    def compiled(mpi: Mpi) -> Path:
        if not path.exists():
            prefix = mpi.installation.prefix
            link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}"]
            words = [cc, "-O1", "-g", PROGRAMS / "culprits.c", "-o", path, *link, "-lmpi", "-lm", "-pthread"]
            subprocess.run([str(word) for word in words], check=True, capture_output=True)
        return path

    return compiled


def kernel_accounts() -> bool:
    """Return whether the kernel tells how long a thread has waited for a processor."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[0]) > 0
    except (OSError, ValueError, IndexError):
        return False


def late_of(trace: Trace) -> tuple[Finding, LateCause]:
    """Return the first finding of a late rank, and what samples say of it."""
    found = next(one for one in trace.findings if one.kind in ("late_rank", "taking_turns"))
    assert isinstance(found.late, LateCause), found.sentence
    return found, found.late


def long(*values: str) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize(
    "scenario",
    ["uneven", long("line"), long("faults"), long("recursion"), "comparator", long("inlined"), long("dispatch"),
     long("memory"), "kernel", "serial"],
)  # fmt: skip
def test_the_line_is_named_first(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path], scenario: str
) -> None:
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.c"
    found, late = late_of(traced(mpi, program(mpi), scenario, LATE_MS))
    assert (found.ranks, late.rank) == ((1,), 1)
    first = late.blamed[0]
    assert first.site.line in function_of(source, marked(source, scenario)[0]), found.sentence
    if scenario != "uneven":  # a loop of three lines
        assert first.site.line in marked(source, scenario), found.sentence
    assert f"in {first.site.name} at culprits.c:{first.site.line}" in found.sentence
    assert first.caller is not None
    if scenario != "comparator":  # the C library's own functions may have no names
        assert first.caller.function == {"dispatch": "dispatch", "inlined": "with_inlined"}.get(scenario, "step")
    if scenario == "serial":
        assert late.is_serial, found.sentence
    # All do as much of it in `uneven`, and a fifth of the late rank's: that isn't blamed.
    assert (first.other_s > 0) == (scenario == "uneven")


def test_two_culprits_of_two_phases_are_both_named(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path]
) -> None:
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.c"
    trace = traced(mpi, program(mpi), "phases", LATE_MS)
    lines = {
        one.site.line for found in trace.findings if isinstance(found.late, LateCause) for one in found.late.blamed
    }  # fmt: skip
    assert lines == {marked(source, "line")[0], marked(source, "recursion")[0]}


@pytest.mark.parametrize(("scenario", "function"), [("stall", "write_results"), long("disk", "write_checkpoint")])
def test_a_rank_that_sleeps_is_off_the_processor(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path], scenario: str, function: str
) -> None:
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.c"
    trace = traced(mpi, program(mpi), scenario, 4 * LATE_MS)
    found, late = late_of(trace)
    assert late.is_off and late.off_between is not None, found.sentence
    (slept,) = marked(source, scenario)
    before, after = late.off_between
    assert before.line < slept < after.line <= before.line + 4
    assert "off the processor" in found.sentence and f"in {function}()" in found.sentence
    if scenario == "stall" and kernel_accounts():
        rows = {row["rank"]: row for row in trace.document["by_rank"]}
        # However long it waits for a processor then.
        assert rows[1]["asleep_s"] == pytest.approx(20 * 4 * LATE_MS * 1e-3, rel=0.1), rows[1]
        assert rows[0]["asleep_s"] < 0.1 * rows[1]["asleep_s"], rows[0]


def test_a_rank_that_shares_its_processor_is_put_aside(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path]
) -> None:
    if not kernel_accounts():
        pytest.skip("this kernel doesn't tell how long threads wait for a processor (CONFIG_SCHED_INFO)")
    mpi = mpi_called("mpich")
    trace = traced(mpi, program(mpi), "shared", LATE_MS)
    shared = next(row for row in trace.document["by_rank"] if row["rank"] == 1)
    # The other thread has half of it, whatever else runs.
    assert shared["put_aside_s"] > 0.5 * 20 * LATE_MS * 1e-3, shared
    assert shared["asleep_s"] < 0.1 * shared["put_aside_s"], shared
    assert all(row["io_s"] is not None for row in trace.to_json()["by_rank"])


@pytest.mark.parametrize("scenario", ["thread", long("convoy")])
def test_what_another_thread_does_meanwhile_is_told(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path], scenario: str
) -> None:
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.c"
    found, late = late_of(traced(mpi, program(mpi), scenario, LATE_MS))
    assert late.is_off and late.beside is not None, found.sentence
    assert late.beside.site.line == marked(source, scenario)[0]


@pytest.mark.parametrize(
    "scenario", [long("loop"), "callback", long("extension"), long("ufunc"), long("generator"), "property"]
)
def test_functions_of_python_are_named(mpi_called: Callable[[str], Mpi], scenario: str) -> None:
    pytest.importorskip("mpi4py")
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.py"
    found, late = late_of(traced(mpi, Path(sys.executable), source, scenario, LATE_MS))
    assert late.rank == 1
    assert late.blamed[0].site.line in function_of(source, marked(source, scenario)[0]), found.sentence


def test_the_report_says_it_in_80_columns_and_as_json(
    mpi_called: Callable[[str], Mpi], program: Callable[[Mpi], Path], palmette: Callable[..., Any]
) -> None:
    mpi, source = mpi_called("mpich"), PROGRAMS / "culprits.c"
    trace = traced(mpi, program(mpi), "line", LATE_MS)
    line = marked(source, "line")[0]
    for option in ((), ("--all",)):
        shown = palmette("report", trace.job.folder, *option)
        assert shown.status == 0, shown.err
        assert all(len(row) <= 80 for row in shown.out.splitlines() if "next: " not in row), shown.out
        assert f"legacy_filter() culprits.c:{line}" in shown.out and "off the CPU" in shown.out
    document = json.loads(palmette("report", trace.job.folder, "--json").out)
    late = next(one["late"] for one in document["findings"] if one["late"])
    assert (late["rank"], late["blamed"][0]["function"], late["blamed"][0]["line"]) == (1, "legacy_filter", line)
    rows = {row["rank"]: row for row in document["by_rank"]}
    assert rows[1]["computing_s"] > rows[0]["computing_s"] and rows[0]["waiting_s"] > rows[1]["waiting_s"]
    heaviest = document["sampled"]["lines"][0]
    assert (heaviest["function"], heaviest["most_rank"], heaviest["least_s"]) == ("legacy_filter", 1, 0)
    tree = document["sampled"]["tree"]
    depths = {row["function"]: row["depth"] for row in tree}
    assert depths["main"] < depths["step"] < depths["legacy_filter"]
    top = palmette("top", trace.job.folder, "--calls")
    assert top.status == 0 and "calling context" in top.out, top.err
    assert all(len(row) <= 80 for row in top.out.splitlines()), top.out
    # In the formats that know stacks and nothing else.
    folded = mpi.directory / "calls.folded"
    assert palmette("convert", trace.job.folder, "--to", "folded", "-o", folded).status == 0
    stacks = folded.read_text(encoding="utf-8")
    loop = r"loop at culprits.c:\d+"
    within = rf"(?:{loop};)"
    line_of_filter = rf"{loop} \(culprits.c:{line}\)"
    assert re.search(rf"^main;{within}*step;{within}*legacy_filter;{within}{line_of_filter}", stacks, re.MULTILINE)
    assert re.search(rf"^main(?:;{loop})* \(culprits.c:\d+\);MPI_Allreduce \d+$", stacks, re.MULTILINE)
    speedscope = mpi.directory / "calls.json"
    assert palmette("convert", trace.job.folder, "--to", "speedscope", "-o", speedscope).status == 0
    profiles = json.loads(speedscope.read_text(encoding="utf-8"))["profiles"]
    computing = [one for one in profiles if "computing" in one["name"]]
    assert [one["name"].partition(",")[0] for one in computing] == ["rank 0", "rank 1", "rank 2"]
    assert all(sum(one["weights"]) == one["endValue"] for one in computing)
