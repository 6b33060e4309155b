"""The recorder in programs whose calls don't come and go in order: jumps, callbacks, coroutines, modules that come and
go, clocks that are set, processes with numbers that mean nothing here."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from palmette.record.reading import Job, RecordError, read_job
from palmette.record.sums import Sums, sums_of
from palmette.record.waiting import state_of
from palmette.run.prepared import prepare

from .conftest import PRELOADS, Mpi, ProgramResult
from .test_matrix import rows

pytestmark = pytest.mark.mpi
SOURCES = Path(__file__).with_name("programs")


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, mpi_called: Callable[[str], Mpi]) -> Mpi:
    return mpi_called(request.param)


def compiled(mpi: Mpi, source: str, *flags: str, name: str = "") -> Path:
    """Compile a C program, or with -shared a library, for an MPI."""
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    prefix = mpi.installation.prefix
    made = mpi.directory / (name or Path(source).stem)
    words = [cc, "-O1", "-g", "-w", *flags, f"-I{prefix}/include", str(SOURCES / source), "-o", str(made)]
    if "-shared" not in flags:
        words += [f"-L{prefix}/lib", "-lmpi", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run([*words, "-ldl"], check=True, capture_output=True, text=True)
    return made


def recorded(mpi: Mpi, ranks: int, program: Path, *arguments: object, **settings: str) -> tuple[ProgramResult, Job]:
    folder = mpi.directory / "recording"
    ran = mpi.run(ranks, program, *arguments, settings={"PALMETTE_PROFILE": str(folder), **settings})
    assert ran.status == 0, ran.text
    return ran, read_job(folder)


def calls(sums: Sums, function: str) -> int:
    return sum(row.calls for row in sums.rows if row.function == function)


def places(sums: Sums, function: str) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for row in sums.rows:
        if row.function == function:
            found[row.place.function] += row.calls
    return found


@pytest.mark.parametrize("case", ["grown", "shrunk"])
def test_frames_of_any_size_are_known_on_coroutines_stacks_too(mpi: Mpi, case: str) -> None:
    _, job = recorded(mpi, 2, compiled(mpi, "callbacks.c"), case)
    sums = sums_of(job)
    assert places(sums, "MPI_Barrier") == {"barrier": 2 * 40}
    for process in job.processes:
        outer = [
            [frame.offset for frame in process.recorded.paths[row.path]]
            for row in process.recorded.aggregates if row.function == "MPI_Barrier"
        ]  # fmt: skip
        assert len({tuple(path) for path in outer}) == 2, "from main, and from the coroutine"


def test_calls_of_another_coroutine_are_recorded_while_one_is_in_a_call(mpi: Mpi) -> None:
    _, job = recorded(mpi, 2, compiled(mpi, "callbacks.c"), "switched")
    sums = sums_of(job)
    assert places(sums, "MPI_Type_size") == {"sizes": 2 * 100}
    assert calls(sums, "MPI_Reduce_local") == 2 * 10
    assert not any(
        process.recorded.open or process.recorded.nested or process.recorded.left for process in job.processes
    )


def test_calls_of_callbacks_are_counted_as_not_recorded(mpi: Mpi) -> None:
    _, job = recorded(mpi, 2, compiled(mpi, "callbacks.c"), "called")
    sums = sums_of(job)
    assert calls(sums, "MPI_Reduce_local") == 2 * 10
    assert calls(sums, "MPI_Type_size") == 0
    assert [process.recorded.nested for process in job.processes] == [10, 10]
    assert any("20 calls were made by callbacks" in note for note in sums.notes)


@pytest.mark.parametrize("deep", [16, 5000])
@pytest.mark.parametrize("case", ["send", "bcast", "ibcast"])
def test_a_call_that_a_jump_leaves_has_ended(mpi: Mpi, case: str, deep: int) -> None:
    ran, job = recorded(mpi, 2, compiled(mpi, "callbacks.c"), case, deep)
    assert ran.out.count("right") == 2
    sums = sums_of(job)
    assert calls(sums, "MPI_Allreduce") == 2 * 50
    assert calls(sums, "MPI_Recv") == 2
    assert calls(sums, {"send": "MPI_Send", "bcast": "MPI_Bcast", "ibcast": "MPI_Ibcast"}[case]) >= 2 * 3
    for process in job.processes:
        assert not process.recorded.open
        assert process.recorded.left == 3
    assert any("6 calls were left by a jump" in note for note in sums.notes)


def test_messages_are_counted_on_after_a_jump(mpi: Mpi) -> None:
    program = compiled(mpi, "callbacks.c")
    read = []
    for case in ("none", "send"):
        folder = mpi.directory / case
        assert mpi.run(2, program, case, settings={"PALMETTE_PROFILE": str(folder)}).status == 0
        read.append(rows(folder, "sent"))
    assert read[0] == read[1]
    assert {size for size, _ in read[0].values()} == {4}, "a message of 4 bytes each way"


def test_what_is_sent_while_nothing_is_recorded_counts(mpi: Mpi) -> None:
    folder = mpi.directory / "recording"
    ran = mpi.run(3, compiled(mpi, "unrecorded_sends.c"), settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    expected = {}
    for rank in range(3):
        expected |= {(rank, rank): (4, 1), (rank, (rank + 1) % 3): (33, 4), (rank, (rank + 2) % 3): (14, 2)}
    assert rows(folder, "sent") == expected


def test_served_collectives_go_on_after_a_jump_of_some_ranks(mpi: Mpi) -> None:
    settings = {"PALMETTE_FORCE": "bcast=k_nomial;allreduce=recursive_doubling", "PALMETTE_SERVE_AFTER": "0"}
    ran = mpi.run(2, compiled(mpi, "callbacks.c"), "bcast", settings=settings)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 2


def test_collectives_are_served_after_a_jump_out_of_an_operation(mpi: Mpi) -> None:
    settings = {"PALMETTE_FORCE": "allreduce=recursive_doubling", "PALMETTE_SERVE_AFTER": "0"}
    ran = mpi.run(2, compiled(mpi, "callbacks.c"), "operation", settings=settings)
    assert ran.status == 0, ran.text
    assert ran.out.count("right") == 2
    assert sum(ran.served().get("allreduce", {}).values()) > 45, ran.report


def test_calls_from_many_places_through_one_function_are_looked_up_once_each(mpi: Mpi) -> None:
    _, job = recorded(mpi, 1, compiled(mpi, "callbacks.c"), "places")
    (process,) = job.processes
    found = [row for row in process.recorded.aggregates if row.function == "MPI_Type_size"]
    assert len(found) == 12
    assert {row.calls for row in found} == {100}
    assert process.recorded.unwound < len(process.recorded.paths) + 5


def test_calls_are_credited_to_the_module_that_made_them_though_another_was_there_before(mpi: Mpi) -> None:
    modules = []
    for name in ("first", "second"):
        (mpi.directory / f"{name}.c").write_text(
            f"#include <mpi.h>\nint of_{name}(void) {{ int n; return MPI_Type_size(MPI_INT, &n) + n; }}\n"
            f"volatile int kept;\nvoid of_module(void) {{ kept = of_{name}(); }}\n",
            encoding="utf-8",
        )
        modules.append(
            compiled(mpi, str(mpi.directory / f"{name}.c"), "-shared", "-fPIC", "-fno-inline", "-Wl,--build-id",
                     name=f"lib{name}.so")
        )  # fmt: skip
    ran, job = recorded(mpi, 1, compiled(mpi, "callbacks.c"), "modules", *modules)
    assert "same addresses" in ran.out, "else this test shows nothing"
    assert places(sums_of(job), "MPI_Type_size") == {"of_first": 5, "of_second": 5}


@pytest.mark.parametrize("kind", [4, 0x6474E550], ids=["notes", "unwind-tables"])
def test_segments_that_are_not_loaded_are_not_read(mpi: Mpi, kind: int) -> None:
    module = compiled(mpi, str(_module(mpi)), "-shared", "-fPIC", "-fno-inline", name="libfirst.so")
    data = bytearray(module.read_bytes())
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    moved = 0
    for number in range(count):
        if struct.unpack_from("<I", data, offset + number * size)[0] == kind:
            struct.pack_into("<QQ", data, offset + number * size + 16, 0x40000000, 0x40000000)
            moved += 1
    assert moved
    module.write_bytes(data)
    _, job = recorded(mpi, 1, compiled(mpi, "callbacks.c"), "modules", module, module)
    # Without its unwind tables nothing tells who calls the function; where the call was made is known all the same.
    assert places(sums_of(job), "MPI_Type_size") == {"of_first": 10}


def _module(mpi: Mpi) -> Path:
    source = mpi.directory / "first.c"
    source.write_text(
        "#include <mpi.h>\nint of_first(void) { int n; return MPI_Type_size(MPI_INT, &n) + n; }\n"
        "volatile int kept;\nvoid of_module(void) { kept = of_first(); }\n",
        encoding="utf-8",
    )
    return source


@pytest.mark.parametrize("trusted", [True, False], ids=["counter", "distrusted"])
@pytest.mark.parametrize("jump", [3600, -3600])
def test_durations_are_right_though_the_clock_is_set(mpi: Mpi, jump: int, trusted: bool) -> None:
    sources = mpi.directory / "clocksources"
    sources.write_text("tsc hpet acpi_pm\n" if trusted else "hpet acpi_pm\n", encoding="utf-8")
    folder = mpi.directory / "recording"
    program = compiled(mpi, "timed.c", str(SOURCES / "clocks.c"), "-rdynamic")
    environment = mpi.environment() | {"JUMP": str(jump), "CLOCKSOURCES": str(sources)}
    prepared = prepare([*mpi.launch(2), str(program)], {"PALMETTE_TRACE": str(folder)}, environment, libraries=PRELOADS)
    begun = time.time()
    ran = subprocess.run(
        list(prepared.command), env={**environment, **prepared.environment}, check=True, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    told = {}
    for line in ran.stdout.splitlines():
        words = line.split()
        told[int(words[1].rstrip(":"))] = float(words[3]), float(words[5])
    job = read_job(folder)
    for process in job.processes:
        if not trusted:
            assert process.recorded.tick_s == 1e-9
        inside, ran_s = told[process.recorded.rank]
        seconds = sum(row.seconds for row in process.recorded.aggregates if row.function == "MPI_Barrier")
        # The recorder's clock is read within the program's; a rank may lose its processor in between.
        assert 0.5 * inside <= seconds <= 1.02 * inside + 2e-3
        assert 0 <= process.recorded.last_real_ns - process.recorded.begin_real_ns < (ran_s + 60) * 1e9
        assert abs(process.recorded.begin_real_ns * 1e-9 - begun) < 60
        in_order = [call.begin_real_ns for call in process.calls()]
        assert in_order[-1] - in_order[0] < (ran_s + 60) * 1e9


def _hung(mpi: Mpi, folder: Path, before: list[str]) -> subprocess.Popen[str]:
    environment = mpi.environment()
    words = [*mpi.launch(1), *before, str(compiled(mpi, "callbacks.c")), "sleep"]
    prepared = prepare(words, {"PALMETTE_PROFILE": str(folder)}, environment, libraries=PRELOADS)
    running = subprocess.Popen(
        list(prepared.command), env={**environment, **prepared.environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(RecordError):
            if [process.state for process in read_job(folder).processes] == ["running"]:
                break
        time.sleep(0.05)
    return running


def _end(running: subprocess.Popen[str], folder: Path) -> None:
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) != os.getpid() and str(folder).encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.parametrize("own_numbers", [False, True], ids=["here", "in-a-namespace-of-processes"])
def test_a_process_lives_as_long_as_it_lives(mpi: Mpi, own_numbers: bool) -> None:
    before = ["unshare", "--pid", "--fork"] if own_numbers else []
    if own_numbers and subprocess.run([*before, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no namespace of processes can be made here")
    folder = mpi.directory / "recording"
    running = _hung(mpi, folder, before)
    try:
        (process,) = read_job(folder).processes
        assert process.state == "running"
        assert process.recorded.pid_namespace != 0
    finally:
        _end(running, folder)
    deadline = time.monotonic() + 60
    while read_job(folder).processes[0].state == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert read_job(folder).processes[0].state == "killed"
    # Another process may have got the number that it had in its namespace.
    assert state_of(read_job(folder)).job.processes[0].state == "killed"


def test_two_nodes_of_one_name_are_two(mpi: Mpi) -> None:
    program = compiled(mpi, "callbacks.c")
    folder = mpi.directory / "recording"
    recorded(mpi, 1, program, "places")
    (file,) = folder.glob("*.palmette")
    data = bytearray(file.read_bytes())
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    at = data.index(boot_id)
    data[at : at + 8] = b"deadbeef"
    environment = mpi.environment()
    folder = mpi.directory / "both"
    folder.mkdir()
    prepared = prepare(
        [*mpi.launch(1), str(program), "places"], {"PALMETTE_PROFILE": str(folder)}, environment, libraries=PRELOADS
    )
    (folder / file.name).write_bytes(data)
    subprocess.run(
        list(prepared.command),
        env={**environment, **prepared.environment},
        check=True,
        capture_output=True,
        timeout=120,
    )
    job = read_job(folder)
    assert len(job.processes) == 2
    assert len({process.host for process in job.processes}) == 2, "the second didn't go into the first one's file"
    assert {process.host for process in job.processes} == {path.stem for path in folder.glob("*.palmette")}
