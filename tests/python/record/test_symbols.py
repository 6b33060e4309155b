"""Places in words: what takes long says so, what isn't told is a note, and large tables of symbols are read quickly."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from palmette.record import symbols
from palmette.record.structure.names import Names
from palmette.record.symbols import Place, Resolver


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
    monkeypatch.setattr(symbols, "_READ", defaultdict(symbols._ModulePlaces))
    return [Frame(str(library), "", found[name] + 5) for name in ("one", "two")]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what lets a shell script read modules."""

    def replace(text: str) -> None:
        (tmp_path / "worker").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / "worker").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "worker"))

    return replace


def names(resolver: Resolver, frames: list[Frame]) -> list[str]:
    return [str(resolver.places(frame)[0]) for frame in frames]


def resolved(frames: list[Frame]) -> Resolver:
    resolver = Resolver()
    resolver.add(frames)
    return resolver


def test_lines_are_found(
    frames: list[Frame], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(symbols, "QUIET_S", 600.0)
    resolver = resolved(frames)
    assert names(resolver, frames) == ["two.c:1", "two.c:4"]
    assert [note for note in resolver.notes if "libdw isn't here" not in note] == []
    assert capfd.readouterr() == ("", "")


def test_a_reader_that_does_not_answer_is_told(
    frames: list[Frame], worker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    # What it starts holds the pipe as well.
    worker("sleep 1000; echo")
    monkeypatch.setattr(symbols, "READING_S", 0.3)
    monkeypatch.setattr(symbols, "QUIET_S", 0.1)
    resolver = resolved(frames)
    assert names(resolver, frames) == ["one", "two"], "by the symbol table"
    (note,) = resolver.notes
    assert "libtwo.so weren't all read within 0 s: 0 of 2 places are known" in note
    assert "palmette: reading lines, names and loops of libtwo.so" in capfd.readouterr().err
    assert note in resolved(frames).notes, "also where another part of the program has asked before"


@pytest.mark.parametrize(
    ("end", "said"), [("sleep 1000", "within 2 s"), ("kill -SEGV $$", "(SIGSEGV)"), ("exit 3", "(exit status 3)")]
)
def test_what_was_answered_until_then_is_kept(
    frames: list[Frame], worker: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, end: str, said: str
) -> None:
    answers = [{"begins": 0}, {"at": frames[0].offset - 1, "around": [["one", "/src/two.c", 1, []]]}]
    worker("".join(f"echo '{json.dumps(one)}'\n" for one in answers) + end)
    monkeypatch.setattr(symbols, "READING_S", 2.0)
    resolver = resolved(frames)
    assert names(resolver, frames) == ["two.c:1", "two"]
    assert said in resolver.notes[0] and "1 of 2 places are known" in resolver.notes[0]


def test_modules_behind_one_that_cannot_be_read_are_read(
    frames: list[Frame], worker: Callable[[str], None], tmp_path: Path
) -> None:
    # Of two modules it tells the second one's lines, when it is asked for that alone.
    other = tmp_path / "libother.so"
    shutil.copy(frames[0].module, other)
    answers = [{"begins": 0}, {"at": frames[0].offset - 1, "around": [["one", "/src/two.c", 1, []]]}, {"begins": 1}]
    said = "".join(f"echo '{json.dumps(one)}'; " for one in answers)
    worker(f"read one; read two && kill -SEGV $$; {said}")
    both = [frames[0], Frame(str(other), "", frames[0].offset)]
    resolver = resolved(both)
    assert names(resolver, both) == ["one", "two.c:1"]
    assert len(resolver.notes) == 1


def test_a_damaged_file_is_told_in_a_line(frames: list[Frame], tmp_path: Path) -> None:
    library = Path(frames[0].module)
    whole = library.read_bytes()
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".debug_info")
        begin, length = section["sh_offset"], section["sh_size"]
    for at in range(begin, begin + length, max(7, length // 8)):
        library.write_bytes(whole[:at] + bytes(byte ^ 0xA5 for byte in whole[at : at + 9]) + whole[at + 9 :])
        symbols._READ.clear()
        resolver = resolved(frames)
        assert all(name.startswith(("two.c:", "one", "two")) for name in names(resolver, frames))
        assert all("Traceback" not in note and "\n" not in note for note in resolver.notes)


def test_a_module_that_was_built_anew_is_not_read(frames: list[Frame]) -> None:
    frame = Frame(frames[0].module, "00" * 20, frames[0].offset)
    resolver = resolved([frame])
    assert names(resolver, [frame]) == [f"libtwo.so+{frame.offset:#x}"]
    assert "was built anew since" in resolver.notes[0]


def test_loops_are_frames_of_their_function() -> None:
    outer, inner = Place("loop at a.c:3", "/src/a.c", 3), Place("loop at a.c:4", "/src/a.c", 4)
    place = Place("solve", "/src/a.c", 5, loops=(outer, inner))
    assert place == Place("solve", "/src/a.c", 5), "the same place, whatever is around it"
    assert place.frames == [
        Place("solve", "/src/a.c", 3), Place("loop at a.c:3", "/src/a.c", 4), Place("loop at a.c:4", "/src/a.c", 5),
    ]  # fmt: skip
    assert Place("solve").frames == [Place("solve")]


@pytest.mark.parametrize(
    ("linked", "source"),
    [
        ("_ZN3app4GridD1Ev", "app::Grid::~Grid()"), ("_ZN3app4stepEiPd.constprop.0", "app::step(int, double*)"),
        ("__grid_MOD_smooth", "grid::smooth"), ("_QMgridPsmooth", "grid::smooth"), ("grid_mp_smooth_", "grid::smooth"),
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"), ("main", "main"),
        ("work.cold", "work"), ("_Znonsense", "_Znonsense"),
    ],
)  # fmt: skip
def test_names_are_the_source_s(linked: str, source: str) -> None:
    assert Names().of(linked) == source
