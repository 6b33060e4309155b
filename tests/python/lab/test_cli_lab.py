"""The command line of the lab."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palmette_lab.cli.place import lab_or_spec
from palmette_lab.lab.processes import ProcessId
from palmette_lab.lab.state import LabState, machine_boot_id

Palmette = Callable[..., Any]


@pytest.fixture
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALMETTE_LAB_STATE", str(tmp_path / "labs"))


@pytest.mark.parametrize("arguments", [("up", "2node"), ("down",)])
def test_without_root_the_command_says_so_in_one_line(
    palmette_lab: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = palmette_lab(*arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert f"palmette-lab {arguments[0]}: root is needed" in result.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("up", "3leaf:x"), "palmette-lab up: "),
        (("up", "2node+aggregator"), "aggregators stand at switches"),
        (("up", "2node", "--spine-delay", "5"), "write it like 5ms"),
        (("up", "2node", "--spine-delay", "5s"), "not between 0 and 1 s"),
        (("up", "2node", "--name", "../x"), "can't be the name of a lab"),
        (("exec", "h0", "true"), "start it with `palmette-lab up SPEC`"),
        (("run", "--mpi", "mpich", "--", "./app"), "start it with `palmette-lab up SPEC`"),
        (("run", "--mpi", "mpich", "--env", "X", "--", "./app"), "--env X: expected NAME=VALUE"),
        (("run", "--mpi", "lam", "--", "./app"), "lam"),
        (("run", "--mpi", "mpich", "--lab", "small", "--", "./app"), "the lab 'small' is not up; start it with"),
        (("run", "--mpi", "mpich", "--lab", "x", "--name", "y", "--", "./app"), "name different labs"),
        (("status", "--name", "../x"), "can't be the name of a lab"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    palmette_lab: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    result = palmette_lab(*arguments)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert complaint in result.err


def test_a_lab_with_aggregators_names_the_daemon_that_was_not_built(
    palmette_lab: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PALMETTE_LAB_BIN", str(tmp_path))
    result = palmette_lab("up", "aggregator:2node")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert f"needs the daemon: palmette-aggregator is not in {tmp_path}" in result.err
    assert "PALMETTE_BUILD_AGGREGATOR" in result.err


def test_status_of_a_lab_that_is_not_up_is_1(palmette_lab: Palmette, _empty: None) -> None:
    none = palmette_lab("status")
    assert (none.status, none.out) == (1, "no lab is up; start one: palmette-lab up 4node@100Mbit/s\n")
    assert json.loads(palmette_lab("status", "--json").out) == {"labs": []}
    one = palmette_lab("status", "--name", "default")
    assert (one.status, one.out) == (1, "the lab 'default' is not up\n")
    assert json.loads(palmette_lab("status", "--name", "default", "--json").out) == {"name": "default", "up": False}


def _as_if_up(folder: Path, name: str) -> None:
    """A lab whose keeper is this process."""
    me = ProcessId.of(os.getpid())
    made = LabState(
        name=name, spec="2node", spine_delay_s=0.0, keeper_pid=me.pid, keeper_started=me.started,
        boot_id=machine_boot_id(), created_s=time.time(), lifetime_s=600.0, hosts=[], rates={},
    )  # fmt: skip
    (folder / name).mkdir(parents=True)
    made.write(folder / name)


def test_labs_of_other_users_are_listed_and_named(
    palmette_lab: Palmette, _empty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PALMETTE_LAB_STATE")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr("palmette_lab.lab.state.tempfile.gettempdir", lambda: str(tmp_path / "theirs"))
    monkeypatch.setattr("palmette_lab.lab.state._owner", lambda path: "root" if "theirs" in str(path) else "me")
    _as_if_up(tmp_path / "theirs" / "palmette-lab", "nc1")
    told = palmette_lab("status")
    assert told.status == 0
    row = next(line for line in told.out.splitlines() if line.startswith("nc1"))
    assert row.split()[1] == "root"
    assert max(map(len, told.out.splitlines())) <= 80
    others = json.loads(palmette_lab("status", "--json").out)["labs"]
    assert [(one["name"], one["owner"]) for one in others if one["name"] == "nc1"] == [("nc1", "root")]
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    for refused in (
        palmette_lab("exec", "--name", "nc1", "h0", "true"), palmette_lab("bench", "gather", "--lab", "nc1"),
    ):  # fmt: skip
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert "the lab 'nc1' is not up; one of that name is root's (sudo palmette ...)" in refused.err


def test_a_name_goes_before_a_spec_where_a_lab_of_it_is_up(_empty: None, tmp_path: Path) -> None:
    assert lab_or_spec("4node") == ("4node", None)
    _as_if_up(tmp_path / "labs", "4node")
    assert lab_or_spec("4node") == (None, "4node")
    assert lab_or_spec("2leaf:4node") == ("2leaf:4node", None)
    assert lab_or_spec("small") == (None, "small")
    assert lab_or_spec("some/topology.json") == ("some/topology.json", None)


@pytest.mark.root
def test_up_status_exec_and_down(palmette_lab: Palmette, lab_state: Path) -> None:
    up = palmette_lab("up", "2leaf@50Mbit/s:2node@1Gbit/s:2core", "--spine-delay", "1ms", "--name", "x")
    assert up.status == 0, up.err
    assert "4 hosts, 8 slots" in up.out
    status = palmette_lab("status", "--name", "x")
    assert status.status == 0
    assert max(map(len, status.out.splitlines()[2:])) <= 80
    assert "leaf1 (50 Mbit/s)" in status.out
    assert "delays 1 ms" in status.out
    assert re.search(r"ends by itself in (2 h|1 h 59 min);", status.out)
    told = json.loads(palmette_lab("status", "--name", "x", "--json").out)
    assert told["hosts"][3] == {"name": "h3", "address": "10.77.0.4", "slots": 2}
    assert told["link_bits_per_s"] == {"leaf0": 50e6, "h0": 1e9, "h1": 1e9, "leaf1": 50e6, "h2": 1e9, "h3": 1e9}
    again = palmette_lab("up", "2node", "--name", "x")
    assert (again.status, "palmette-lab down --name x" in again.err) == (2, True)
    assert "leaf1 (50 Mbit/s)" in palmette_lab("status").out, "the only one is shown in full"
    both = palmette_lab("up", "2node", "--name", "y", "--json")
    assert both.status == 0, both.err
    assert [line.split()[0] for line in palmette_lab("status").out.splitlines()[1:3]] == ["x", "y"]
    assert palmette_lab("down", "--name", "y").status == 0
    assert json.loads(palmette_lab("down", "--name", "x", "--json").out) == {"down": ["x"]}
    assert palmette_lab("down", "--name", "x").status == 0
    assert palmette_lab("status", "--name", "x").status == 1
