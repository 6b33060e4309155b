"""Libraries below paths that LD_PRELOAD can't name, and on file systems that nothing is executed from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from palmette.mpi import installed
from palmette.mpi.abi import preload_library
from palmette.mpi.errors import RunError
from palmette.mpi.installed import usable

NAME = "libpalmette_mpich.so"


def library(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / NAME).write_text("one")
    return folder / NAME


@pytest.mark.parametrize("odd", ["a b", "a:b", "a,b", "a$LIB", "a;b", "it's"])
def test_a_link_stands_in_for_a_path_that_would_end_too_early(tmp_path: Path, odd: str) -> None:
    path = library(tmp_path / odd / "lib")
    used = usable(path)
    assert used.name == NAME and not installed._SEPARATORS & set(str(used)), "LD_PRELOAD can have it"
    assert used.samefile(path) and used.is_relative_to(tmp_path / "cache")
    assert preload_library("mpich", path.parent) == used == usable(path), "the same each time"


def test_other_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    for name in ("ä", "a%b", "a+b@c", "~x"):
        path = library(tmp_path / name)
        assert usable(path) == path
    program = tmp_path / "a b" / "collbench.mpich"
    program.parent.mkdir()
    program.touch()
    assert usable(program) == program, "a program is no word of LD_PRELOAD"


def noexec_below(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setattr(installed, "is_noexec", lambda folder: any(folder.is_relative_to(one) for one in folders))


def test_a_copy_stands_in_for_what_cannot_be_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = library(tmp_path / "package" / "lib")
    noexec_below(monkeypatch, tmp_path / "package")
    used = usable(path)
    assert used.read_text() == "one" and not used.is_relative_to(tmp_path / "package") and os.access(used, os.X_OK)
    assert usable(path) == used
    path.write_text("another")
    os.utime(path, (1, 1))
    assert usable(path).read_text() == "another", "after the package was installed again"
    assert not list(used.parent.glob(".*")), "nothing is left of its making"


def test_the_next_folder_is_taken_where_the_first_has_the_same_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = library(tmp_path / "package" / "lib")
    monkeypatch.setattr(installed, "_bases", lambda: [tmp_path / "x y", tmp_path / "noexec", tmp_path / "good"])
    noexec_below(monkeypatch, tmp_path / "package", tmp_path / "noexec")
    assert usable(path).is_relative_to(tmp_path / "good")
    monkeypatch.setattr(installed, "_bases", lambda: [tmp_path / "x y", tmp_path / "noexec"])
    with pytest.raises(RunError, match=r"mounted noexec, and nothing can be put in its place .*install palmette in"):
        usable(path)


def test_a_folder_that_others_may_write_to_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = library(tmp_path / "a b")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setattr(installed, "_bases", lambda: [theirs, tmp_path / "link"])
    with pytest.raises(RunError, match="not a folder of yours alone"):
        usable(path)
