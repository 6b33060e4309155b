"""Every target of `make help`: that it works in a fresh clone, and that none undoes what another one has made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FRESH = "run in a fresh clone by this file, in make test-long"
HERE = "run in this clone by this file, in make test-long"
TARGETS = {
    **dict.fromkeys(
        ("build", "demo", "wheel", "release", "install", "simulate", "test", "lint", "format", "docs"), FRESH
    ),
    **dict.fromkeys(("clean", "distclean"), FRESH),
    **dict.fromkeys(("sanitize", "tidy", "bench"), HERE),
    "arm64": "make test-long ends with its tests",
    "test-long": "runs this file's long tests",
}
"""What is done with each target of `make help`."""
INTERNAL = {"help", "debian", "tested", "arm64-built"}
IN_SMALL = {
    "test": ["TESTS=quiet -- -k every_file_names_the_version"],
    "format": ["FILES=tools/lint.py"],
    "tidy": ["TIDY=palmette_base"],
    "bench": ["BENCH=gather --sizes 1K --seconds 20ms --min-iterations 3"],
}
"""What is given to targets that would take long, or that want files."""


def environment() -> dict[str, str]:
    """What make gets: nothing of a make that runs this test."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PALMETTE_"))}


def in_folder(folder: Path, *words: str | Path) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-5000:]}"
    return done.stdout


def test_help_names_every_target_and_each_is_run_somewhere() -> None:
    helped = set(re.findall(r"\bmake ([\w-]+)", in_folder(ROOT, "make", "help")))
    assert helped == set(TARGETS)
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    phony = {word for line in re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE) for word in line.split()}
    assert phony == helped | INTERNAL


def test_what_runs_at_each_landing_has_the_tests_and_the_documentation() -> None:
    words = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1].split()
    assert {"test", "docs"} <= set(words)


class FreshClone:
    """A clone in a folder of its own, and what the targets of make do to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = in_folder(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        self.files = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
        for name in self.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        self.library = folder / "python" / "palmette" / "lib" / "libpalmette_mpich.so"
        self.libraries = [self.library]
        self.log: set[tuple[str, str, str]] = set()
        self.gone: list[str] = []

    def make(self, target: str, *words: str, ccache: bool = True) -> str:
        """Run a target, with this machine's ccache or without; collect what it compiles, and which of the libraries
        that were there is missing meanwhile."""
        command = ["make", target, *IN_SMALL.get(target, []), *words]
        found = shutil.which("ccache")
        if found and not ccache and os.geteuid() == 0:
            hide = 'mount --bind /dev/null "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", hide, found, *command]
        ended = threading.Event()

        def watch() -> None:
            there: set[Path] = set()
            while not ended.wait(0.02):
                now = {library for library in self.libraries if library.exists()}
                self.gone += [f"make {target}: {library}" for library in there - now]
                there |= now

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            printed = in_folder(self.folder, *command)
        finally:
            ended.set()
            watcher.join()
        log = self.folder / "build" / "release" / ".ninja_log"
        for line in log.read_text(encoding="utf-8").splitlines()[1:] if log.exists() else ():
            start, end, _, name, _ = line.split("\t")
            self.log.add((start, end, name))
        return printed

    def compiled_twice(self) -> list[str]:
        """Return the units that were compiled more than once."""
        count = Counter(name for _, _, name in self.log if name.endswith(".o"))
        return sorted(name for name, times in count.items() if times > 1)

    def left(self) -> set[str]:
        """Return the files that weren't in the clone, without what Python and its tools remember."""
        files = (file for file in self.folder.rglob("*") if file.is_file() or file.is_symlink())
        names = {str(file.relative_to(self.folder)) for file in files}
        return {name for name in names - self.files if not re.search(r"__pycache__|_cache/|\.egg-info", name)}


@pytest.fixture
def fresh() -> Iterator[FreshClone]:
    """A fresh clone; removed at the end, for it has gigabytes."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: which files belong to it isn't known")
    # Not in pytest's folder, whose path is too long for sockets.
    folder = Path(tempfile.mkdtemp(prefix="fresh"))
    yield FreshClone(folder)
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.root
def test_targets_in_a_fresh_clone_work_and_undo_nothing(fresh: FreshClone, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    install = f"PREFIX={prefix}"
    fresh.make("demo", ccache=False)
    fresh.make("release")  # which makes the wheel and the site first
    fresh.make("docs")
    fresh.make("build")
    for target in ("test", "lint", "format", "simulate"):
        fresh.make(target)
    fresh.make("install", install)
    fresh.libraries += prefix.rglob("libpalmette_mpich.so")
    assert len(fresh.libraries) == 3
    before = sorted(file.name for file in fresh.library.parent.iterdir())
    fresh.make("demo")
    fresh.make("build", ccache=False)
    fresh.make("install", install)
    assert fresh.compiled_twice() == [] and fresh.gone == []
    assert sorted(file.name for file in fresh.library.parent.iterdir()) == before
    assert "palmette" in in_folder(tmp_path, prefix / "bin" / "palmette", "--version")
    assert {file.suffix for file in (fresh.folder / "dist").iterdir()} == {".whl", ".gz"}
    assert (fresh.folder / "build" / "docs-site" / "index.html").is_file()
    # What README promises of make build.
    export = 'export PATH="$PWD/.venv/bin:$PWD/.mpi/mpich/bin:$PATH" LD_LIBRARY_PATH="$PWD/.mpi/mpich/lib"'
    run = "palmette run --report mpiexec -n 4 python examples/first/first.py"
    assert "right" in in_folder(fresh.folder, "bash", "-c", f"{export}; {run}")
    fresh.make("clean")
    fresh.make("build")
    fresh.make("distclean")
    assert fresh.left() == set()


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize("target", [name for name, what in TARGETS.items() if what == HERE])
def test_a_target_works(target: str) -> None:
    in_folder(ROOT, "make", target, *IN_SMALL.get(target, []))
