"""Answers that are kept on disk: never wrong, never in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from palmette.mpi.launch import identify, kept


def test_what_is_kept_is_recalled_for_its_key_only(tmp_path: Path) -> None:
    kept.keep("thing", ["a", 1], {"x": [1, None]})
    assert kept.recall("thing", ["a", 1]) == {"x": [1, None]}
    assert kept.recall("thing", ["a", 2]) is None
    assert kept.recall("other", ["a", 1]) is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["palmette"]


def test_another_version_of_palmette_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept.keep("thing", "k", 1)
    monkeypatch.setattr(kept, "_generation", lambda: [0, 0])
    assert kept.recall("thing", "k") is None


@pytest.mark.parametrize("contents", ["", "{", "[]", '{"key": "other", "value": 1}', '{"value": 1}'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, contents: str) -> None:
    kept.keep("thing", "k", 1)
    (path,) = (tmp_path / "cache" / "palmette").iterdir()
    path.write_text(contents, encoding="utf-8")
    assert kept.recall("thing", "k") is None
    kept.keep("thing", "k", 2)
    assert kept.recall("thing", "k") == 2


@pytest.mark.parametrize("base", ["/dev/null", "/proc/none", "relative"])
def test_a_folder_that_can_not_be_written_is_no_error(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    monkeypatch.setenv("HOME", "/dev/null/home")
    monkeypatch.chdir(tmp_path)
    kept.keep("thing", "k", 1)
    assert kept.recall("thing", "k") is None
    monkeypatch.delenv("HOME")
    kept.keep("thing", "k", 1)
    assert list(tmp_path.iterdir()) == []


def test_there_are_never_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_ENTRIES", 8)
    for number in range(40):
        kept.keep("thing", number, number)
    entries = list((tmp_path / "cache" / "palmette").iterdir())
    assert len(entries) <= 8
    assert not [entry for entry in entries if entry.name.startswith(".")]
    kept.keep("thing", "long", "x" * (kept.MAX_BYTES + 1))
    assert kept.recall("thing", "long") is None


def test_what_somebody_else_wrote_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.keep("thing", "k", 1)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kept.recall("thing", "k") is None


def test_a_launcher_is_asked_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, asked = tmp_path / "mpiexec", tmp_path / "asked"

    def install(text: str) -> None:
        launcher.write_text(f"#!/bin/sh\necho once >>{asked}\necho '{text}'\n", encoding="utf-8")
        launcher.chmod(0o755)

    def kinds(times: int) -> set[str | None]:
        found = set()
        for _ in range(times):
            identify.cache_clear()  # as in another process
            answer = identify(launcher)
            found.add(answer.kind if answer else None)
        return found

    install("slurm 25.05.3")
    assert kinds(3) == {"srun"}
    assert asked.read_text(encoding="utf-8").count("once") == 1
    install("mpirun (Open MPI) 4.1.4")
    assert kinds(3) == {"prrte"}
    assert asked.read_text(encoding="utf-8").count("once") == 2
    # A script of that name may start what modules have loaded.
    monkeypatch.setenv("LOADEDMODULES", "intel-mpi")
    assert kinds(2) == {"prrte"}
    assert asked.read_text(encoding="utf-8").count("once") == 3
