"""Regions that programs say themselves: every one is counted, its time is the program's own, and mistakes are told."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.analysis import Trace
from palmette.mpi.abi import LIBRARIES, SONAMES
from palmette.record.reading import read_job
from palmette.record.regions import Region, regions_of
from palmette.run import prepare

from .conftest import PRELOADS, ROOT, Mpi, ProgramResult
from .test_fortran import compiled, environment

pytestmark = pytest.mark.mpi
PROGRAMS = Path(__file__).with_name("programs")
CLOCKS = 1e-3
"""Relative difference of the program's and the recorder's clocks."""


def built(mpi: Mpi, source: str, folder: Path, *flags: str) -> Path:
    """Return a program that was compiled with palmette.h, and linked with the library beside it."""
    language = ["c++", "-std=c++20"] if source.endswith(".cpp") else ["cc", "-std=gnu11"]
    prefix = mpi.installation.prefix
    if shutil.which(language[0]) is None or not (prefix / "include" / "mpi.h").is_file():
        pytest.skip(f"no compiler, or {mpi.name} has no headers here")
    assert mpi.installation.library_dir is not None
    program = folder / source.replace(".", "-")
    words = [
        *language, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-isystem", str(prefix / "include"),
        f"-I{LIBRARIES.parent / 'include'}", *(["-DMPI_ABI"] if mpi.abi == "abi" else []), *flags,
        "-Wl,--no-as-needed", str(PROGRAMS / source), "-o", str(program), str(LIBRARIES / f"libpalmette_{mpi.abi}.so"),
        f"-Wl,-rpath,{LIBRARIES}", str(mpi.installation.library_dir / SONAMES[mpi.abi]), "-lpthread",
        "-Wl,--allow-shlib-undefined",
    ]  # fmt: skip
    subprocess.run(words, check=True, timeout=100)
    return program


class RegionRun:
    """A program's run, and the regions that were found in it."""

    def __init__(self, ran: ProgramResult, folder: Path) -> None:
        self.ran, self.folder = ran, folder

    @property
    def regions(self) -> list[Region]:
        return regions_of(read_job(self.folder))

    def of(self, *names: str) -> Region:
        """Return a region by the names of those around it and its own."""
        found, at = self.regions, 0
        for name in names:
            at = next(n for n, one in enumerate(found) if n and (one.parent, one.name) == (at, name))
        return found[at]

    def notes(self) -> str:
        return "\n".join(Trace(self.folder).document["notes"])


Record = Callable[..., RegionRun]


@pytest.fixture
def record(mpi: Mpi, tmp_path: Path) -> Record:
    """Run the program of regions.c under the recorder."""

    def run(*arguments: object, ranks: int = 1, setting: str = "PALMETTE_PROFILE", **others: Any) -> RegionRun:
        folder = tmp_path / "recording"
        program = built(mpi, "regions.c", tmp_path)
        ran = mpi.run(ranks, program, *arguments, settings={setting: str(folder), **others})
        return RegionRun(ran, folder)

    return run


def numbers(pattern: str, text: str) -> Sequence[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(one) for one in found.groups()]


def test_ten_million_lose_nothing(record: Record) -> None:
    recorded = record("count", 10_000_000)
    assert recorded.ran.status == 0, recorded.ran.text
    count, least_s, most_s = numbers(r"pairs (\d+) in ([\d.]+) to ([\d.]+) s", recorded.ran.out)
    outer, inner = recorded.of("outer"), recorded.of("outer", "inner")
    assert (outer.calls, inner.calls, inner.inner) == (1, count, 0)
    assert least_s * (1 - CLOCKS) <= outer.inclusive_s <= most_s * (1 + CLOCKS)
    assert outer.exclusive_s == pytest.approx(outer.inclusive_s - inner.inclusive_s)


def test_times_are_those_of_the_programs_own_clock(record: Record) -> None:
    recorded = record("nested", ranks=3)
    assert recorded.ran.status == 0, recorded.ran.text
    step, solve = recorded.of("step"), recorded.of("step", "solve")
    assert (step.calls, solve.calls) == (9, 18)
    told = re.findall(r"rank (\d) step ([\d.]+) ([\d.]+) solve ([\d.]+) ([\d.]+)", recorded.ran.out)
    assert len(told) == 3
    for rank, *bounds in told:
        for at, one in ((0, step), (2, solve)):
            least_s, most_s = (float(bound) for bound in bounds[at : at + 2])
            assert least_s * (1 - CLOCKS) <= one.by_rank_s[int(rank)] <= most_s * (1 + CLOCKS)
    assert step.exclusive_s == pytest.approx(step.inclusive_s - solve.inclusive_s)
    # The barrier behind them lies in none.
    sums = {one.function: one.seconds for one in Trace(recorded.folder).job.processes[0].recorded.aggregates}
    assert {"MPI_Allreduce", "MPI_Barrier"} <= set(sums)
    reduced = sum(
        one.seconds for process in read_job(recorded.folder).processes for one in process.recorded.aggregates
        if one.function == "MPI_Allreduce"
    )  # fmt: skip
    assert solve.mpi_s == step.mpi_s == pytest.approx(reduced)


def test_calls_and_samples_lie_in_their_regions_in_one_tree(record: Record) -> None:
    recorded = record("nested", ranks=2, setting="PALMETTE_TRACE", PALMETTE_SAMPLE="1000")
    assert recorded.ran.status == 0, recorded.ran.text
    trace = Trace(recorded.folder)
    process = trace.job.processes[0].recorded
    paths = {one.path for one in process.aggregates if one.function == "MPI_Allreduce"}
    assert [[frame.module for frame in process.paths[path][-2:]] for path in paths] == [["region:solve", "region:step"]]
    assert not any(
        frame.module.startswith("region:") for one in process.aggregates if one.function == "MPI_Barrier"
        for frame in process.paths[one.path]
    )  # fmt: skip
    tree = trace.document["sampled"]["tree"]
    assert [row["function"] for row in tree[:2]] == ["[step]", "[solve]"] or tree[1]["function"] == "main", tree[:4]
    inside: list[str] = []
    spun_s = {}
    for row in tree:
        inside[row["depth"] :] = [row["function"]]
        if row["function"] == "spin":
            spun_s[tuple(name for name in inside if name.startswith("["))] = row["cpu_s"]
    # Spinning is told apart by where it is; how long it has a processor, the machine says.
    assert spun_s[("[step]",)] > 0
    assert spun_s["[step]", "[solve]"] > 0


def test_one_that_calls_itself_counts_as_often_as_it_begins(record: Record) -> None:
    recorded = record("recursive", 10)
    (calls,) = numbers(r"recursive (\d+)", recorded.ran.out)
    found = recorded.of("recursive")
    assert found.calls == calls
    assert [one.name for one in recorded.regions[1:]] == ["recursive"]
    # 1,024 leaves of a millisecond, once each.
    assert 1.024 <= found.inclusive_s <= Trace(recorded.folder).document["time_s"]


def test_those_too_deep_for_a_place_are_counted_where_they_are(record: Record) -> None:
    recorded = record("deep")
    assert (recorded.ran.status, recorded.ran.out) == (0, ""), recorded.ran.text
    found = recorded.regions
    assert sum(one.calls + one.inner for one in found) == 70_001
    assert recorded.of("after").calls == 1
    assert "69,744 regions were too deep" in recorded.notes()


def test_threads_that_come_and_go_lose_nothing(record: Record) -> None:
    recorded = record("threads", 5000)
    assert recorded.ran.status == 0, recorded.ran.text
    assert recorded.of("of a thread").calls == 80
    assert recorded.of("of a thread", "inner").calls == 80 * 5000
    assert recorded.of("of the first", "inner").calls == 20 * 5000


def test_what_is_wrong_is_refused_and_told(record: Record) -> None:
    recorded = record("mistakes", ranks=2)
    said = dict(line.split(": ") for line in recorded.ran.out.splitlines())
    assert said == {
        "no name": "refused", "empty": "refused", "not begun": "refused", "outer": "taken",
        "another thread's": "refused",
    }, recorded.ran.text  # fmt: skip
    notes = recorded.notes()
    assert "region never: 2 ends found no beginning in their thread (rank 0 and 1 more)" in notes
    assert "region of the first: 2 ends found no beginning" in notes
    assert "region forgotten: of 2, 2 had no end of their own" in notes
    assert "region left in a thread: of 2, 2 had no end of their own" in notes
    assert "region open at the end hadn't ended when rank 0 and 1 more did" in notes
    assert recorded.of("a").calls == recorded.of("b").calls == 2
    assert all(one.kind != "unbegun" or one.name in ("never", "of the first") for one in recorded.regions)


def test_handlers_of_signals_disturb_nothing(record: Record) -> None:
    recorded = record("interrupted")
    assert recorded.ran.status == 0, recorded.ran.text
    (outer,) = numbers(r"outer (\d+)", recorded.ran.out)
    found = [one for one in recorded.regions if one.name == "outer"]
    assert sum(one.calls for one in found) == outer
    assert sum(one.calls for one in recorded.regions if one.name == "inner") == 10 * outer
    assert sum(one.calls for one in recorded.regions if one.name == "in a handler") > 0


def test_they_are_counted_before_init_and_after_finalize(record: Record) -> None:
    recorded = record("around")
    assert recorded.ran.status == 0, recorded.ran.text
    assert (recorded.of("before").calls, recorded.of("after").calls) == (1, 1)
    assert recorded.of("before").inclusive_s >= 0.01 * (1 - CLOCKS)
    whole = recorded.of("whole")
    assert (whole.calls, whole.open_in) == (1, [])
    assert whole.inclusive_s > 0
    assert "hadn't ended" not in recorded.notes()


def test_while_recording_is_off_none_is_counted(record: Record) -> None:
    recorded = record("switched")
    assert recorded.ran.status == 0, recorded.ran.text
    assert recorded.of("outer").calls == 2
    assert recorded.of("outer", "inner").calls == 7
    assert {one.name for one in recorded.regions} == {"", "outer", "inner"}


def test_of_a_job_that_was_killed_they_remain(record: Record) -> None:
    recorded = record("killed", 1000, ranks=2)
    assert recorded.ran.status != 0
    assert recorded.of("outer", "middle", "inner").calls == 2000
    outer = recorded.of("outer")
    assert (outer.calls, sorted(outer.open_in)) == (2, ["rank 0", "rank 1"])
    assert outer.inclusive_s > 2 * 0.25
    assert "region outer hadn't ended" in recorded.notes()


def test_without_a_recorder_they_do_nothing(mpi: Mpi, tmp_path: Path) -> None:
    program = built(mpi, "regions.c", tmp_path)
    for preload in (False, True):
        ran = mpi.run(1, program, "count", 1000, preload=preload)
        assert ran.status == 0, ran.text
    assert "pairs 1000" in ran.out


def test_the_guard_of_cpp_ends_with_its_block(mpi: Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    ran = mpi.run(1, built(mpi, "regions.cpp", tmp_path), settings={"PALMETTE_PROFILE": str(folder)})
    assert (ran.status, ran.out) == (0, "right\n"), ran.text
    recorded = RegionRun(ran, folder)
    counts = {one.name: (one.calls, one.unclosed, one.parent) for one in recorded.regions[1:]}
    assert counts == {"whole": (5, 0, 0), "part": (5, 0, 1), "mended": (3, 0, 1)}


def test_instrumented_functions_are_counted_without_linking(mpi: Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    program = built(mpi, "instrumented.c", tmp_path, "-finstrument-functions", "-O0")
    ran = mpi.run(2, program, 1000, settings={"PALMETTE_TRACE": str(folder)})
    assert ran.status == 0, ran.text
    leaf, branch = numbers(r"leaf (\d+) branch (\d+)", ran.out)
    found = RegionRun(ran, folder)
    calls: dict[str, int] = {}
    for one in found.regions[1:]:
        calls[one.name] = calls.get(one.name, 0) + one.calls
        assert one.kind == "function"
        assert one.file.endswith("instrumented.c")
    assert calls == {"main": 2, "branch": 2 * branch, "leaf": 2 * leaf, "catches": 2, "jumps": 2}
    assert found.of("main", "branch", "leaf").calls == 2 * 4000
    # The jump's function ended with its caller.
    assert "2 calls of instrumented functions were left by a jump" in found.notes()
    assert "hadn't ended" not in found.notes()


def test_python_has_them_as_contexts_and_decorators(mpi: Mpi, tmp_path: Path) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py isn't installed: pip install mpi4py")
    if mpi.abi == "abi":
        pytest.skip("mpi4py's wheels are for the ABIs of MPICH and Open MPI")
    folder, program = tmp_path / "recording", PROGRAMS / "regions.py"
    words = (f"PYTHONPATH={ROOT / 'python'}", sys.executable, program, 50)
    ran = mpi.run(2, Path("/usr/bin/env"), *words, settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    recorded = RegionRun(ran, folder)
    assert [recorded.of("outer", name).calls for name in ("inner", "fails")] == [100, 100]
    assert recorded.of("__main__.assemble").calls == 2 * 5
    reduced = recorded.of("outer").mpi_s
    assert reduced is not None
    assert reduced > 0


def test_a_name_of_python_has_characters() -> None:
    from palmette import region

    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="at least one character"):
            region(name)


@pytest.mark.parametrize("debian", ["mpich", "openmpi"])
def test_fortran_has_them(debian: str, tmp_path: Path) -> None:
    folder, library = tmp_path / "recording", PRELOADS / f"libpalmette_{'mpich' if debian == 'mpich' else 'ompi'}.so"
    linking = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{PRELOADS}", "-Wl,--allow-shlib-undefined"]
    module = ROOT / "src" / "palmette" / "interpose" / "palmette.f90"
    program = compiled(debian, "regions", tmp_path, f"-J{tmp_path}", *linking, str(module))
    words = [f"mpiexec.{debian}", *(["--oversubscribe"] if debian == "openmpi" else []), "-n", "2", str(program)]
    prepared = prepare(words, {"PALMETTE_PROFILE": str(folder)}, environment(debian), libraries=PRELOADS)
    variables = {**environment(debian), **prepared.environment}
    done = subprocess.run(prepared.command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["right"] * 2), done.stdout + done.stderr
    counts = {one.name: one.calls for one in regions_of(read_job(folder))}
    assert counts == {"": 0, "outer": 2, "inner 0": 6, "inner 1": 8, "never begun": 2}


def test_a_page_and_the_report_show_them(record: Record, palmette: Callable[..., Any], tmp_path: Path) -> None:
    recorded = record("nested", ranks=2)
    page = tmp_path / "page.html"
    told = palmette("report", recorded.folder, "-o", page)
    assert told.status == 0, told.err
    assert re.search(r"^step +6 .*\n  solve +12 ", told.out, re.MULTILINE), told.out
    assert all(len(line) <= 80 for line in told.out.splitlines() if str(tmp_path) not in line)
    assert "Regions of the program" in page.read_text(encoding="utf-8")
    found = json.loads(palmette("report", recorded.folder, "--json").out)["regions"]
    assert [(one["depth"], one["name"], one["calls"]) for one in found] == [(0, "step", 6), (1, "solve", 12)]
    assert found[0]["exclusive_s"] == pytest.approx(found[0]["inclusive_s"] - found[1]["inclusive_s"])
    assert _core.Recording.read(str(next(recorded.folder.glob("*.palmette")))).processes[0].region_cost_s > 0
