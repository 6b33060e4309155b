"""Samples between calls: where each thread spends its CPU time, whatever it does meanwhile.

Long because what is sampled stands in it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palmette import _core
from palmette.record.reading import RecordError, read_job
from palmette.record.sums import sums_of
from palmette.run.prepared import prepare

from .conftest import PRELOADS, ROOT, Mpi

pytestmark = pytest.mark.mpi
PROGRAMS = ROOT / "tests" / "python" / "mpi" / "programs"
SOURCE = PROGRAMS / "sampled.c"
HERTZ = 1000
"""More than the kernel's own ticks: a timer counts those that come together, and its events keep the rate."""
BY_EVENTS = f"{HERTZ}:events"
PLUGIN = """#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noinline)) double NAME(double s) {
    volatile double x = 1;
    const double end = now() + s;
    while (now() < end)
        for (int i = 0; i < 20000; ++i) x = x * 1.0000001 + ADDED;
    return x;
}
double plugged_in(double s) {
    const double x = NAME(s);
    __asm__ volatile("" ::: "memory");
    return x;
}
"""

LAZY = """#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
__attribute__((noinline)) double of_resolver(double s) {
    volatile double x = 1;
    const double end = now() + s;
    while (now() < end)
        for (int i = 0; i < 20000; ++i) x = x * 1.0000001;
    return x;
}
static double resolved(double s) { return s; }
static void *resolve(void) { return of_resolver(0.5) > 0 ? (void *)resolved : 0; }
double lazily(double s) __attribute__((ifunc("resolve")));
"""
"""Whose function is chosen by code that the loader's resolver calls, at the first call."""
CALLS_LAZILY = """double lazily(double);
double plugged_in(double s) {
    const double x = lazily(s);
    __asm__ volatile("" ::: "memory");
    return x;
}
"""

Stacks = dict[tuple[str, ...], float]
"""CPU seconds by names from the innermost frame outwards."""


def run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


class SampledProgram:
    """The program, built for an MPI, and what was found in its samples."""

    def __init__(self, mpi: Mpi, cc: str, folder: Path, *flags: str) -> None:
        self.mpi, self.folder, self.recording = mpi, folder, folder / "recording"
        prefix = mpi.installation.prefix
        link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}"]
        self.program = folder / "sampled"
        run(cc, "-O2", "-g", "-fno-optimize-sibling-calls", SOURCE, "-o", self.program, *link, "-ldl", *flags)

    def settings(self, rate: str) -> dict[str, str]:
        return {"PALMETTE_PROFILE": str(self.recording), "PALMETTE_SAMPLE": rate}

    def run(self, *arguments: object, rate: str = f"{HERTZ}", ranks: int = 1) -> str:
        ran = self.mpi.run(ranks, self.program, *arguments, settings=self.settings(rate))
        assert ran.status == 0, ran.text
        return ran.out

    def process(self) -> _core.RecordedProcess:
        return read_job(self.recording).processes[0].recorded


@pytest.fixture
def cc() -> str:
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.fixture
def sampled(mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path) -> SampledProgram:
    return SampledProgram(mpi_called("mpich"), cc, tmp_path)


def names_of(process: _core.RecordedProcess) -> list[str]:
    """Return a name for each context: of native ones by addr2line, in one run for each module."""
    names = [""] * len(process.contexts)
    wanted: dict[str, list[int]] = defaultdict(list)
    for index, context in enumerate(process.contexts):
        if context.kind == _core.ContextKind.native:
            wanted[context.module].append(index)
        else:
            names[index] = context.function or f"<{str(context.kind).rpartition('.')[2]}>"
    for module, indices in wanted.items():
        if not Path(module).is_file():
            continue
        addresses = [
            hex(process.contexts[i].offset - (0 if process.contexts[i].is_innermost else 1)) for i in indices
        ]  # fmt: skip
        lines = run("addr2line", "-fe", module, *addresses).splitlines()[::2]
        for index, name in zip(indices, lines, strict=True):
            names[index] = name
    return names


def stacks_of(process: _core.RecordedProcess) -> Stacks:
    names = names_of(process)
    stacks: Stacks = defaultdict(float)
    for index, context in enumerate(process.contexts):
        if context.samples:
            stacks[tuple(names[at] for at in outwards(process, index))] += context.cpu_s
    return stacks


def outwards(process: _core.RecordedProcess, index: int) -> Iterator[int]:
    while index:
        yield index
        index = process.contexts[index].parent


def seconds_in(stacks: Stacks, function: str) -> float:
    """Return the time in a function and in what it calls."""
    return sum(seconds for names, seconds in stacks.items() if function in names)


def test_shares_of_functions_are_those_that_the_program_gives_them(sampled: SampledProgram) -> None:
    sampled.run("shares", 2)
    process = sampled.process()
    sampling = process.sampling
    assert sampling.by == _core.SampledBy.thread_cpu_timer
    assert sampling.samples > 50
    assert sampling.period_s == pytest.approx(1 / HERTZ)
    stacks = stacks_of(process)
    quarters, half = seconds_in(stacks, "quarter"), seconds_in(stacks, "half")
    assert quarters + half == pytest.approx(2, rel=0.2)
    assert quarters / (quarters + half) == pytest.approx(0.5, abs=0.12)
    # Of what is in the program, all reaches its start.
    for names in stacks:
        if "shares" in names:
            assert names[names.index("shares") + 1] == "main" and "<lost>" not in names, names
    # All samples are in the ring, too.
    columns = _core.Recording.samples_of(str(next(sampled.recording.glob("*.palmette"))), 0)
    assert len(columns["real_ns"]) == sampling.samples
    assert sum(columns["cpu_s"]) == pytest.approx(sum(context.cpu_s for context in process.contexts))
    assert all(a <= b for a, b in pairwise(columns["real_ns"]))
    main = [thread for thread in sampling.threads if thread.calls_as]
    assert len(main) == 1 and main[0].samples == max(thread.samples for thread in sampling.threads)
    share = 1 - sampling.incomplete / sampling.samples
    print(f"complete stacks: {share:.1%}; a sample: {sampling.seconds / sampling.samples * 1e6:.1f} us")


def test_a_program_whose_segments_lie_apart_is_known(mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path) -> None:
    # The loader takes each of its segments for something of its own.
    sampled = SampledProgram(mpi_called("mpich"), cc, tmp_path, "-Wl,-z,max-page-size=0x200000")
    sampled.run("shares", 0.5)
    stacks = stacks_of(sampled.process())
    assert seconds_in(stacks, "main") == pytest.approx(0.5, rel=0.2)


def test_the_kernels_clocks_are_known(sampled: SampledProgram) -> None:
    sampled.run("clocks", 1)
    process = sampled.process()
    stacks = stacks_of(process)
    assert seconds_in(stacks, "main") == pytest.approx(1, rel=0.2)
    kernel = [context for context in process.contexts if "vdso" in context.module]
    assert sum(context.cpu_s for context in kernel) > 0.3


@pytest.mark.parametrize("rate", [f"{HERTZ}", BY_EVENTS])
@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.long)])
def test_nothing_that_waits_is_interrupted(sampled: SampledProgram, seconds: int, rate: str) -> None:
    assert sampled.run("waits", seconds, rate=rate).split() == ["interrupted", "0"]
    assert sampled.process().sampling.samples > 0


def test_threads_come_and_go(sampled: SampledProgram) -> None:
    sampled.run("threads", 4)
    process = sampled.process()
    assert len(process.sampling.threads) > 100
    assert sum(thread.ended for thread in process.sampling.threads) >= 100
    stacks = stacks_of(process)
    # Each lives for some ticks of the kernel.
    assert seconds_in(stacks, "of_thread") == pytest.approx(4, rel=0.5)
    for names in stacks:
        if "of_thread" in names:
            assert names[names.index("of_thread") + 1] == "thread_of_work" and "<lost>" not in names, names


def test_a_deep_recursion_keeps_its_ends(sampled: SampledProgram) -> None:
    sampled.run("deep", 1, 2000)
    process = sampled.process()
    assert process.sampling.cut > 10
    deep = [names for names in stacks_of(process) if "at_bottom" in names]
    assert deep
    for names in deep:
        assert names[names.index("at_bottom") + 1] == "deeper"
        assert names.count("<cut>") == 1
        assert names[names.index("<cut>") + 1] == "deeper" and "main" in names and "<lost>" not in names


def test_a_child_is_left_alone(sampled: SampledProgram) -> None:
    assert sampled.run("forks", 0.5).split() == ["child", "7"]
    stacks = stacks_of(sampled.process())
    assert seconds_in(stacks, "of_child") == 0
    assert seconds_in(stacks, "half") > 0.2


def test_frames_on_a_stack_of_the_programs_own_are_found(sampled: SampledProgram) -> None:
    sampled.run("stacks", 0.5)
    assert seconds_in(stacks_of(sampled.process()), "on_other_stack") > 0.2


def test_signals_that_the_program_takes_are_its_own(sampled: SampledProgram) -> None:
    assert sampled.run("signals", 1).split() == ["free", "5", "sent", "5", "got", "5"]
    process = sampled.process()
    assert 0 < process.sampling.signal < signal.SIGRTMAX - 4
    assert seconds_in(stacks_of(process), "half") > 0.5


def events_are_used(sampled: SampledProgram) -> bool:
    """Whether the kernel gives this user events."""
    sampled.run("shares", 0.1, rate=BY_EVENTS)
    by = sampled.process().sampling.by
    shutil.rmtree(sampled.recording)
    return by == _core.SampledBy.thread_event


def test_rates_above_the_kernels_ticks_are_kept_where_events_are_allowed(sampled: SampledProgram) -> None:
    if not events_are_used(sampled):
        pytest.skip("the kernel's events aren't allowed")
    sampled.run("shares", 1, rate=BY_EVENTS)
    process = sampled.process()
    assert process.sampling.signal == signal.SIGTRAP
    assert process.sampling.samples == pytest.approx(HERTZ, rel=0.3), "of a second of CPU time"
    (main,) = [thread for thread in process.sampling.threads if thread.calls_as]
    assert main.cpu_s == pytest.approx(1, rel=0.15), "what passes between two signals is counted"


def test_samples_move_to_timers_when_the_program_takes_the_signal_of_events(sampled: SampledProgram) -> None:
    if not events_are_used(sampled):
        pytest.skip("the kernel's events aren't allowed")
    assert sampled.run("traps", 1, rate=BY_EVENTS).split() == ["free", "1", "got", "3"]
    process = sampled.process()
    assert process.sampling.by == _core.SampledBy.thread_cpu_timer
    assert process.sampling.signal > signal.SIGTRAP
    assert seconds_in(stacks_of(process), "half") == pytest.approx(0.5, rel=0.3), "which began after that"


def test_a_trap_that_nobody_handles_ends_the_program(sampled: SampledProgram) -> None:
    ran = sampled.mpi.run(1, sampled.program, "trap", 0.1, settings=sampled.settings(BY_EVENTS))
    assert ran.status != 0 and "went on" not in ran.text


def test_a_plugin_at_the_place_of_another_one_is_not_taken_for_it(sampled: SampledProgram, cc: str) -> None:
    source = sampled.folder / "plugin.c"
    source.write_text(PLUGIN, encoding="utf-8")
    libraries = [sampled.folder / f"{name}.so" for name in ("first", "second")]
    for at, library in enumerate(libraries):
        flags = [f"-DNAME=of_{library.stem}", f"-DADDED={at + 1}e-9", "-Wl,--build-id"]
        run(cc, "-O2", "-g", "-shared", "-fPIC", *flags, source, "-o", library)
    out = sampled.run("plugins", 1, *libraries)
    stacks = stacks_of(sampled.process())
    for name in ("of_first", "of_second"):
        assert seconds_in(stacks, name) == pytest.approx(0.5, rel=0.4), out
    for names in stacks:
        assert "<lost>" not in names or "plugged_in" not in names


def test_stacks_lead_through_the_loaders_resolver(sampled: SampledProgram, cc: str) -> None:
    for name, text in (("lazy", LAZY), ("caller", CALLS_LAZILY)):
        (sampled.folder / f"{name}.c").write_text(text, encoding="utf-8")
    flags = [cc, "-O2", "-g", "-shared", "-fPIC", "-fno-optimize-sibling-calls"]
    lazy, caller = sampled.folder / "liblazy.so", sampled.folder / "caller.so"
    run(*flags, sampled.folder / "lazy.c", "-o", lazy)
    run(*flags, "-Wl,-z,lazy", sampled.folder / "caller.c", "-o", caller, lazy, f"-Wl,-rpath,{sampled.folder}")
    sampled.run("lazy", 0.1, caller)
    stacks = stacks_of(sampled.process())
    inside = [names for names in stacks if "of_resolver" in names]
    assert seconds_in(stacks, "of_resolver") == pytest.approx(0.5, rel=0.4)
    for names in inside:
        assert "<lost>" not in names and "main" in names, names
        assert "plugged_in" in names[names.index("resolve") + 1 :], names


def test_samples_of_a_killed_process_are_there(sampled: SampledProgram) -> None:
    environment = sampled.mpi.environment()
    words = [*sampled.mpi.launch(1), str(sampled.program), "hangs", "0.1"]
    prepared = prepare(words, sampled.settings("100"), environment, libraries=PRELOADS)
    environment.update(prepared.environment)
    running = subprocess.Popen(
        list(prepared.command), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        pid = 0
        while time.monotonic() < deadline and not pid:
            time.sleep(0.1)
            with suppress(RecordError):
                process = sampled.process()
                pid = process.pid if process.sampling.samples > 30 else 0
        assert pid, "no samples of a job that runs"
        assert seconds_in(stacks_of(sampled.process()), "half") > 0
        os.kill(pid, signal.SIGKILL)
    finally:
        running.wait(timeout=60)
    assert seconds_in(stacks_of(sampled.process()), "half") > 0.1


def test_a_budget_sets_the_rate(sampled: SampledProgram) -> None:
    # At 20 Hz this leaves 0.5 us a sample, which no machine meets.
    sampled.run("shares", 2, rate="0.001%")
    assert sampled.process().sampling.period_s == pytest.approx(0.05), "20 a second at least"


def test_without_the_option_there_are_no_samples(sampled: SampledProgram) -> None:
    sampled.run("shares", 0.2, rate="0")
    process = sampled.process()
    assert process.sampling.by == _core.SampledBy.nothing
    assert process.sampling.samples == 0 and process.contexts == []


CALLS = {
    "<module>": {"main", "Class"},  # whose body runs there
    "main": {"loop", "meets", "<listcomp>"},
    "loop": {"by_sort", "by_generator", "by_class", "by_reduce", "by_recursion", "by_error", "by_exec", "by_coroutine"},
    "by_sort": {"key"},
    "key": {"leaf_b"},
    "by_generator": {"generator"},
    "generator": {"leaf_a"},
    "by_class": {"__init__", "__call__"},
    "__init__": {"make"},
    "make": {"<listcomp>", "leaf_b"},
    "<listcomp>": {"leaf_b"},
    "__call__": {"leaf_a"},
    "by_reduce": {"reduced"},
    "reduced": {"leaf_a"},
    "by_recursion": {"recursion"},
    "recursion": {"recursion", "leaf_b"},
    "by_error": {"leaf_a", "fails"},
    "fails": {"leaf_b"},
    "by_exec": {"leaf_a"},
    "by_coroutine": {"outer"},
    "outer": {"inner"},
    "inner": {"leaf_a"},
    "leaf_a": {"spin"},
    "leaf_b": {"spin"},
}
"""Who calls whom in PYTHON."""
PYTHON = """import ctypes, functools, sys, threading; flood = ctypes.CDLL(sys.argv[1])
from mpi4py import MPI
def spin(n):
    x = 0
    for i in range(n):
        x += i * i
    return x
def leaf_a(): return spin(400)
def leaf_b(): return spin(300)
def key(x):
    return leaf_b() + x
def by_sort(): return sorted(range(5), key=key)
def generator(n):
    for i in range(n):
        yield leaf_a()
def by_generator(): return sum(generator(5))
class Class:
    def __init__(self, n): self.made = self.make(n)
    def make(self, n): return [leaf_b() for _ in range(n)]
    def __call__(self, x): return leaf_a() + x
def by_class(): return Class(3)(4)
def reduced(a, b): return a + leaf_a() + b
def by_reduce(): return functools.reduce(reduced, range(5))
def recursion(n): return leaf_b() if n == 0 else recursion(n - 1)
def by_recursion(): return recursion(30)
def by_error():
    try: fails()
    except ValueError: return leaf_a()
def fails(): raise ValueError(leaf_b())
exec(compile("def by_exec():\\n\\n  return leaf_a()\\n", "made.py", "exec"))
async def inner(): return leaf_a()
async def outer(): return await inner()
def by_coroutine():
    made = outer()
    try: made.send(None)
    except StopIteration as end: return end.value
def loop():
    flood.join_flood()
    while flood.left_of_flood() > 0:
        by_sort(); by_generator(); by_class(); by_reduce(); by_recursion(); by_error(); by_exec(); by_coroutine()
def meets(): MPI.COMM_WORLD.Barrier()
def main():
    meets()
    flood.left_of_flood.restype = ctypes.c_long
    assert flood.begin_flood(ctypes.c_long(int(sys.argv[2])), ctypes.c_long(10000))
    threads = [threading.Thread(target=loop) for _ in range(2)]
    for thread in threads: thread.start()
    loop()
    for thread in threads: thread.join()
main()
"""


def interpreters() -> dict[str, Path]:
    """Return a CPython of each version that is there, by name, this one first."""
    found = {"3." + str(sys.version_info.minor): Path(sys.executable)}
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3")):
        minor = int(path.parents[1].name.split(".")[1])
        if minor >= 10:
            found.setdefault(f"3.{minor}{'t' if path.parents[1].name.endswith('t') else ''}", path)
    for name in (f"3.{minor}{kind}" for minor in range(10, 16) for kind in ("", "t")):
        if there := shutil.which(f"python{name}"):
            found.setdefault(name, Path(there))
    return found


def cases() -> list[Any]:
    """Return interpreters and how many samples to take: some of each, 100,000 where there is time."""
    pythons = interpreters()
    few = [pytest.param(path, 10_000, id=name) for name, path in pythons.items()]
    many = [pytest.param(path, 100_000, id=f"{name}-many", marks=pytest.mark.long) for name, path in pythons.items()]
    return few + many


@pytest.mark.parametrize(("python", "samples"), cases())
def test_python_frames_have_no_wrong_parent(
    mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path, python: Path, samples: int
) -> None:
    mpi = mpi_called("mpich")
    flood = tmp_path / "flood.so"
    run(cc, "-O2", "-shared", "-fPIC", PROGRAMS / "flood.c", "-o", flood, "-lpthread")
    script, folder = tmp_path / "tree.py", tmp_path / "recording"
    text = PYTHON
    is_own = python == Path(sys.executable)
    if is_own:
        pytest.importorskip("mpi4py")
    else:  # which have no mpi4py; the recorder's functions come first
        library = mpi.installation.prefix / "lib" / "libmpi.so.12"
        loads = f"ctypes.CDLL({str(library)!r}, mode=ctypes.RTLD_GLOBAL); own = ctypes.CDLL(None)"
        text = text.replace("from mpi4py import MPI", f"{loads}; own.MPI_Init(None, None)")
        text = text.replace("MPI.COMM_WORLD.Barrier()", "own.MPI_Barrier(0x44000000)") + "own.MPI_Finalize()\n"
    script.write_text(text, encoding="utf-8")
    ran = mpi.run(
        1, python, script, flood, samples, settings={"PALMETTE_PROFILE": str(folder), "PALMETTE_SAMPLE": f"{HERTZ}"}
    )
    assert ran.status == 0, ran.text
    process = read_job(folder).processes[0].recorded
    sampling = process.sampling
    if sampling.python_is_refused:
        pytest.skip("this Python's frames aren't known")
    version = run(python, "-c", "import sys; print(sys.hexversion >> 16)")
    assert sampling.python >> 16 == int(version)
    found = 0
    for index, context in enumerate(process.contexts):
        frames = [process.contexts[at] for at in outwards(process, index)]
        own = [
            one
            for one in frames
            if one.kind == _core.ContextKind.python and one.module.endswith(("tree.py", "made.py"))
        ]
        if not context.samples or not own:
            continue
        found += context.samples
        names = [one.function.rpartition(".")[2] for one in reversed(own)]
        assert names[0] in ("<module>", "loop"), names
        assert all(callee in CALLS.get(caller, ()) for caller, callee in pairwise(names)), names
        for one in own:
            if one.function == "by_exec":
                assert one.module == "made.py"
                assert one.line in (1, 3), "where it is entered, or its only line"
            if one.function == "spin":
                assert one.line in (3, 4, 5, 6, 7)
            if one.function == "by_class":
                assert one.line == 21
    assert sampling.samples >= samples and found >= 0.9 * samples, "most are in the script"
    assert sampling.unmerged <= 0.01 * sampling.samples
    print(f"{sampling.samples} samples, {sampling.unmerged} unmerged, {sampling.incomplete} incomplete")
    # Calls are told by Python's lines, too.
    (barrier,) = [row for row in process.aggregates if row.function == "MPI_Barrier"]
    modules = [(frame.module, frame.offset) for frame in process.paths[barrier.path]]
    lines = text.splitlines()
    meets = next(at for at, line in enumerate(lines) if line.startswith("def meets()")) + 1
    expected = [(f"python:meets:{script}", meets), (f"python:main:{script}", lines.index("    meets()") + 1)]
    assert [one for one in modules if one[0].startswith("python:")][:2] == expected
    (row,) = [row for row in sums_of(read_job(folder)).rows if row.function == "MPI_Barrier"]
    assert str(row.place) == f"tree.py:{meets}"


INTERPRETER = """const char *Py_GetVersion(void) { return VERSION; }
static long state[512];
void *PyGILState_GetThisThreadState(void) { return state; }
int Py_IsFinalizing(void) { return 0; }
long PyCode_Type[64];
"""
"""What an interpreter is known by; its thread's state holds nothing that fits."""


@pytest.mark.parametrize("version", ["3.99.0 (main)", "3.15.2 free-threading build (main)", "3.12.1 (main)"])
def test_an_interpreter_whose_layout_is_not_known_is_refused(sampled: SampledProgram, cc: str, version: str) -> None:
    source, library = sampled.folder / "interpreter.c", sampled.folder / "interpreter.so"
    source.write_text(INTERPRETER, encoding="utf-8")
    run(cc, "-shared", "-fPIC", f'-DVERSION="{version}"', source, "-o", library)
    program = sampled.folder / "with_interpreter"
    prefix = sampled.mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}"]
    flags = ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{sampled.folder}", *link, "-ldl", "-lpthread"]
    run(cc, "-O2", "-g", SOURCE, "-o", program, *flags)
    ran = sampled.mpi.run(1, program, "shares", 0.3, settings=sampled.settings(f"{HERTZ}"))
    assert ran.status == 0, ran.text
    assert f"the frames of this Python ({version[:24]}) aren't known" in ran.text
    process = sampled.process()
    assert process.sampling.python_is_refused and process.sampling.samples > 0
    assert process.sampling.unmerged == 0
