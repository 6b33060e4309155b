"""The command line of the lab."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palmette = Callable[..., Any]


@pytest.fixture
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALMETTE_LAB_STATE", str(tmp_path / "labs"))


@pytest.mark.parametrize("arguments", [("up", "2node"), ("down",)])
def test_without_root_the_command_says_so_in_one_line(
    palmette: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = palmette("lab", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert f"palmette lab {arguments[0]}: root is needed" in result.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("up", "3leaf:x"), "palmette lab up: "),
        (("up", "2node+aggregator"), "aggregators stand at switches"),
        (("up", "2node", "--spine-delay", "5"), "write it like 5ms"),
        (("up", "2node", "--spine-delay", "5s"), "not between 0 and 1 s"),
        (("up", "2node", "--name", "../x"), "can't be the name of a lab"),
        (("exec", "h0", "true"), "start it with `palmette lab up SPEC`"),
        (("run", "--mpi", "mpich", "--", "./app"), "start it with `palmette lab up SPEC`"),
        (("run", "--mpi", "mpich", "--env", "X", "--", "./app"), "--env X: expected NAME=VALUE"),
        (("run", "--mpi", "lam", "--", "./app"), "lam"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    palmette: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    result = palmette("lab", *arguments)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert complaint in result.err


def test_a_lab_with_aggregators_names_the_daemon_that_was_not_built(
    palmette: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PALMETTE_LAB_BIN", str(tmp_path))
    result = palmette("lab", "up", "aggregator:2node")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert f"needs the daemon: palmette-aggregator is not in {tmp_path}" in result.err
    assert "PALMETTE_BUILD_AGGREGATOR" in result.err


def test_status_of_a_lab_that_is_not_up_is_1(palmette: Palmette, _empty: None) -> None:
    assert palmette("lab", "status").status == 1
    assert json.loads(palmette("lab", "status", "--json").out) == {"name": "default", "up": False}


@pytest.mark.root
def test_up_status_exec_and_down(palmette: Palmette, lab_state: Path) -> None:
    up = palmette("lab", "up", "2leaf@50Mbit/s:2node@1Gbit/s:2core", "--spine-delay", "1ms", "--name", "x")
    assert up.status == 0, up.err
    assert "4 hosts, 8 slots" in up.out
    status = palmette("lab", "status", "--name", "x")
    assert status.status == 0
    assert max(map(len, status.out.splitlines()[2:])) <= 80
    assert "leaf1 (50 Mbit/s)" in status.out
    assert "delays 1 ms" in status.out
    told = json.loads(palmette("lab", "status", "--name", "x", "--json").out)
    assert told["hosts"][3] == {"name": "h3", "address": "10.77.0.4", "slots": 2}
    assert told["link_bits_per_s"] == {"leaf0": 50e6, "h0": 1e9, "h1": 1e9, "leaf1": 50e6, "h2": 1e9, "h3": 1e9}
    assert palmette("lab", "up", "2node", "--name", "x").status == 2
    assert json.loads(palmette("lab", "down", "--name", "x", "--json").out) == {"down": ["x"]}
    assert palmette("lab", "down", "--name", "x").status == 0
    assert palmette("lab", "status", "--name", "x").status == 1
