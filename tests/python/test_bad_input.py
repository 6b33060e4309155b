"""Whatever a command is given: one line that says what is wrong, status 2, and no traceback."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from palmette.cli import fault
from palmette.cli.main import main
from palmette.files import replaced, write_text


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs that are none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00bad\xff")
    (tmp_path / "latin1").write_bytes(b"\xe4 0 1\n")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "deep.yaml").write_text("- " * 2000 + "a")
    (tmp_path / "cut.json").write_text('{"format": "palmette-report", ')
    (tmp_path / "runs.sqlite").write_text("garbage")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "huge.txt").write_text("h0:1000000000\n")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


ON = ("--machine", "2leaf:4node:2core")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "bytes"),
        ("show", "deep.json"),
        ("show", "folder"),
        ("show", "pipe"),
        ("show", "/dev/zero"),
        ("discover", "--from", "ibnetdiscover", "pipe"),
        ("explain", "gather", *ON, "--table", "pipe"),
        ("map", *ON, "--matrix", "pipe"),
        ("plan", "gather", *ON, "--placement", "pipe"),
        ("plan", "gather", *ON, "--placement", "huge.txt"),
        ("plan", "gather", "--machine", "2node:1000000000core"),
        ("plan", "gather", "--machine", "1000node:100000core"),
        ("plan", "gather", "--machine", ":".join(f"1l{n}" for n in range(500))),
        ("plan", "--flow", "gather", "--machine", "2leaf:2node@1e300GB/s"),
        ("plan", "--predict", "gather", "--machine", "2leaf:2node@1e-300GB/s"),
        ("plan", "gather", *ON, "\x1b--json"),
        ("export", "--format", "ucc-tune", *ON, "-o", ""),
        ("show", "cut.json"),
        ("discover", "--from", "slurm", "deep.yaml"),
        ("discover", "--from", "slurm", "folder"),
        ("discover", "--from", "ibnetdiscover", "bytes"),
        ("plan", "gather", *ON, "--placement", "bytes"),
        ("plan", "gather", *ON, "--placement", "latin1"),
        ("plan", "gather", *ON, "--placement", "folder"),
        ("plan", "gather", *ON, "--ranks", "3000000000"),
        ("plan", "gather", *ON, "--root", "99999999999999999999"),
        ("plan", "gather", "--machine", "1000000000node:4core"),
        ("plan", "gather", "--machine", "2leaf\x1b[2J:4node"),
        ("plan", "--bound", "allreduce", "--machine", "99999999999node", "--size", "1M"),
        ("explain", "gather", *ON, "--table", "bytes"),
        ("explain", "gather", *ON, "--table", "deep.json"),
        ("explain", "gather", *ON, "--table", "folder"),
        ("explain", "--report", "cut.json"),
        ("explain", "--report", "deep.json"),
        ("report", "--store", "runs.sqlite"),
        ("bench", "--compare", "1", "2", "--store", "runs.sqlite"),
        ("map", *ON, "--pattern", "a" * 5000),
        ("map", *ON, "--matrix", "bytes"),
        ("map", *ON, "--matrix", "deep.json"),
        ("compose", "exits.py", "--ranks", "4"),
        ("compose", "deep.json", "--ranks", "4"),
        ("compose", "folder", "--ranks", "4"),
    ],
)
def test_bad_input_is_told_in_one_line(words: tuple[str, ...], files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert err.count("\n") == 1, err
    assert "Traceback" not in out + err
    assert len(err) < 1200
    assert all(one.isprintable() for one in err.rstrip("\n")), repr(err)


def test_a_fault_of_ours_is_told_in_two_lines_with_its_details_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a thing that cannot be")

    monkeypatch.setattr("palmette.cli.group.run_group", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["plan", "gather"]) == fault.STATUS == 70
    first, second = capsys.readouterr().err.splitlines()
    assert first == "palmette plan: internal error of palmette (ZeroDivisionError), not caused by its input"
    (file,) = tmp_path.glob("palmette-fault-*.txt")
    assert str(file) in second
    details = file.read_text()
    assert "a thing that cannot be" in details and "['plan', 'gather']" in details and "Traceback" in details


def test_a_missing_optional_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    words = ["map", "--pattern", "ring", "--machine", "2leaf:2node:2core", "--method", "partition"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "needs pymetis" in err and "pip install pymetis" in err


def test_mapping_by_the_best_method_goes_on_without_metis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("palmette.map.methods.is_available", lambda: False)
    assert main(["map", "--pattern", "stencil:4x2", "--machine", "2leaf:2node:2core"]) == 0
    assert "partition was not tried" in " ".join(capsys.readouterr().out.split())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "topology.json"
    write_text(file, "old")
    file.chmod(0o640)

    def fails() -> None:
        with replaced(file) as stream:
            stream.write("half of the n")
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        fails()
    assert file.read_text() == "old"
    link = tmp_path / "link"
    link.symlink_to(file)
    write_text(link, "new")
    assert file.read_text() == "new" and link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "topology.json"]


def test_what_is_no_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "text")


def test_a_pipe_that_is_written_to_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        pipe.write_text("0 10\n10 0\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert main(["map", "--machine", "2node:1core", "--matrix", str(pipe)]) == 0
    finally:
        writer.join()
    assert "2 ranks" in capsys.readouterr().out
