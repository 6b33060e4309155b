"""The command `palmette discover`."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.topology.file import load

FIXTURE = Path(__file__).resolve().parents[2] / "data" / "fabrics" / "fat-tree.txt"
Palmette = Callable[..., Any]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_writes_topology_json_and_tells_what_it_found_on_one_screen(palmette: Palmette) -> None:
    result = palmette("discover", "--from", "ibnetdiscover", FIXTURE)
    assert result.status == 0
    assert "18 hosts in 3 levels: pod, leaf, node" in result.out
    assert "up 8 GB/s each" in result.out
    lines = result.out.splitlines()
    assert len(lines) < 25
    assert max(len(line) for line in lines) <= 80
    assert sum(1 for _ in load("topology.json").machine.tree.hosts()) == 18


@pytest.mark.parametrize(
    "words",
    [
        ["--from", "synthetic", "2leaf:4node", "-o", "out.json"],
        ["--from", "synthetic:2leaf:4node", "-o", "out.json"],
        ["--from=synthetic:2leaf:4node", "-o", "out.json"],
        ["--from=synthetic", "2leaf:4node", "-o", "out.json"],
        ["-o", "out.json", "--from", "synthetic", "2leaf:4node"],
    ],
)
def test_a_source_and_its_argument_may_be_one_word_or_two(palmette: Palmette, words: list[str]) -> None:
    assert palmette("discover", *words).status == 0
    assert sum(1 for _ in load("out.json").machine.tree.hosts()) == 8


def test_sources_repeat_and_one_without_argument_takes_no_option_for_it(palmette: Palmette) -> None:
    result = palmette("discover", "--from", "hwloc", "--from", "ibnetdiscover", FIXTURE, "-o", "out.json")
    assert result.status == 0
    assert [source.kind for source in load("out.json").sources] == ["hwloc", "ibnetdiscover"]


def test_standard_input_and_standard_output(palmette: Palmette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FIXTURE.read_bytes())))
    result = palmette("discover", "--from", "ibnetdiscover", "-", "-o", "-")
    assert json.loads(result.out)["format"] == "palmette-topology"
    assert "18 hosts" in result.err
    assert not Path("topology.json").exists()


def test_json_gives_counts_levels_and_what_was_left_out(palmette: Palmette) -> None:
    answer = json.loads(palmette("discover", "--from", "ibnetdiscover", FIXTURE, "--json").out)
    assert (answer["hosts"], answer["output"], answer["left_out"]) == (18, "topology.json", [])
    assert [row["groups"] for row in answer["levels"]] == [2, 6, 18]


def test_what_is_left_out_and_every_warning_is_told_with_its_line(palmette: Palmette) -> None:
    Path("f.txt").write_text(
        "prompt$ ibnetdiscover\n" + FIXTURE.read_text().replace("n00003 mlx5_0", "MT4129 ConnectX7")
    )
    out = palmette("discover", "--from", "ibnetdiscover", "f.txt").out
    assert "1 adapters without a host's name" in out
    assert "line 1: 1 line(s) before the listing skipped" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no source given"),
        (["--from", "ibnetdiscover", "nothing.txt"], "no such file: nothing.txt"),
        (["--from", "ibnetdiscover", "bad.txt"], "no fabric in it"),
        (["--from", "unheard", "x"], "unheard"),
        (["--from", "synthetic"], "synthetic needs a form"),
        (["--from", "synthetic", "2leaf:4node", "-o", "/nowhere/t.json"], "can't write /nowhere/t.json"),
        (["--from", "synthetic", "2leaf:4node", "-o", "-", "--json"], "both want the screen"),
        (["-o", "--from", "synthetic", "2leaf:4node"], "Option '-o' requires an argument"),
    ],
)
def test_bad_input_is_one_line_and_status_2(palmette: Palmette, words: list[str], message: str) -> None:
    Path("bad.txt").write_text("this is a letter\n")
    result = palmette("discover", *words)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("palmette discover: ")
    assert len(result.err.splitlines()) == 1
    assert message in result.err
    assert not Path("topology.json").exists()


def test_the_file_of_a_failed_capture_gets_status_2(palmette: Palmette, fabrics: Path) -> None:
    result = palmette("discover", "--from", "ibnetdiscover", fabrics / "topograph-bad.txt")
    assert (result.status, len(result.err.splitlines())) == (2, 1)


def _tool(folder: Path, script: str) -> None:
    tool = folder / "bin" / "ibnetdiscover"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def test_without_a_file_the_tool_itself_is_run(
    palmette: Palmette, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(tmp_path, f"cat {FIXTURE}")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "18 hosts" in palmette("discover", "--from", "ibnetdiscover").out


def test_a_tool_that_fails_is_told_with_its_last_message(
    palmette: Palmette, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(tmp_path, "echo 'ibpanic: failed to open port' >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    result = palmette("discover", "--from", "ibnetdiscover")
    assert result.status == 2
    assert "status 3: ibpanic: failed to open port" in result.err


def test_without_file_and_tool_the_error_says_what_to_do(palmette: Palmette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    result = palmette("discover", "--from", "ibnetdiscover")
    assert result.status == 2
    assert "install infiniband-diags" in result.err
