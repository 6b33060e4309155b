"""Aggregation daemons on a lab: one for each aggregator, reached from its hosts, and ended with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palmette.mpi.install import Installation
from palmette.topology import file as topology_file
from palmette_lab.lab import Lab, LabError, aggregators, build
from palmette_lab.lab.processes import ProcessId

pytestmark = pytest.mark.root

FORM = "aggregator@400Mbit/s:2leaf@50Mbit/s+aggregator@1Gbit/s:2node@50Mbit/s:2core"


@pytest.fixture
def _program() -> None:
    """Skip where the daemon isn't built."""
    try:
        aggregators.daemon_program()
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture
def lab(lab_state: Path, _program: None) -> Iterator[Lab]:
    """A lab with an aggregator at its top and one at each leaf."""
    with Lab.up(FORM) as made:
        yield made


def trial(lab: Lab, host: str, address: str) -> subprocess.CompletedProcess[str]:
    """Run `palmette-aggregator try` on a host."""
    assert lab.token_path is not None
    words = ["-m", "palmette.cli.aggregator", "try", address, "--token", str(lab.token_path), "--bytes", "4096"]
    command = lab.exec_command(host, [sys.executable, *words])
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def processes(lab: Lab) -> dict[str, ProcessId]:
    """The daemons that run."""
    pids = {name: lab.daemon_pid(name) for name in lab.aggregators}
    return {name: ProcessId.of(pid) for name, pid in pids.items() if pid is not None}


def test_each_daemon_serves_the_hosts_and_ends_with_the_lab(lab: Lab) -> None:
    assert lab.hosts == ["h0", "h1", "h2", "h3"]
    assert lab.place("block") == [host for host in lab.hosts for _ in range(2)]
    running = processes(lab)
    assert list(running) == ["aggregator0", "aggregator1", "aggregator2"]
    tree = topology_file.load(lab.topology_path).machine.tree
    for one in [*tree.aggregators, *tree.children[0].aggregators]:
        assert one.address is not None
        done = trial(lab, "h3", one.address)
        assert done.returncode == 0, done.stderr
        assert "right" in done.stdout
        out, into = lab.link_bytes()[one.name]
        assert out > 4096 < into
    lab.down()
    assert not any(process.is_alive() for process in running.values())


def test_key_and_token_are_the_owners_alone(lab: Lab) -> None:
    assert lab.token_path is not None
    for path in (lab.token_path, lab.token_path.with_suffix(".key")):
        assert path.stat().st_mode & 0o777 == 0o600


def test_ranks_have_the_token_unless_the_user_sets_another(lab: Lab, tmp_path: Path) -> None:
    mpi = Installation("mpich", tmp_path, tmp_path / "mpiexec", None, "5")
    words = lab.command(mpi, ["h0"], ["./app"])
    assert words[words.index(aggregators.TOKEN_VARIABLE) + 1] == str(lab.token_path)
    words = lab.command(mpi, ["h0"], ["./app"], {aggregators.TOKEN_VARIABLE: ""})
    assert words[words.index(aggregators.TOKEN_VARIABLE) + 1] == ""


def test_a_daemon_can_be_stopped_killed_and_cut_off(lab: Lab) -> None:
    running = processes(lab)
    os.kill(running["aggregator1"].pid, signal.SIGSTOP)
    assert lab.daemon_pid("aggregator1") == running["aggregator1"].pid
    os.kill(running["aggregator2"].pid, signal.SIGKILL)
    subprocess.run(lab.exec_command("login", ["ip", "link", "set", lab.ports["aggregator0"], "down"]), check=True)
    carrier = lab.exec_command("aggregator0", ["cat", "/sys/class/net/eth0/carrier"])
    assert subprocess.run(carrier, capture_output=True, text=True, check=True).stdout == "0\n"
    assert running["aggregator2"].kill()
    assert lab.daemon_pid("aggregator2") is None
    lab.down()
    assert not any(process.is_alive() for process in running.values())


def test_daemons_end_with_a_lab_that_is_killed(lab: Lab) -> None:
    running = processes(lab)
    assert lab.state.keeper.kill()
    assert all(process.kill() for process in running.values())


def test_status_shows_the_aggregators(
    lab: Lab, palmette_lab: Callable[..., Any], palmette_aggregator: Callable[..., Any]
) -> None:
    assert processes(lab)["aggregator1"].kill()
    text = palmette_lab("status").out
    assert max(map(len, text.splitlines()[2:])) <= 80 + len(str(lab.topology_path))
    assert "aggregator0  10.77.0.5:7117  400 Mbit/s  fabric" in text
    (told,) = json.loads(palmette_lab("status", "--json").out)["labs"]
    assert [(one["name"], one["switch"], one["address"]) for one in told["aggregators"]] == [
        ("aggregator0", "fabric", "10.77.0.5:7117"),
        ("aggregator1", "leaf0", "10.77.0.6:7117"),
        ("aggregator2", "leaf1", "10.77.0.7:7117"),
    ]
    assert [one["pid"] is None for one in told["aggregators"]] == [False, True, False]
    assert told["link_bits_per_s"]["aggregator2"] == 1e9
    status = palmette_aggregator("status", told["aggregators"][0]["status"], "--json")
    assert json.loads(status.out)["address"] == "10.77.0.5:7117"


def test_a_daemon_that_does_not_start_is_told_in_one_line_and_the_lab_is_undone(
    lab_state: Path, _program: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = lab_state.parent / "broken"
    broken.write_text("#!/bin/sh\necho 'broken: no such thing' >&2\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setattr(aggregators, "daemon_program", lambda: broken)
    monkeypatch.setattr(aggregators, "_START_S", 0.5)
    with pytest.raises(LabError, match=r"^the daemon of aggregator0 doesn't start: broken: no such thing$"):
        Lab.up("aggregator:2node")
    assert not build.tear_down("default")
