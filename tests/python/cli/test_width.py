"""Narrow terminals, and locales without UTF-8."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette.cli import ascii_output
from palmette.units import text_width

Call = Callable[..., Any]
FAST = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize(
    "words",
    [
        ("plan", "allgather"), ("plan", "alltoall", "--algorithm", "pairwise"),
        ("plan", "gather", "--count", "--verify"),
        ("plan", "--bound", "allreduce", "--size", "256K"), ("plan", "--bound", "gather", "--sizes", "1K,64K"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_lines_fit(columns: int, words: tuple[str, ...], palmette: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = palmette(*words, "--machine", FAST, "--placement", "random:1")
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= columns
    assert max(map(len, result.out.splitlines())) > columns - 15


@pytest.mark.parametrize("columns", [60, 80])
def test_a_tree_fits(columns: int, palmette: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    palmette("discover", "--from", "synthetic", FAST, "-o", tmp_path / "t.json")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = palmette("show", tmp_path / "t.json").out.splitlines()
    assert max(map(len, lines)) == columns


def test_the_width_is_kept_between_60_and_80(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("40", 60), ("72", 72), ("200", 80), ("no", 80), ("", 80)):
        monkeypatch.setenv("COLUMNS", columns)
        assert text_width() == width


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({}, False), ({"LANG": "C"}, True), ({"LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "C.utf8", "LANG": "C"}, False),
        ({"LC_ALL": "", "LANG": "de_DE.ISO-8859-1"}, True), ({"LC_CTYPE": "POSIX", "LANG": "C.UTF-8"}, True),
    ],
)  # fmt: skip
def test_which_locales_get_ascii(environment: dict[str, str], plain: bool) -> None:
    assert ascii_output.wanted(environment) is plain


def run(*words: str, locale: str) -> subprocess.CompletedProcess[bytes]:
    code = "import sys; from palmette.cli.main import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=environment | {"LC_ALL": locale}, capture_output=True, check=False
    )


def test_a_plan_and_a_tree_in_ascii_keep_their_columns(tmp_path: Path) -> None:
    plan = ("plan", "gather", "--machine", FAST, "--algorithm", "linear")
    plain, signs = run(*plan, locale="C"), run(*plan, locale="C.UTF-8")
    assert plain.stdout.isascii()
    assert plain.stdout.decode() == signs.stdout.decode().replace("→", ">")
    topology = str(tmp_path / "t.json")
    assert run("discover", "--from", "synthetic", FAST, "-o", topology, locale="C").returncode == 0
    tree = run("show", topology, locale="C").stdout
    assert tree.isascii()
    assert b"`- " in tree
    assert [len(line) for line in tree.decode().splitlines()] == [
        len(line) for line in run("show", topology, locale="C.UTF-8").stdout.decode().splitlines()
    ]


def test_json_in_ascii_is_the_same_json(tmp_path: Path) -> None:
    topology = tmp_path / "t.json"
    assert (
        run(
            "discover", "--from", "synthetic", "2node", "--name", "Käse→😀", "-o", str(topology), locale="C.UTF-8"
        ).returncode
        == 0
    )
    one, other = (run("show", str(topology), "--json", locale=locale).stdout for locale in ("C", "C.UTF-8"))
    assert one.isascii()
    assert json.loads(one) == json.loads(other)
    assert json.loads(one)["name"] == "Käse→😀"
