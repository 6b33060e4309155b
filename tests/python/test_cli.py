"""The frame of the command line: table of commands, errors, settings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

from palmette.cli import common, table
from palmette.cli.table import PALMETTE, Row

Call = Callable[..., Any]


def test_help_lists_every_command_within_80_columns(palmette: Call) -> None:
    result = palmette("--help")
    assert result.status == 0
    for name in PALMETTE.rows:
        assert re.search(rf"^  {name} ", result.out, re.MULTILINE), name
    assert max(map(len, result.out.splitlines())) <= 80


def test_help_imports_no_command(monkeypatch: pytest.MonkeyPatch, palmette: Call) -> None:
    headings = PALMETTE.headings
    monkeypatch.setitem(headings, "Others", {"broken": Row("palmette.cli.no_such_module", "Can't be imported.")})
    assert "Can't be imported." in palmette("--help").out


def test_an_unknown_command_is_told_in_one_line_with_status_2(palmette: Call) -> None:
    result = palmette("discver")
    assert result.status == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "discver" in result.err


def test_an_unknown_option_is_told_in_one_line_that_names_the_command(palmette: Call) -> None:
    result = palmette("settings", "--colour")
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert result.err.startswith("palmette settings: ")
    assert "--colour" in result.err


def test_a_cli_error_becomes_one_line_that_names_the_command(monkeypatch: pytest.MonkeyPatch, palmette: Call) -> None:
    @click.command()
    def failing() -> None:
        raise common.CliError("no such file,\n  x.json; write it first")

    monkeypatch.setattr(table, "import_module", lambda _: type("Module", (), {"command": failing}))
    result = palmette("show")
    assert (result.status, result.err) == (2, "palmette show: no such file, x.json; write it first\n")


@pytest.mark.parametrize("name", list(PALMETTE.rows))
def test_every_command_of_the_table_loads_and_has_help(name: str, palmette: Call) -> None:
    result = palmette(name, "--help")
    assert result.status == 0, result.err
    assert max(map(len, result.out.splitlines())) <= 80


def test_settings_lists_each_variable_with_its_sentence(palmette: Call) -> None:
    result = palmette("settings")
    assert result.status == 0
    assert "PALMETTE_TOPOLOGY=\n    The topology.json" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_settings_as_json_tells_value_and_origin(monkeypatch: pytest.MonkeyPatch, palmette: Call) -> None:
    monkeypatch.setenv("PALMETTE_VERBOSE", "2")
    rows = {row["name"]: row for row in json.loads(palmette("settings", "--json").out)["settings"]}
    assert (rows["PALMETTE_VERBOSE"]["value"], rows["PALMETTE_VERBOSE"]["origin"]) == ("2", "environment")
    assert (rows["PALMETTE_ENABLE"]["value"], rows["PALMETTE_ENABLE"]["origin"]) == ("1", "default")


def test_settings_tells_a_misspelt_variable(monkeypatch: pytest.MonkeyPatch, palmette: Call) -> None:
    monkeypatch.setenv("PALMETTE_TOPOLOGIE", "x.json")
    result = palmette("settings")
    assert result.status == 0
    assert "PALMETTE_TOPOLOGIE is no setting (did you mean PALMETTE_TOPOLOGY?); correct or unset it\n" in result.err


@pytest.mark.parametrize("name", ["PALMETTE_TABLE", "table"])
def test_settings_shows_those_that_are_named(name: str, palmette: Call) -> None:
    result = palmette("settings", name, "wait")
    assert [line.split("=")[0] for line in result.out.splitlines() if line[0] != " "] == [
        "PALMETTE_TABLE",
        "PALMETTE_WAIT",
    ]
    assert [row["name"] for row in json.loads(palmette("settings", name, "--json").out)["settings"]] == [
        "PALMETTE_TABLE"
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PALMETTE_TABEL", "is no setting (did you mean PALMETTE_TABLE?); `palmette settings` lists them all"),
        ("frobnicate", "is no setting; `palmette settings` lists them all"),
        ("give_up_sums", "is what always happens now; PALMETTE_REPRODUCIBLE=1 keeps results bitwise the same"),
    ],
)
def test_settings_tells_what_a_name_may_stand_for(name: str, told: str, palmette: Call) -> None:
    result = palmette("settings", name)
    assert (result.status, result.out, result.err) == (2, "", f"palmette settings: {name} {told}\n")


def test_settings_refuses_a_value_of_the_wrong_kind(monkeypatch: pytest.MonkeyPatch, palmette: Call) -> None:
    monkeypatch.setenv("PALMETTE_ENABLE", "yes")
    result = palmette("settings")
    assert result.status == 2
    assert result.err == "palmette settings: PALMETTE_ENABLE=yes: expected 0 or 1; correct or unset the variable\n"


def test_the_package_has_names_for_what_scripts_need_and_loads_them_when_asked() -> None:
    code = "import sys, palmette; print(*dir(palmette)); print('numpy' in sys.modules); print(palmette.Trace.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["SparseSum Trace __version__ load_topology region", "False", "Trace"]
