"""Samples in other tools' formats, by their own readers; contexts merged by any number of threads and processes; runs
compared.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.analysis import Trace
from palmette.record import merging
from palmette.record.reading import read_job

from . import readers
from .conftest import Mpi, _installed

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).parent / "programs"
RANKS = 2


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Rank 1 spends 40 ms a step in legacy_filter(), called from step()."""
    cc = shutil.which("cc")
    if cc is None or shutil.which("addr2line") is None:
        pytest.skip("no C compiler, or no binutils")
    folder = tmp_path_factory.mktemp("sampled")
    mpi: Mpi = _installed("mpich", folder)
    prefix = mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lmpi", "-lm"]
    words = [cc, "-O1", "-g", PROGRAMS / "culprits.c", "-o", folder / "culprits", *link, "-pthread"]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    settings = {"PALMETTE_TRACE": str(folder / "calls"), "PALMETTE_SAMPLE": "250"}
    ran = mpi.run(RANKS, folder / "culprits", "line", 40, settings=settings)
    assert ran.status == 0, ran.text
    return Trace(folder / "calls")


@pytest.fixture
def convert(palmette: Callable[..., Any], trace: Trace, tmp_path: Path) -> Callable[[str], Path]:
    def call(name: str) -> Path:
        result = palmette("convert", trace.job.folder, "--to", name, "-o", tmp_path / name)
        assert result.status == 0, result.err
        return tmp_path / name

    return call


@pytest.fixture(scope="module")
def planted_s(trace: Trace) -> float:
    """Seconds of rank 1 in legacy_filter() and in what it calls."""
    contexts = trace.contexts
    assert contexts is not None
    (seconds,) = (whole for site, whole, _ in contexts.functions() if site.function == "legacy_filter")
    assert seconds == pytest.approx(0.8, rel=0.3), "20 steps of 40 ms"
    return seconds


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Give the fields of a protobuf message: number and value, an integer or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            at += size
            yield key >> 3, message[at - size : at]


def numbers(packed: bytes) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def test_pprof_has_calls_and_samples_in_one_tree(convert: Callable[[str], Path], planted_s: float) -> None:
    parts: dict[int, list[Any]] = defaultdict(list)
    for number, value in fields(gzip.decompress(convert("pprof").read_bytes())):
        parts[number].append(value)
    strings = [one.decode() for one in parts[6]]
    assert strings[0] == ""
    functions = {one[1]: (strings[one[2]], strings[one[4]]) for one in (dict(fields(part)) for part in parts[5])}
    places = {}
    for part in parts[4]:
        location = dict(fields(part))
        line = dict(fields(location[4]))
        places[location[1]] = (*functions[line[1]], line.get(2, 0))
    ranks = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for part in parts[2]:
        sample = dict(fields(part))
        stack = [places[one] for one in numbers(sample[1])]
        count, _, time_ns = numbers(sample[2])
        label = dict(fields(sample[3]))
        assert strings[label[1]] == "rank"
        assert stack[-1][0] != "_start"
        if any(name == "legacy_filter" for name, _, _ in stack):
            ranks[label.get(3, 0)] += time_ns * 1e-9
            functions = [name for name, _, _ in stack[::-1] if not name.startswith("loop at ")]
            assert functions[:2] == ["main", "step"] and len(functions) < len(stack), "and loops are told"
        calls[stack[0][0]] += count
    assert dict(ranks) == {1: pytest.approx(planted_s, abs=1e-6)}
    assert calls["MPI_Allreduce"] == 20 * RANKS


@pytest.mark.long  # newer ones compile it first
def test_pprof_is_read_by_go(convert: Callable[[str], Path], planted_s: float) -> None:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).is_file():
        pytest.skip("go isn't installed")
    words = [go, "tool", "pprof", "-sample_index=time", "-unit=ms", "-top", "-cum", "-nodefraction=0", convert("pprof")]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, check=False)
    if "no such tool" in done.stderr:
        pytest.skip("this go has no pprof")
    assert done.returncode == 0, done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.endswith("legacy_filter"))
    assert float(row[3].removesuffix("ms")) == pytest.approx(planted_s * 1e3, abs=0.1)


def test_caliper_has_them(convert: Callable[[str], Path], planted_s: float) -> None:
    reader = readers.package("caliperreader", "caliper-reader")
    records, _ = reader.read_caliper_contents(str(convert("cali")))
    found = [one for one in records if any("legacy_filter" in name for name in one.get("function", ()))]
    assert {one["mpi.rank"] for one in found} == {"1"}
    assert sum(float(one["sum#time.duration"]) for one in found) == pytest.approx(planted_s, abs=1e-6)
    paths = {tuple(name for name in one["function"] if not name.startswith("loop at ")) for one in found}
    assert any(path[:2] == ("main", "step") for path in paths), paths


def test_perfetto_has_each_sample_on_its_thread(convert: Callable[[str], Path], trace: Trace) -> None:
    query = (
        "select thread.tid as tid, count(*) as samples from perf_sample join thread using (utid) "
        "join stack_profile_callsite c on callsite_id = c.id join stack_profile_frame f on c.frame_id = f.id "
        "where f.name like 'legacy_filter (%' or f.name like 'pow%' or f.name like '%pow%' group by tid"
    )
    rows, whole = readers.trace_processor(convert("perfetto"), query, "select count(*) as samples from perf_sample")
    assert [row["tid"] for row in rows] == [2], "rank 1's main thread"
    taken = [process.recorded.sampling.samples for process in trace.job.processes]
    assert 0 < rows[0]["samples"] <= whole[0]["samples"] <= sum(taken)


def test_otf2_has_the_lines_of_calls(convert: Callable[[str], Path]) -> None:
    otf2 = readers.package("otf2")
    with otf2.reader.open(str(convert("otf2") / "traces.otf2")) as archive:
        entered = [event for _, event in archive.events if isinstance(event, otf2.events.Enter)]
        places = [place for event in entered for place in (event.attributes or {}).values()]
    assert places
    assert all(place.file.endswith((".c", ".cpp")) and place.line_number > 0 for place in places), places[:3]


def test_otf2_has_the_processor_time_of_samples(convert: Callable[[str], Path], planted_s: float) -> None:
    otf2 = readers.package("otf2")
    seconds: dict[str, float] = defaultdict(float)
    with otf2.reader.open(str(convert("otf2") / "traces.otf2")) as archive:
        for location, event in archive.events:
            if not isinstance(event, otf2.events.Metric):
                continue
            assert event.metric.members[0].name == "processor time"
            ((attribute, context),) = event.attributes.items()
            assert attribute.name == "stack"
            names = []
            while context is not None:
                names.append(context.region.name)
                context = context.parent
            assert names[-1] in ("main", "(callers not known)"), names
            if "legacy_filter" in names:
                seconds[location.group.name] += event.values[0] * 1e-9
    assert list(seconds) == ["rank 1"]
    assert seconds["rank 1"] == pytest.approx(planted_s, rel=0.1), "but for samples that lie in calls by the clock"


def test_any_number_of_threads_merges_the_same_tree(trace: Trace) -> None:
    files = [str(process.file) for process in trace.job.processes[:1]]
    columns = ("parent", "frame", "sum_context", "sum_process", "sum_samples", "sum_cpu_s")
    one = _core.read_contexts(files, threads=1)
    for threads in (2, 3, 5):
        other = _core.read_contexts(files, threads=threads)
        assert other.ranks == one.ranks
        for name in columns:
            assert np.array_equal(getattr(other.contexts, name), getattr(one.contexts, name)), name
        names = [
            [(frame.module, frame.offset, frame.function) for frame in read.contexts.frames] for read in (one, other)
        ]
        assert names[0] == names[1]


def merged_file(mpi: Mpi, ranks: int, folder: Path) -> bytes:
    """Merge a recording by an MPI program; return what it has written, and take that away."""
    ran = mpi.run(ranks, Path(sys.executable), "-m", "palmette.record.merging", folder, preload=False)
    assert ran.status == 0 and ran.out.count(merging.MERGED) == 1, ran.text
    written = (folder / merging.MERGED).read_bytes()
    (folder / merging.MERGED).unlink()
    assert not [one for one in folder.iterdir() if merging.MERGED in one.name]
    return written


def test_any_number_of_processes_merges_the_same_bytes(
    trace: Trace, tmp_path: Path, mpi_called: Callable[[str], Mpi], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mpi4py")
    mpi, folder = mpi_called("mpich"), tmp_path / "calls"
    shutil.copytree(trace.job.folder, folder)
    job = read_job(folder)
    plain = _core.read_contexts(merging.sampled_files(job))
    one = merged_file(mpi, 1, folder)
    for ranks in (2, 3, 5):  # there are two processes in the recording
        assert merged_file(mpi, ranks, folder) == one, ranks
    assert one[merging.HEAD_BYTES :] == plain.packed()

    reads: list[object] = []

    def read(files: list[str]) -> _core.ReadContexts:
        reads.append(files)
        return _core.read_contexts(files)

    monkeypatch.setattr(merging, "_core", SimpleNamespace(read_contexts=read, Error=_core.Error))
    damaged = (one[:-1], one[:100] + b"?" + one[101:], b"", one.replace(b"samples 1", b"samples 0"))
    for data, is_taken in ((one, True), *((data, False) for data in damaged)):
        (folder / merging.MERGED).write_bytes(data)
        found = merging.read_contexts(job)
        assert found is not None and found.packed() == plain.packed()
        assert (reads.pop() == []) == is_taken
    (folder / merging.MERGED).write_bytes(one)
    job.processes.pop()  # as if the job had gone on since it was merged
    assert merging.read_contexts(job) is not None and reads.pop() != []


def test_merging_says_in_a_line_what_it_cannot(tmp_path: Path, mpi_called: Callable[[str], Mpi]) -> None:
    pytest.importorskip("mpi4py")
    mpi = mpi_called("mpich")
    ran = mpi.run(3, Path(sys.executable), "-m", "palmette.record.merging", tmp_path, preload=False)
    told = [line for line in ran.err.splitlines() if line.startswith("palmette: ")]
    assert ran.status != 0 and len(told) == 1 and "holds no recording" in told[0], ran.text


def test_threads_have_their_own_tree_and_formulas_are_metrics(trace: Trace, planted_s: float) -> None:
    threads = trace.threads(1)
    assert threads and not any(thread.in_mpi[list(dict(thread.sums_of(0)))].any() for thread in threads.values())
    sums = [whole for one in threads.values() for site, whole, _ in one.functions() if site.function == "legacy_filter"]
    assert sum(sums) == pytest.approx(planted_s, rel=0.05)
    contexts = trace.contexts
    assert contexts is not None
    node = next(at for at, site in enumerate(contexts.site_of_node) if site.function == "legacy_filter")
    # One of two ranks has all of it.
    assert contexts.derived("most_s / mean_s")[node] == pytest.approx(RANKS)
    assert contexts.derived("100 * most_s / cpu_s")[node] == pytest.approx(100)


def test_a_page_has_the_tree_each_rank_and_the_source(
    trace: Trace, palmette: Callable[..., Any], tmp_path: Path
) -> None:
    made = palmette("report", trace.job.folder, trace.job.folder, "-o", tmp_path / "both.html")
    assert made.status == 0 and str(tmp_path / "both.html") in made.out, made.err
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    found = json.loads(page.split('id="document">')[1].split("</script>")[0])
    assert found["viewed"]["columns"] == [f"rank {rank}" for rank in range(RANKS)]
    tree = found["sampled"]["tree"]
    assert any(row["kind"] == "loop" for row in tree)
    # The same recording twice.
    assert all(row["before_s"] == pytest.approx(row["cpu_s"]) for row in tree) and tree[0]["index"] == 0
    text = [line for one in found["viewed"]["sources"] for line in one["lines"] if one["file"].endswith("culprits.c")]
    assert any("/* line */" in line for line in text)
    assert not any(one["is_newer"] for one in found["viewed"]["sources"])


def test_two_recordings_are_compared(trace: Trace, palmette: Callable[..., Any]) -> None:
    folder = trace.job.folder
    same = palmette("report", folder, folder)
    assert same.status == 0 and "No function or call changed" in same.out, same.err
    assert json.loads(palmette("report", folder, folder, "--json").out)["changes"]
    third = palmette("report", folder, folder, folder)
    assert third.status == 2 and len(third.err.splitlines()) == 1
    refused = palmette("report", folder, folder, "--all")
    assert refused.status == 2 and len(refused.err.splitlines()) == 1


def test_what_changed_is_named(
    trace: Trace, palmette: Callable[..., Any], tmp_path: Path, mpi_called: Callable[[str], Mpi]
) -> None:
    mpi = mpi_called("mpich")
    settings = {"PALMETTE_TRACE": str(tmp_path / "later"), "PALMETTE_SAMPLE": "250"}
    ran = mpi.run(RANKS, trace.job.folder.parent / "culprits", "line", 4, settings=settings)
    assert ran.status == 0, ran.text
    shown = palmette("report", trace.job.folder, tmp_path / "later")
    assert shown.status == 0, shown.err
    row = next(line for line in shown.out.splitlines() if line.endswith("legacy_filter() in culprits.c"))
    assert row.split()[4].startswith("-"), "it takes less than before"
    assert all(len(line) <= 80 for line in shown.out.splitlines())
