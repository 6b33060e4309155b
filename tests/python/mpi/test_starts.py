"""Starts where something is in the way: odd paths of the package, file systems that lack something, ranks that start
palmette themselves."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from palmette.mpi.abi import LIBRARIES
from palmette.record.reading import read_job
from palmette.run.prepared import prepare

from .conftest import PRELOADS, TIMEOUT_S, Mpi

pytestmark = pytest.mark.mpi

SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>
#include <stdarg.h>
/* A file system without flock, without locks of ranges, without shared mappings. */
int flock(int fd, int op) {
  if (getenv("NO_FLOCK")) { errno = ENOSYS; return -1; }
  return syscall(SYS_flock, fd, op);
}
int fcntl(int fd, int what, ...) {
  va_list list; va_start(list, what); long argument = va_arg(list, long); va_end(list);
  if (getenv("NO_RANGES") && (what == F_OFD_SETLKW || what == F_OFD_SETLK)) { errno = ENOLCK; return -1; }
  return syscall(SYS_fcntl, fd, what, argument);
}
int fcntl64(int fd, int what, ...) {
  va_list list; va_start(list, what); long argument = va_arg(list, long); va_end(list);
  return fcntl(fd, what, argument);
}
static int below(int fd, const char* folder) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path);
  return n > 0 && (size_t)n > strlen(folder) && strncmp(path, folder, strlen(folder)) == 0;
}
void* mmap(void* a, size_t n, int prot, int flags, int fd, off_t at) {
  const char* folder = getenv("NO_MAP");
  if (folder && fd >= 0 && (flags & 0xf) == MAP_SHARED && (prot & PROT_WRITE) && below(fd, folder)) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mmap, a, n, prot, flags, fd, at);
}
void* mmap64(void* a, size_t n, int prot, int flags, int fd, off_t at) { return mmap(a, n, prot, flags, fd, at); }
"""


@pytest.fixture
def mpi(mpi_called: Callable[[str], Mpi]) -> Mpi:
    """How a job is started is the same code under every MPI."""
    return mpi_called("mpich")


def copied(folder: Path) -> Path:
    """A copy of the package with MPICH's libraries alone."""
    package = folder / "palmette"
    other = ("*.ompi", "*.abi", "*.smpi", "libpalmette_*ompi*", "libpalmette_*abi*", "sharp", "bin", "__pycache__")
    shutil.copytree(LIBRARIES.parent, package, ignore=shutil.ignore_patterns(*other))
    return package


def run(command: list[str], environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=TIMEOUT_S, check=False,
    )  # fmt: skip


def by_copy(package: Path, *words: str) -> list[str]:
    """A command of the package's copy: -S leaves the .pth file out that names the original."""
    paths = [str(package.parent), *site.getsitepackages()]
    code = f"import sys; sys.path[:0] = {paths!r}\nfrom palmette.cli.main import main; sys.exit(main())"
    return [sys.executable, "-S", "-c", code, *words]


def test_a_package_below_any_path_serves(mpi: Mpi, tmp_path: Path) -> None:
    package = copied(tmp_path / "a b:c,d")
    environment = {**mpi.environment(), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = ("run", "--report", *mpi.launch(2), str(mpi.program("first_call")))
    done = run(by_copy(package, *words), environment, tmp_path)
    assert done.returncode == 0 and "ERROR: ld.so" not in done.stderr, done.stderr
    assert "served" in done.stderr + done.stdout, done.stdout + done.stderr


def noexec(folder: Path, command: list[str], of: Path) -> list[str]:
    """In a mount namespace where a copy of `of` lies on `folder`, mounted noexec; skips where there is none."""
    script = 'mount -t tmpfs -o noexec none "$0" && cp -r "$1"/. "$0"/ && shift && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", script, str(folder), str(of), *command]
    trial = subprocess.run([*words[:6], str(of), "true"], capture_output=True, check=False)
    if shutil.which("unshare") is None or trial.returncode != 0:
        pytest.skip("no mount namespace here")
    return words


def test_a_package_on_a_file_system_mounted_noexec_serves_by_copies(mpi: Mpi, tmp_path: Path) -> None:
    package = copied(tmp_path / "package")
    (tmp_path / "lib").mkdir()
    for library in (package / "lib").iterdir():
        if library.is_file():
            library.rename(tmp_path / "lib" / library.name)
    environment = {**mpi.environment(), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = ("run", "--report", *mpi.launch(2), str(mpi.program("first_call")))
    done = run(noexec(package / "lib", by_copy(package, *words), tmp_path / "lib"), environment, tmp_path)
    assert done.returncode == 0 and "ERROR: ld.so" not in done.stderr, done.stderr
    assert "served" in done.stderr + done.stdout, done.stdout + done.stderr
    told = run(noexec(package / "lib", by_copy(package, "doctor"), tmp_path / "lib"), environment, tmp_path)
    assert "preloaded as" in told.stdout, told.stdout + told.stderr


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, target = tmp_path / "shim.c", tmp_path / "libshim.so"
    source.write_text(SHIM, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", str(source), "-o", str(target)], check=True)
    return target


@pytest.mark.parametrize("lacking", ["NO_FLOCK", "NO_FLOCK NO_RANGES"])
def test_calls_are_recorded_without_locks_of_files(mpi: Mpi, shim: Path, tmp_path: Path, lacking: str) -> None:
    folder = tmp_path / "recording"
    environment = {**mpi.environment(), "LD_PRELOAD": str(shim), **dict.fromkeys(lacking.split(), "1")}
    words = ["run", "--profile", str(folder), *mpi.launch(4), str(mpi.program("calls")), "--rounds", "2"]
    done = run([sys.executable, "-m", "palmette.cli.main", *words], environment, tmp_path)
    assert done.returncode == 0, done.stderr
    job = read_job(folder)
    assert sorted(process.recorded.rank for process in job.processes) == [0, 1, 2, 3]
    assert not list(folder.glob("*.lock"))


def test_a_file_system_without_shared_mappings_is_told_before_the_job_starts(
    mpi: Mpi, shim: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "recording"
    environment = {**mpi.environment(), "LD_PRELOAD": str(shim), "NO_MAP": str(folder)}
    words = ["run", "--profile", str(folder), *mpi.launch(2), str(mpi.program("calls"))]
    done = run([sys.executable, "-m", "palmette.cli.main", *words], environment, tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "such as /tmp" in done.stderr, done.stderr


def test_ranks_that_cannot_record_say_so_once_and_leave_nothing(mpi: Mpi, shim: Path, tmp_path: Path) -> None:
    """The file system of a node may be another one than that where the job is started."""
    folder = tmp_path / "recording"
    prepared = prepare(
        [*mpi.launch(4), str(mpi.program("calls")), "--rounds", "2"], {"PALMETTE_TRACE": str(folder)},
        mpi.environment(), libraries=PRELOADS,
    )  # fmt: skip
    environment = {**mpi.environment(), **prepared.environment, "LD_PRELOAD": str(shim), "NO_MAP": str(folder)}
    words = [f"{shim}:{word}" if "libpalmette" in word else word for word in prepared.command]
    done = run(words, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("nothing is recorded on") == 1, done.stderr
    assert not list(folder.iterdir())


def in_each_rank(mpi: Mpi, ranks: int, folder: Path) -> list[str]:
    palmette = [sys.executable, "-m", "palmette.cli.main", "run", "--trace", str(folder)]
    return [*mpi.launch(ranks), *palmette, str(mpi.program("calls")), "--rounds", "2"]


def test_ranks_that_start_palmette_themselves_are_recorded_all(mpi: Mpi, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    done = run(in_each_rank(mpi, 6, folder), mpi.environment(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(process.recorded.rank for process in read_job(folder).processes) == list(range(6))
    # In the folder of an earlier job none is: all go on, and one says it.
    before = {path: path.stat().st_size for path in folder.iterdir()}
    again = run(in_each_rank(mpi, 6, folder), mpi.environment(), tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("holds the recording of another job") == 1, again.stderr
    assert {path: path.stat().st_size for path in folder.iterdir()} == before


def test_a_benchmark_needs_no_env_on_path(mpi: Mpi, tmp_path: Path) -> None:
    environment = {**mpi.environment(), "PATH": str(tmp_path), "PALMETTE_MPI_MPICH": str(mpi.installation.prefix)}
    words = ["bench", "barrier", "-n", "2", "--mpi", "mpich", "--seconds", "0.01", "--store", "runs.sqlite"]
    done = run([sys.executable, "-m", "palmette.cli.main", *words], environment, tmp_path)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    assert "internal error" not in done.stderr, done.stderr
