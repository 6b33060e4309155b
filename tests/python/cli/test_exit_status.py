"""The exit statuses that docs/reference/command-line.md promises."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from palmette.cli.table import Row

Call = Callable[..., Any]


def promised(root: Path) -> set[str]:
    text = (root / "docs/reference/command-line.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE))


def instead(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `palmette show` end with that."""

    @click.command("show")
    def failing() -> None:
        raise error

    monkeypatch.setattr(Row, "load", lambda _: failing)


def test_the_page_and_the_man_pages_have_the_same_statuses(root: Path) -> None:
    listed = re.findall(r'^    \("(\d+)", ', (root / "tools/command_pages.py").read_text(), re.MULTILINE)
    assert promised(root) == {*listed, "124"} == {"0", "1", "2", "70", "124", "130"}


def test_0_and_2_of_a_group_alone(palmette_lab: Call, palmette: Call) -> None:
    assert palmette("settings").status == palmette("--help").status == 0
    assert palmette().status == palmette_lab().status == 2


@pytest.mark.parametrize("command", ["status --name nosuch", "bench report 1 2 --store x"])
def test_1_is_a_negative_result_and_2_what_is_missing(
    command: str, palmette_lab: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALMETTE_LAB_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = palmette_lab(*command.split())
    assert result.status == (1 if command.startswith("status") else 2)
    assert (result.out + result.err).count("\n") == 1


@pytest.mark.parametrize("words", ["shwo", "show --nosuch", "show nosuch.json", "plan nosuch", "run nosuch-launcher-9"])
def test_2_is_bad_input_in_one_line(words: str, palmette: Call) -> None:
    result = palmette(*words.split())
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)


def test_70_is_a_fault_of_its_own(palmette: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    instead(monkeypatch, RuntimeError("broken"))
    result = palmette("show")
    assert (result.status, result.err.count("\n")) == (70, 2)
    (fault,) = tmp_path.iterdir()
    assert "RuntimeError: broken" in fault.read_text()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_130_is_ctrl_c(error: BaseException, palmette: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, error)
    result = palmette("show")
    assert (result.status, result.err.lstrip()) == (130, "palmette: interrupted\n")


def test_the_status_of_run_is_that_of_what_it_runs() -> None:
    code = "from palmette.cli.main import main; main()"
    line = [sys.executable, "-c", code, "run", "--abi", "mpich", "sh", "-c", "exit 7"]
    assert subprocess.run(line, check=False, capture_output=True).returncode == 7


@pytest.mark.parametrize("words", ["plan alltoall --machine 4node:4core --all", "settings", "doctor"])
def test_a_closed_pipe_is_no_error(words: str) -> None:
    code = "import sys; from palmette.cli.main import main; sys.exit(main())"
    shown = f"{sys.executable} -c '{code}' {words} | head -1 > /dev/null"
    done = subprocess.run(
        ["bash", "-c", f"{shown}; exit ${{PIPESTATUS[0]}}"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_told_in_one_line() -> None:
    code = "import sys; from palmette.cli.main import main; sys.exit(main())"
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-c", code, "plan", "alltoall", "--machine", "4node:4core", "--all"]
        done = subprocess.run(words, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "can't write: No space left on device" in done.stderr


def test_help_is_a_command_and_short_slips_are_understood(palmette: Call) -> None:
    assert palmette("help").out == palmette("--help").out
    assert palmette("help", "plan").out == palmette("plan", "--help").out
    assert "did you mean run?" in palmette("rnu").err.lower()


def test_a_build_that_has_not_ended_is_told(palmette: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, ImportError("cannot import name '_core' from 'palmette'", name="palmette"))
    result = palmette("show")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "make build" in result.err
