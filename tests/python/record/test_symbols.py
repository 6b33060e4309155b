"""Places in words: what takes long says so, what isn't told is a note, and large tables of symbols are read quickly."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from palmette.record import symbols
from palmette.record.symbols import Resolver


@dataclass(frozen=True)
class Frame:
    module: str
    build_id: str
    offset: int


@pytest.fixture
def frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """Return frames in two functions of a library with debug information."""
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "two.c", tmp_path / "libtwo.so"
    source.write_text("int one(int x) {\n  return x + 1;\n}\nint two(int x) {\n  return x * x;\n}\n", encoding="utf-8")
    subprocess.run([cc, "-g", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    with library.open("rb") as file:
        found = {
            symbol.name: symbol["st_value"] for symbol in ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        }
    monkeypatch.setattr(symbols, "_READ", defaultdict(symbols._Read))
    monkeypatch.setattr(symbols, "_SILENT", [])
    return [Frame(str(library), "", found[name] + 5) for name in ("one", "two")]


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    """Let only these programs be found."""
    folder = folder / "bin"
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def names(resolver: Resolver, frames: list[Frame]) -> list[str]:
    return [str(resolver.places(frame)[0]) for frame in frames]


def test_lines_are_found(frames: list[Frame], capfd: pytest.CaptureFixture[str]) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("no binutils")
    resolver = Resolver()
    resolver.add(frames)
    assert names(resolver, frames) == ["two.c:1", "two.c:4"]
    assert resolver.notes == []
    assert capfd.readouterr() == ("", "")


def test_an_addr2line_that_does_not_answer_is_told_and_not_asked_again(
    frames: list[Frame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sleep = shutil.which("sleep")
    # What it starts holds the pipe as well.
    programs(tmp_path, monkeypatch, addr2line=f"{sleep} 1000; echo")
    monkeypatch.setattr(symbols, "ADDR2LINE_S", 0.3)
    monkeypatch.setattr(symbols, "QUIET_S", 0.1)
    resolver = Resolver()
    resolver.add(frames)
    assert names(resolver, frames) == ["one", "two"], "by the symbol table"
    (note,) = resolver.notes
    assert "addr2line didn't tell 2 of 2 places in" in note and "libtwo.so" in note
    assert "palmette: reading lines and names of libtwo.so" in capfd.readouterr().err
    again = Resolver()
    shutil.copy(frames[0].module, tmp_path / "libother.so")
    others = [Frame(str(tmp_path / "libother.so"), "", frame.offset) for frame in frames]
    again.add([*frames, *others])
    assert names(again, others) == ["one", "two"]
    assert note in again.notes, "also where another part of the program has asked before"
    assert any("doesn't answer" in one for one in again.notes)


def test_what_was_answered_until_then_is_kept(
    frames: list[Frame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = shutil.which("sleep")
    first = frames[0].offset - 1
    programs(tmp_path, monkeypatch, addr2line=f"echo {first:#x}; echo one; echo /src/two.c:1; {sleep} 1000")
    monkeypatch.setattr(symbols, "ADDR2LINE_S", 2.0)
    resolver = Resolver()
    resolver.add(frames)
    assert names(resolver, frames) == ["two.c:1", "two"]
    assert "didn't tell 1 of 2 places" in resolver.notes[0]


@pytest.mark.parametrize(
    ("text", "said"), [(None, "isn't here (a part of binutils)"), ("exit 1", "tells nothing of")], ids=["none", "fails"]
)
def test_without_lines_functions_are_named_and_it_is_said(
    frames: list[Frame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, said: str
) -> None:
    programs(tmp_path, monkeypatch, **({"addr2line": text} if text else {}))
    resolver = Resolver()
    resolver.add(frames)
    assert names(resolver, frames) == ["one", "two"]
    (note,) = resolver.notes
    assert said in note


def test_names_that_c_plus_plus_filt_does_not_tell_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: list[Frame]
) -> None:
    place = symbols.Place("_Z3onei", "one.cpp", 1)
    programs(tmp_path, monkeypatch, **{"c++filt": f"{shutil.which('sleep')} 1000"})
    monkeypatch.setattr(symbols, "DEMANGLING_S", 0.2)
    notes: list[str] = []
    found = symbols._demangled({1: (place,)}, symbols._Asked(1), notes)
    assert found == {1: (place,)}
    assert "gave no answer" in notes[0]
