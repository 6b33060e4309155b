"""Which MPI a program uses, told by its file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.mpi import elf, program
from palmette.mpi.errors import RunError
from palmette.mpi.program import check_privileges, find_program, linked_behind, linked_itself

Build = Callable[..., Path]
PATH = {"PATH": os.environ["PATH"]}


def abi(path: Path, environment: dict[str, str] | None = None) -> str | None:
    environment = {**PATH, **(environment or {})}
    evidence = linked_itself(find_program(str(path), environment, path.parent), environment).evidence
    return evidence.abi if evidence else None


@pytest.mark.parametrize(
    ("library", "expected"),
    [
        ("libmpi.so.12", "mpich"),
        ("libmpi_cray.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        ("libmpi_gnu_123.so.12", "mpich"),
        ("libmpi.so.40", "ompi"),
        ("libmpi_abi.so.1", "abi"),
        ("libmpicxx.so.99", None),
        ("libmpi_mpifh.so.99", None),
        ("libm.so.6", None),
    ],
)
def test_the_library_tells_the_abi(build: Build, library: str, expected: str | None) -> None:
    assert abi(build("app", needs=[library])) == expected


@pytest.mark.parametrize("library", ["libmpi.so.20", "libmpi.so.1", "libmpich.so.10", "libmpi_ilp64.so.4"])
def test_an_mpi_of_an_unknown_abi_is_refused(build: Build, library: str) -> None:
    with pytest.raises(RunError, match=f"needs {library}, an MPI that palmette has no library for"):
        abi(build("app", needs=[library]))


def test_a_library_that_needs_mpi_is_followed_along_ld_library_path(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    build("libsolver.so", needs=["libmpi.so.40"], library=True, where=folder)
    app = build("app", needs=["libsolver.so"])
    assert abi(app) is None
    assert abi(app, {"LD_LIBRARY_PATH": f"/nowhere:{folder}"}) == "ompi"


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_a_library_is_followed_along_the_programs_own_path(build: Build, tmp_path: Path, tags: str) -> None:
    build("libsolver.so", needs=["libmpi_abi.so.1"], library=True, where=tmp_path / "built" / "deep" / "lib")
    app = build("bin/app", needs=["libsolver.so"], options=[f"-Wl,{tags},-rpath,$ORIGIN/../deep/lib"])
    assert abi(app) == "abi"


def test_an_rpath_serves_the_libraries_of_libraries_and_a_runpath_does_not(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "built" / "lib"
    build("libinner.so", needs=["libmpi.so.12"], library=True, where=folder)
    build("libouter.so", needs=["libinner.so"], library=True, where=folder)
    for tags, expected in (("--disable-new-dtags", "mpich"), ("--enable-new-dtags", None)):
        app = build(f"app{tags}", needs=["libouter.so"], options=[f"-Wl,{tags},-rpath,{folder}"])
        assert abi(app) == expected


def test_libraries_that_need_each_other_end_the_search(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "circle"
    build("liba.so", needs=["libb.so"], library=True, where=folder)
    build("libb.so", needs=["liba.so", "libmpi.so.12"], library=True, where=folder)
    assert abi(build("app", needs=["liba.so"]), {"LD_LIBRARY_PATH": str(folder)}) == "mpich"


def test_two_mpis_in_one_program_are_refused(build: Build, tmp_path: Path) -> None:
    build("libold.so", needs=["libmpi.so.40"], library=True, where=tmp_path)
    app = build("app", needs=["libmpi.so.12", "libold.so"])
    with pytest.raises(RunError, match=r"needs two MPIs, libmpi.so.12 \(for app\) and libmpi.so.40 \(for libold.so\)"):
        abi(app, {"LD_LIBRARY_PATH": str(tmp_path)})


STATIC = ["-static", "-nostdlib", "-s"]


def test_a_static_program_with_an_mpi_is_refused_also_without_names(build: Build) -> None:
    source = 'const char *volatile message = "Fatal error in PMPI_Init"; void _start(void) { for (;;) {} }'
    with pytest.raises(RunError, match="is linked statically"):
        abi(build("app", options=STATIC, source=source))


def test_a_static_program_without_an_mpi_names_none(build: Build) -> None:
    app = build("app", options=STATIC, source="void _start(void) { for (;;) {} }")
    found = linked_itself(find_program(str(app), PATH, app.parent), PATH)
    assert (found.evidence, found.is_static) == (None, True)


def test_an_mpi_inside_of_the_program_is_refused(build: Build) -> None:
    # As in an MPI: linkers store the shorter name as the end of the longer one.
    source = "int PMPI_Init(void) { return 0; } int MPI_Init(void) { return 1; } int main(void) { return MPI_Init(); }"
    with pytest.raises(RunError, match="holds its MPI in itself"):
        abi(build("app", source=source))


def test_a_script_is_run_by_its_interpreter(build: Build, tmp_path: Path) -> None:
    interpreter = build("mpipython", needs=["libmpi.so.40"])
    script = tmp_path / "script"
    script.write_text(f"#!{interpreter} -u\n", encoding="utf-8")
    script.chmod(0o755)
    assert abi(script) == "ompi"
    script.write_text("#!/usr/bin/env -S mpipython -u\n", encoding="utf-8")
    assert abi(script, {"PATH": f"{interpreter.parent}:{os.environ['PATH']}"}) == "ompi"
    assert find_program(str(script), {"PATH": str(interpreter.parent)}, tmp_path).is_script


def test_a_text_without_a_first_line_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exec ./app\n", encoding="utf-8")
    script.chmod(0o755)
    found = find_program(str(script), PATH, tmp_path)
    assert found.executed.resolve() == Path("/bin/sh").resolve()
    assert linked_itself(found, PATH).evidence is None


def test_a_program_that_can_not_be_read_names_no_mpi(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build("app", needs=["libmpi.so.12"])
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path == app:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert linked_itself(find_program(str(app), PATH, tmp_path), PATH).evidence is None


def test_scripts_that_run_each_other_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "snake"
    script.write_text(f"#!{script}\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(RunError, match="interpreters stand behind it"):
        find_program(str(script), PATH, tmp_path)


@pytest.mark.parametrize("contents", [b"", b"no\0program", b"\x7fELF", b"\x7fELF" + b"\0" * 60, b"#!\n"])
def test_a_file_that_is_no_program_is_refused(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(contents)
    path.chmod(0o755)
    with pytest.raises(RunError, match="neither a program"):
        find_program("./thing", PATH, tmp_path)


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"\./app: no such program here; correct the name, or say --abi"):
        find_program("./app", PATH, tmp_path)


def test_a_wrapper_is_looked_behind(build: Build) -> None:
    app = build("app", needs=["libmpi.so.12"])
    wrapper = find_program("env", PATH, app.parent)
    assert linked_itself(wrapper, PATH).evidence is None
    library = build("libx.so", library=True, source='const char *x(void) { return "MPI_Init"; }')
    library.chmod(0o755)
    behind = linked_behind(wrapper, ["A=1", "-u", "no such thing", str(library), "./app", "7"], PATH, app.parent)
    assert behind is not None and behind.evidence is not None
    assert behind.evidence.abi == "mpich"
    assert linked_behind(wrapper, ["ls"], PATH, app.parent) is None


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_a_program_with_more_rights_than_its_caller_is_refused(build: Build, mode: int) -> None:
    app = build("app", needs=["libmpi.so.12"])
    check_privileges(find_program(str(app), PATH, app.parent))
    app.chmod(mode)
    if app.stat().st_mode & 0o6000 == 0:
        pytest.skip("this file system keeps no set-user-ID bit")
    with pytest.raises(RunError, match="set-user-ID"):
        check_privileges(find_program(str(app), PATH, app.parent))


def test_what_was_found_is_kept_until_a_file_changes(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    build("libsolver.so", needs=["libmpi.so.40"], library=True, where=second)
    app = build("app", needs=["libsolver.so"])
    paths = {"LD_LIBRARY_PATH": f"{first}:{second}"}
    time.sleep(2e-9 * program.CLOCK_NS)  # younger files are not trusted to be at rest
    assert abi(app, paths) == "ompi"

    def fail(path: Path) -> None:
        raise AssertionError(f"{path} is read again")

    with monkeypatch.context() as patch:
        patch.setattr(program, "read_binary", fail)
        assert abi(app, paths) == "ompi"
        with pytest.raises(AssertionError, match="is read again"):
            abi(app, {"LD_LIBRARY_PATH": str(first)})
    # A library that comes to where one was looked for in vain goes before the one that was found.
    build("libsolver.so", needs=["libmpi.so.12"], library=True, where=first)
    elf.read_binary.cache_clear()
    assert abi(app, paths) == "mpich"
    build("app", needs=["libmpi_abi.so.1"])
    elf.read_binary.cache_clear()
    assert abi(app, paths) == "abi"


def test_what_was_found_from_the_working_directory_is_not_kept(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build("app", needs=["libsolver.so"])
    for name, library in (("one", "libmpi.so.40"), ("two", "libmpi.so.12")):
        build("libsolver.so", needs=[library], library=True, where=tmp_path / name / "lib")
        monkeypatch.chdir(tmp_path / name)
        elf.read_binary.cache_clear()
        assert abi(app, {"LD_LIBRARY_PATH": "lib"}) == {"one": "ompi", "two": "mpich"}[name]


@pytest.mark.parametrize("runtime", ["libasan.so.8", "libclang_rt.asan-x86_64.so", "libclang_rt.asan.so"])
def test_the_sanitizers_runtime_is_found(build: Build, tmp_path: Path, runtime: str) -> None:
    library = build(runtime, library=True, where=tmp_path / "lib")
    app = build("app", needs=["libmpi.so.12", runtime])
    found = linked_itself(find_program(str(app), PATH, tmp_path), {**PATH, "LD_LIBRARY_PATH": str(tmp_path / "lib")})
    assert found.asan == library
    plain = build("plain", needs=["libmpi.so.12", "libasan_helper.so"])
    assert linked_itself(find_program(str(plain), PATH, tmp_path), PATH).asan is None
