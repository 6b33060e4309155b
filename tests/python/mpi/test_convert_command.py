"""`palmette convert`: parts of a recording, what it refuses, output that is replaced whole or not at all."""

from __future__ import annotations

import csv
import json
import shlex
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palmette.cli import convert as cli
from palmette.record.formats import table
from palmette.record.reading import read_job

from . import readers
from .conftest import _installed

pytestmark = pytest.mark.mpi

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "convert.md"
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace and a profile of the same program: `calls`, `sums`."""
    mpi = _installed("mpich", tmp_path_factory.mktemp("recorded"))
    for mode, name in (("TRACE", "calls"), ("PROFILE", "sums")):
        ran = mpi.run(4, "calls", "--rounds", 2, settings={f"PALMETTE_{mode}": str(mpi.directory / name)})
        assert ran.status == 0, ran.text
    return mpi.directory


@pytest.fixture
def here(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, an empty one but for links to both recordings."""
    for name in ("calls", "sums"):
        (tmp_path / name).symlink_to(recorded / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_window_has_the_calls_that_overlap_it(palmette: Call, here: Path) -> None:
    job = read_job(here / "calls")
    begin_ns = min(process.recorded.begin_real_ns for process in job.processes)
    middle = job.processes[1].calls()[60]
    from_ns = middle.begin_real_ns - begin_ns - 1_000_000
    until_ns = from_ns + 3_000_000
    result = palmette(
        "convert", "calls", "--to", "csv", "-o", "part.csv", "--from", f"{from_ns}ns", "--until", f"{until_ns}ns",
        "--ranks", "1,2-3",
    )  # fmt: skip
    assert result.status == 0, result.err
    expected = [
        (process.recorded.rank, call.function, call.is_request) for process in job.processes[1:]
        for call in process.calls()
        if call.begin_real_ns - begin_ns < until_ns
        and call.begin_real_ns - begin_ns + int(call.seconds * 1e9 + 1e-3) >= from_ns
    ]  # fmt: skip
    assert 0 < len(expected) < 3 * 158
    found = [(int(row["rank"]), row["function"], row["is_request"] == "1") for row in rows_of(here / "part.csv")]
    assert found == expected
    # Sums of a window are those of its calls.
    words = ("--from", f"{from_ns}ns", "--until", f"{until_ns}ns", "--ranks", "1-3")
    assert palmette("convert", "calls", "--to", "sqlite", "-o", "part.db", *words).status == 0
    with closing(sqlite3.connect(here / "part.db")) as database:
        assert database.execute("SELECT sum(calls) FROM sums").fetchone() == (len(expected),)
        whole = database.execute(
            "SELECT count(*) FROM messages m JOIN calls s ON s.id = send JOIN calls r ON r.id = receive"
        ).fetchone()
        assert whole == database.execute("SELECT count(*) FROM messages").fetchone()


def test_a_part_of_the_messages_is_written_with_both_ends(palmette: Call, here: Path) -> None:
    otf2 = readers.package("otf2")
    assert palmette("convert", "calls", "--to", "otf2", "-o", "part", "--ranks", "0,1", "--from", "1ms").status == 0
    with otf2.reader.open("part/traces.otf2") as archive:
        kinds = [type(event).__name__ for _, event in archive.events]
        assert len(list(archive.definitions.location_groups)) == 4, "communicators have ranks that aren't shown"
    sends = kinds.count("MpiSend") + kinds.count("MpiIsend")
    assert 0 < sends == kinds.count("MpiRecv") + kinds.count("MpiIrecv") < 76


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("calls", "--to", "otf3", "-o", "x"), "'otf3' (did you mean otf2?) is not one of"),
        (("calls", "--to", "csv"), "Missing option '-o'"),
        (("nowhere", "--to", "csv", "-o", "x"), "no such folder"),
        (("empty", "--to", "csv", "-o", "x"), "it holds no recording yet"),
        (("sums", "--to", "perfetto", "-o", "x"), "a profile has no single calls, which perfetto needs"),
        (("sums", "--to", "otf2", "-o", "x"), "a profile has no single calls, which otf2 needs"),
        (("sums", "--to", "chrome", "-o", "x"), "a profile has no single calls, which chrome needs"),
        (("sums", "--to", "csv", "-o", "x", "--from", "1s"), "a profile has no single calls, of which some"),
        (("calls", "--to", "csv", "-o", "x", "--from", "1h"), "no call is in this window; the recording goes from 0"),
        (("calls", "--to", "otf2", "-o", "x", "--from", "1h"), "no call is in this window; the recording goes from 0"),
        (("calls", "--to", "csv", "-o", "x", "--from", "2s", "--until", "1s"), "from 2 s until 1 s is empty"),
        (("calls", "--to", "csv", "-o", "x", "--until", "0s"), "from 0 s until 0 s is empty"),
        (("calls", "--to", "csv", "-o", "x", "--until", "soon"), "'soon' is not a duration"),
        (("calls", "--to", "csv", "-o", "x", "--ranks", "2-9"), "rank 4 isn't recorded here; ranks 0 to 3 are"),
        (("calls", "--to", "csv", "-o", "x", "--ranks", "a"), "'a' names no ranks; write them like 0-3,8"),
        (("calls", "--to", "csv", "-o", "x", "--ranks", "3-1"), "'3-1' names no ranks"),
        (("calls", "--to", "csv", "-o", "x", "--ranks", "0-99999999999"), "more ranks than a recording can have"),
        (("calls", "--to", "csv", "-o", "empty"), "empty: this is a folder; name a file with -o"),
        (("calls", "--to", "otf2", "-o", "calls"), "it is there and no OTF2 archive; name another folder"),
        (("calls", "--to", "otf2", "-o", "empty"), "it is there and no OTF2 archive; name another folder"),
        (("calls", "--to", "otf2", "-o", "old.csv"), "it is there and no OTF2 archive; name another folder"),
        (("calls", "--to", "sqlite", "-o", "old.csv/x"), "can't write old.csv/x: "),
        (("calls", "--to", "csv", "-o", "no/where/x"), "can't write no/where/x: No such file or directory"),
        (("calls", "--to", "csv", "-o", ""), "the output has no name"),
    ],
)
def test_what_can_not_be_is_refused_in_one_line(
    palmette: Call, here: Path, words: tuple[str, ...], reason: str
) -> None:
    (here / "empty").mkdir()
    (here / "old.csv").write_text("old")
    before = sorted(entry.name for entry in here.iterdir())
    result = palmette("convert", *words)
    assert result.status == 2
    assert reason in result.err
    assert (result.out, result.err.count("\n")) == ("", 1), result.err
    assert sorted(entry.name for entry in here.iterdir()) == before, "nothing is left behind"
    assert (here / "old.csv").read_text() == "old"


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    palmette: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "otf2", None)
    result = palmette("convert", "calls", "--to", "otf2", "-o", "x")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "pip install otf2" in result.err
    assert not (here / "x").exists()


def test_output_is_replaced_whole_or_not_at_all(palmette: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = here / "old.csv"
    old.write_text("old")
    old.chmod(0o640)
    link = here / "link.csv"
    link.symlink_to(old)

    def half(path: Path, _selection: object) -> None:
        path.write_text("half of it")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(table, "write", half)
        result = palmette("convert", "calls", "--to", "csv", "-o", "link.csv")
    assert result.status == 2
    assert "can't write link.csv: No space left on device; choose another place with -o" in result.err
    assert old.read_text() == "old"
    assert palmette("convert", "calls", "--to", "csv", "-o", "link.csv").status == 0
    assert len(rows_of(old)) == 648
    assert link.is_symlink() and old.stat().st_mode & 0o777 == 0o640
    assert {entry.name for entry in here.iterdir()} == {"calls", "sums", "old.csv", "link.csv"}


def test_an_archive_replaces_an_archive(palmette: Call, here: Path) -> None:
    otf2 = readers.package("otf2")
    counts = []
    for ranks in ("0-3", "0"):
        assert palmette("convert", "calls", "--to", "otf2", "-o", "archive", "--ranks", ranks).status == 0
        with otf2.reader.open("archive/traces.otf2") as archive:
            counts.append(sum(type(event).__name__ == "Enter" for _, event in archive.events))
    assert counts == [496 + 4, 124 + 1]
    failed = palmette("convert", "calls", "--to", "otf2", "-o", "archive", "--from", "1h")
    assert failed.status == 2
    with otf2.reader.open("archive/traces.otf2") as archive:
        assert sum(type(event).__name__ == "Enter" for _, event in archive.events) == 125
    assert {entry.name for entry in here.iterdir()} == {"calls", "sums", "archive"}


def test_json_says_how_much_was_converted(palmette: Call, here: Path) -> None:
    document = json.loads(palmette("convert", "calls", "--to", "perfetto", "-o", "x", "--json").out)
    assert document | {"in_mpi_s": 0} == {
        "format": "perfetto", "output": "x", "ranks": 4, "calls": 496, "requests": 152, "messages": 76,
        "in_mpi_s": 0, "notes": [],
    }  # fmt: skip
    assert document["in_mpi_s"] > 0


def test_a_long_conversion_says_what_makes_it_shorter(
    palmette: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "SLOW_CALLS", 600)
    result = palmette("convert", "calls", "--to", "csv", "-o", "x")
    assert (result.status, result.err.count("\n")) == (0, 1)
    assert "648 calls to read; --from, --until and --ranks take some of them" in result.err
    assert palmette("convert", "calls", "--to", "csv", "-o", "x", "--ranks", "0").err == ""


def test_text_goes_to_a_pipe(palmette: Call, here: Path) -> None:
    result = palmette("convert", "sums", "--to", "folded", "-o", "/dev/stdout")
    assert result.status == 0
    assert "496 calls of 4 ranks: /dev/stdout" in result.err


def examples() -> list[tuple[str, str]]:
    """Return the commands of the guide, each with the line that it prints, empty where none stands there."""
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    found = []
    for line, below in pairwise(lines):
        if line.startswith("    $ palmette convert "):
            found.append((line.removeprefix("    $ "), below.strip()))
        elif line.startswith("    palmette convert "):
            found.append((line.partition("  #")[0].strip(), ""))
    return found


@pytest.mark.parametrize(("command", "output"), examples())
def test_an_example_of_the_guide_does_what_the_guide_says(
    palmette: Call, here: Path, command: str, output: str
) -> None:
    words = shlex.split(command)[1:]
    if "--from" in words:  # of a longer job with more ranks
        words[words.index("--from") + 1] = "1ms"
        words[words.index("--ranks") + 1] = "0-3"
    if "otf2" in words:
        readers.package("otf2")
    result = palmette(*words)
    assert result.status == 0, result.err
    assert not output or result.out.strip() == output


def test_the_guides_query_is_one(palmette: Call, here: Path) -> None:
    assert palmette("convert", "calls", "--to", "sqlite", "-o", "x").status == 0
    text = GUIDE.read_text(encoding="utf-8")
    query = text[text.index("SELECT s.rank") : text.index("4 DESC;") + 7]
    with closing(sqlite3.connect(here / "x")) as database:
        rows = database.execute(query).fetchall()
    assert {(sender, receiver) for sender, receiver, *_ in rows} == {(rank, (rank + 1) % 4) for rank in range(4)}
    assert sum(count for _, _, count, _ in rows) == 76
