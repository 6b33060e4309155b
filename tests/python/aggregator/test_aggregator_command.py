"""`palmette-aggregator`: keys and tokens, the daemon as a program, its status, its unit for systemd."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palmette.aggregator import status, token
from palmette_lab.lab import LabError
from palmette_lab.lab.helpers import helper

Call = Callable[..., Any]
DEADLINE_S = 20


@pytest.fixture
def program() -> Path:
    try:
        return helper("palmette-aggregator")
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for sockets."""
    made = Path(tempfile.mkdtemp(prefix="pa"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def key(folder: Path) -> Path:
    path = folder / "site.key"
    token.write_secret(path, token.new_key())
    return path


@pytest.fixture
def daemon(program: Path, folder: Path, key: Path) -> Iterator[Path]:
    """The status socket of a running daemon."""
    path = folder / "status.sock"
    words = [program, "--key", key, "--listen", "127.0.0.1:0", "--status", path, "--name", "leaf0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")
        yield path
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    assert not path.exists()


def test_tokens_are_those_that_the_daemon_derives() -> None:
    made = token.make_token(b"0123456789abcdef0123456789abcdef", 1000, 2000000000, 4)
    # The same as in tests/cpp/aggregate/frame_test.cpp.
    grant = "palmette-token-1,1000,2000000000,4"
    assert made == f"{grant}:c005a7d4f51521827c66373d527cfdee57788731c11f4080ba1d4b5bdb4e8fa8"


def test_a_key_and_a_token_are_files_of_their_owner_alone(folder: Path, palmette_aggregator: Call) -> None:
    key, made = folder / "site.key", folder / "alice.token"
    assert palmette_aggregator("token", "--new-key", str(key)).status == 0
    done = palmette_aggregator("token", "--key", str(key), "--uid", "7", "--groups", "3", "-o", str(made))
    assert (done.status, done.out) == (0, f"wrote {made}\n")
    assert [path.stat().st_mode & 0o777 for path in (key, made)] == [0o600, 0o600]
    assert re.fullmatch(r"palmette-token-1,7,[0-9]+,3:[0-9a-f]{64}\n", made.read_text())


@pytest.mark.parametrize(
    ("text", "mode", "reason"), [("k" * 40, 0o644, "others may read it"), ("short", 0o600, "5 bytes are too short")]
)
def test_an_unfit_key_is_refused_in_one_line(
    folder: Path, palmette_aggregator: Call, text: str, mode: int, reason: str
) -> None:
    key = folder / "site.key"
    key.write_text(text)
    key.chmod(mode)
    done = palmette_aggregator("token", "--key", str(key))
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert reason in done.err


def test_a_key_is_never_overwritten(key: Path, palmette_aggregator: Call) -> None:
    before = key.read_text()
    done = palmette_aggregator("token", "--new-key", str(key))
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert key.read_text() == before


def test_the_status_of_a_daemon_is_read(daemon: Path, palmette_aggregator: Call) -> None:
    shown = palmette_aggregator("status", str(daemon))
    assert shown.status == 0, shown.err
    assert shown.out.startswith("daemon leaf0 on 127.0.0.1:")
    assert "refused: none" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80
    told = json.loads(palmette_aggregator("status", str(daemon), "--json").out)
    assert (told["name"], told["limits"]["profile"], told["groups"]) == ("leaf0", "open", [])


def test_metrics_are_prometheus_text(daemon: Path, palmette_aggregator: Call) -> None:
    host, _, port = json.loads(palmette_aggregator("status", str(daemon), "--json").out)["address"].rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64)
        while connection.recv(4096):
            pass
    lines = palmette_aggregator("status", str(daemon), "--metrics").out.splitlines()
    sample = re.compile(r'palmette_aggregator_[a-z_]+(\{[a-z]+="[a-z_0-9]+"\})? [0-9.e+-]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines), lines
    assert 'palmette_aggregator_refused_total{reason="damaged"} 1' in lines


def test_a_group_that_waits_is_told() -> None:
    group = {
        "group": "00000000000000ff", "epoch": 2, "uid": 1000, "members": 8, "joined": 8, "ready": True, "tree": 0,
        "mode": "datagram", "slots": 8, "chunk_bytes": 16384, "chunks": 12, "missing": 2, "first_missing": 5,
        "missing_above": False,
    }  # fmt: skip
    told = "\n".join(status._group_lines(group))
    assert "group 00000000000000ff.2 of user 1000: 8 of 8 members, 12 chunks" in told
    assert "waits for 2 members, the first is 5" in told


def test_what_is_no_daemon_is_told_in_one_line(folder: Path, palmette_aggregator: Call) -> None:
    for path in (folder / "nothing.sock", folder):
        done = palmette_aggregator("status", str(path))
        assert (done.status, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--key FILE is missing"),
        (["--key", "/nonexistent"], "/nonexistent"),
        (["--key", "KEY", "--listen", "nowhere"], "'nowhere': expected HOST:PORT"),
        (["--key", "KEY", "--listen", "127.0.0.1:0", "--profile", "wide"], "profile 'wide': there are open"),
        (["--key", "KEY", "--config", "CONFIG"], "limits.tree: no such limit"),
        (["--key", "KEY", "--frobnicate", "1"], "--frobnicate: no such option"),
        (["--key"], "--key: expected a value"),
        (["--key", "KEY", "--listen", "127.0.0.1:0", "--user", "no-such-user"], "name a user that exists"),
    ],
)
def test_wrong_options_end_the_daemon_with_one_line(
    program: Path, folder: Path, key: Path, words: list[str], reason: str
) -> None:
    config = folder / "config.json"
    config.write_text('{"profile": "quantum", "limits": {"tree": 3}}')
    if "--user" in words and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    filled = [{"KEY": str(key), "CONFIG": str(config)}.get(word, word) for word in words]
    done = subprocess.run([program, *filled], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert reason in done.stderr


def test_root_becomes_the_user_that_is_named(program: Path, folder: Path, key: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    words = [program, "--key", key, "--listen", "127.0.0.1:0", "--user", "nobody"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        told = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        process.wait(DEADLINE_S)
    uids = re.search(r"^Uid:\s+(.*)$", told, re.MULTILINE)
    assert uids is not None
    assert "0" not in uids[1].split()
    assert "NoNewPrivs:\t1" in told


def test_serve_gives_the_options_to_the_program(program: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from palmette.cli import aggregator

    started: list[list[str]] = []
    monkeypatch.setattr(aggregator.os, "execv", lambda _program, words: started.append(words))
    callback: Any = aggregator.serve.callback
    callback(key=str(key), listen=":7117", config=None)
    assert started == [[str(program), "--key", str(key), "--listen", ":7117"]]


def test_every_option_of_serve_is_one_of_the_program(program: Path) -> None:
    from palmette.cli.aggregator import SERVE_OPTIONS

    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  --(\w+)", told, re.MULTILINE)) == {*SERVE_OPTIONS, "try"}


def test_a_trial_sums_or_says_why_not(program: Path, daemon: Path, key: Path, folder: Path) -> None:
    made = folder / "alice.token"
    token.write_secret(made, token.make_token(token.read_key(key), 7, 1 << 40, 1))
    address = status.read(str(daemon))["address"]

    def trial(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [program, "--try", address, "--token", made, *words], capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    result, said = trial("--members", "5")
    assert (result, said.endswith(": right\n")) == (0, True), said
    assert trial("--chunk", str(1 << 24)) == (
        1,
        "failed: no_resource: chunks of 16777216 bytes: they may have 32 to 262144\n",
    )
    made.write_text(made.read_text().replace(",7,", ",8,"))
    assert trial() == (1, "failed: authentication: the token wasn't made with this daemon's key\n")
    assert status.read(str(daemon))["counters"]["refused"]["authentication"] > 0


def test_systemd_reads_the_unit(root: Path, folder: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    unit = folder / "palmette-aggregator.service"
    text = (root / "packaging/systemd/palmette-aggregator.service").read_text()
    unit.write_text(text.replace("/usr/bin/palmette-aggregator", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "palmette-aggregator" in line]
    assert not said, said
