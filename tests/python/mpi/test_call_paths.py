"""Call paths of recorded calls: whatever way a program was linked, its calls are found in its source."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from palmette.record.reading import read_job
from palmette.record.sums import sums_of
from palmette.record.symbols import Resolver
from palmette.run.prepared import prepare

from .conftest import PRELOADS, Mpi

pytestmark = pytest.mark.mpi

PROGRAM = """\
#include <mpi.h>
#include <dlfcn.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) void inlined(void) {
    MPI_Barrier(MPI_COMM_WORLD);  /* line 5 */
}
__attribute__((noinline)) void further_in(void) {
    inlined();  /* line 8 */
    __asm__ volatile("");
}
__attribute__((noinline)) void one(void) { further_in(); __asm__ volatile(""); }
__attribute__((noinline)) void another(void) { further_in(); __asm__ volatile(""); }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; ++i) one();
    for (int i = 0; i < 5; ++i) another();
    if (argc > 1) {
        void (*call)(void) = (void (*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "of_a_library");
        call();
    }
    MPI_Finalize();
    return 0;
}
"""
LIBRARY = """\
#include <mpi.h>
__attribute__((noinline)) void deep(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);  /* line 4 */
    __asm__ volatile("");
}
void of_a_library(void) { deep(); __asm__ volatile(""); }
"""
WAYS = {
    "pie": ["-fPIE", "-pie"],
    "no-pie": ["-fno-PIE", "-no-pie"],
    "no-frame-pointer": ["-fPIE", "-pie", "-fomit-frame-pointer", "-O3"],
}


def run(cc: str, *words: object) -> None:
    subprocess.run([cc, *map(str, words)], check=True, capture_output=True, text=True)


@pytest.fixture
def cc() -> str:
    found = shutil.which("cc")
    if found is None or shutil.which("addr2line") is None:
        pytest.skip("no C compiler, or no binutils")
    return found


@pytest.mark.parametrize("separate", [False, True], ids=["with-debug-information", "in-a-separate-file"])
@pytest.mark.parametrize("way", WAYS)
def test_calls_are_found_in_their_source(
    mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path, way: str, separate: bool
) -> None:
    mpi = mpi_called("mpich")
    prefix = mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}", "-ldl"]
    source, library_source = tmp_path / "program.c", tmp_path / "library.c"
    source.write_text(PROGRAM, encoding="utf-8")
    library_source.write_text(LIBRARY, encoding="utf-8")
    program, library = tmp_path / "program", tmp_path / "libof_a_library.so"
    run(cc, "-O2", "-g", "-Wl,--build-id", *WAYS[way], source, "-o", program, *link)
    run(cc, "-O2", "-g", "-Wl,--build-id", "-shared", "-fPIC", library_source, "-o", library, *link)
    if separate:
        for path in (program, library):
            run("objcopy", "--only-keep-debug", path, f"{path}.debug")
            run("strip", "--strip-all", path)
            run("objcopy", f"--add-gnu-debuglink={path}.debug", path)
    folder = tmp_path / "recording"
    words = [*mpi.launch(2), str(program), str(library)]
    prepared = prepare(words, {"PALMETTE_PROFILE": str(folder)}, mpi.environment(), libraries=PRELOADS)
    environment = {**mpi.environment(), **prepared.environment}
    subprocess.run(list(prepared.command), env=environment, check=True, capture_output=True, timeout=120)
    job = read_job(folder)
    resolver = Resolver()
    resolver.add(frame for process in job.processes for path in process.recorded.paths for frame in path)
    assert resolver.notes == []
    by_rank = []
    for process in job.processes:
        found: dict[tuple[str, ...], int] = {}
        for row in process.recorded.aggregates:
            if row.function not in ("MPI_Barrier", "MPI_Comm_size"):
                continue
            places = [place for frame in process.recorded.paths[row.path] for place in resolver.places(frame)]
            names = [f"{place.function}:{place.line if place.line in (4, 5, 8) else ''}" for place in places]
            key = (row.function, *names[: 1 + names.index(next(name for name in names if name.startswith("main")))])
            found[key] = found.get(key, 0) + row.calls
        by_rank.append(found)
    # The inlined call has its own place, and paths that differ further up are two.
    assert by_rank[0] == {
        ("MPI_Barrier", "inlined:5", "further_in:8", "one:", "main:"): 3,
        ("MPI_Barrier", "inlined:5", "further_in:8", "another:", "main:"): 5,
        ("MPI_Comm_size", "deep:4", "of_a_library:", "main:"): 1,
    }
    assert by_rank[1] == by_rank[0], "alike on all ranks, wherever they were loaded"


def test_a_program_that_was_built_anew_is_not_looked_up(
    mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path
) -> None:
    mpi = mpi_called("mpich")
    prefix = mpi.installation.prefix
    link = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmpi", f"-Wl,-rpath,{prefix / 'lib'}", "-ldl"]
    source, program, folder = tmp_path / "program.c", tmp_path / "program", tmp_path / "recording"
    source.write_text(PROGRAM, encoding="utf-8")
    run(cc, "-O2", "-g", "-Wl,--build-id", source, "-o", program, *link)
    prepared = prepare(
        [*mpi.launch(1), str(program)], {"PALMETTE_PROFILE": str(folder)}, mpi.environment(), libraries=PRELOADS
    )
    environment = {**mpi.environment(), **prepared.environment}
    subprocess.run(list(prepared.command), env=environment, check=True, capture_output=True, timeout=120)
    source.write_text("/* new */\n" + PROGRAM, encoding="utf-8")
    run(cc, "-O2", "-g", "-Wl,--build-id", source, "-o", program, *link)
    job = read_job(folder)
    resolver = Resolver()
    resolver.add(frame for process in job.processes for path in process.recorded.paths for frame in path)
    (note,) = resolver.notes
    assert os.fspath(program) in note and "built anew" in note


def test_a_local_function_of_a_stripped_library_is_not_called_by_its_neighbours_name(
    mpi_called: Callable[[str], Mpi], cc: str, tmp_path: Path
) -> None:
    # addr2line names the symbol before an address, however far that is; `before` stands there and calls nothing.
    mpi = mpi_called("mpich")
    source, library, program = tmp_path / "local.c", tmp_path / "liblocal.so", tmp_path / "program"
    source.write_text(
        "#include <mpi.h>\nvoid before(void) {}\n"
        'static __attribute__((noinline)) void local(void) { MPI_Barrier(MPI_COMM_WORLD); __asm__ volatile(""); }\n'
        'void named(void) { local(); __asm__ volatile(""); }\n',
        encoding="utf-8",
    )
    prefix = mpi.installation.prefix
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-fno-toplevel-reorder", "-O1"]
    run(cc, "-shared", "-fPIC", source, "-o", library, *flags, "-lmpi")
    run("strip", library)
    (tmp_path / "main.c").write_text(
        "#include <mpi.h>\nvoid named(void);\n"
        "int main(int c, char **v) { MPI_Init(&c, &v); named(); MPI_Finalize(); return 0; }\n",
        encoding="utf-8",
    )
    run(cc, tmp_path / "main.c", "-o", program, f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}", *flags, "-llocal", "-lmpi")
    folder = tmp_path / "calls"
    ran = mpi.run(2, program, settings={"PALMETTE_PROFILE": str(folder)})
    assert ran.status == 0, ran.text
    places = {row.function: str(row.place) for row in sums_of(read_job(folder)).rows}
    assert places["MPI_Barrier"] == "named or below"
