"""What is said of a recording's folder that isn't there, and what `palmette run` keeps in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palmette.record.processors import Crowd, crowd_of
from palmette.record.reading import Job, RecordError, read_job
from palmette.run.choices import KEPT_PROCESSORS, Choices, make_recording_folder, variables

Call = Callable[..., Any]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording, an empty folder, a program and a report."""
    monkeypatch.chdir(tmp_path)
    for name in ("t-late", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-late" / "vm.palmette").touch()
    for name in ("late.c", "run.json"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    "command", [("report",), ("top",), ("what-if", "--ideal"), ("convert", "--to", "csv", "-o", "x")]
)
@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("t-lat", "no such folder (did you mean t-late?); give the folder"),
        ("nowhere", "no such folder; give the folder that `palmette run --trace`"),
        ("late.c", "this is a file, no recording; give the folder"),
        ("run.json", "read by `palmette explain --report run.json`"),
        ("t-late/vm.palmette", "one node's file of a recording; give its folder, t-late"),
    ],
)  # fmt: skip
def test_a_mistyped_recording_is_told_as_one(
    command: tuple[str, ...], word: str, told: str, palmette: Call, beside: Path
) -> None:
    assert beside.is_dir()
    result = palmette(command[0], word, *command[1:])
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert told in result.err and "runs.sqlite" not in result.err and "bench" not in result.err, result.err


@pytest.mark.parametrize("word", [("last",), ("last~3",), ("7",), ("7x", "--store", "none.sqlite"), ("runs.sqlite",)])
def test_stored_runs_are_spoken_of_where_one_is_meant(word: tuple[str, ...], palmette: Call, beside: Path) -> None:
    assert beside.is_dir()
    result = palmette("report", *word)
    assert result.status == 2 and "palmette bench report" in result.err and "no such folder" not in result.err


def test_a_folder_with_a_blank_is_quoted_in_what_to_paste(beside: Path) -> None:
    with pytest.raises(RecordError, match=r"`palmette run --profile '.*/my runs'` makes one"):
        (beside / "my runs").mkdir()
        read_job(beside / "my runs")


def job_of(folder: Path, *boots: str) -> Job:
    processes: Any = [
        SimpleNamespace(recorded=SimpleNamespace(rank=rank), boot_id=boot) for rank, boot in enumerate(boots)
    ]
    return Job(folder, processes)


def test_ranks_that_share_processors_are_known_of_the_machine_that_starts_them(tmp_path: Path) -> None:
    (tmp_path / KEPT_PROCESSORS).write_text("here 2\n")
    assert crowd_of(job_of(tmp_path, "here", "here", "here")) == Crowd(3, 2)
    assert crowd_of(job_of(tmp_path, "here", "here", "there", "there", "there")) is None, "of others it isn't known"
    (tmp_path / KEPT_PROCESSORS).write_text("nonsense")
    assert crowd_of(job_of(tmp_path, "here", "here", "here")) is None
    assert "3 ranks on 2 processors" in Crowd(3, 2).note and "1 processor:" in Crowd(3, 1).note


def test_processors_are_kept_with_a_recording(tmp_path: Path) -> None:
    variables(Choices(trace=tmp_path / "calls"), {})
    boot, number = (tmp_path / "calls" / KEPT_PROCESSORS).read_text().split()
    assert int(number) > 0
    assert crowd_of(job_of(tmp_path / "calls", *[boot] * (int(number) + 1))) == Crowd(int(number) + 1, int(number))
    assert make_recording_folder(tmp_path / "calls") == "", "it holds no recording yet"
