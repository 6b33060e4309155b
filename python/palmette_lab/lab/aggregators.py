"""The aggregation daemons of a lab: one on the host of each aggregator, with a key and a token of the lab's own."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from palmette.aggregator.token import make_token, new_key, read_key, write_secret
from palmette_lab.lab.errors import LabError
from palmette_lab.lab.helpers import helper
from palmette_lab.lab.namespaces import Keeper

PORT = 7117
TOKEN_VARIABLE = "PALMETTE_AGGREGATOR_TOKEN"  # noqa: S105 - a name
"""Variable with which a job's ranks use the aggregators of its topology; empty: none."""

_START_S = 10.0
_EXPIRY_MARGIN_S = 3600.0
_GROUPS = 256

_IN_BACKGROUND = 'log=$1; shift; setsid "$@" </dev/null >"$log" 2>&1 &'
"""The host's init adopts the daemon, which so ends with the lab and not with the shell."""


def token_path(directory: Path) -> Path:
    """Return the file of the token for the lab's ranks."""
    return directory / "aggregator.token"


def status_path(directory: Path, name: str) -> Path:
    """Return the status socket of an aggregator's daemon."""
    return directory / f"{name}.sock"


def log_path(directory: Path, name: str) -> Path:
    """Return what an aggregator's daemon has printed."""
    return directory / f"{name}.log"


def daemon_program() -> Path:
    """Return the path of the daemon. Raises LabError."""
    try:
        return helper("palmette-aggregator")
    except LabError as error:
        raise LabError(
            f"a lab with aggregators needs the daemon: {error}, with the CMake option PALMETTE_BUILD_AGGREGATOR"
        ) from None


def start_daemons(directory: Path, addresses: Mapping[str, str], keeper: Keeper, lifetime_s: float) -> None:
    """Start a daemon on the host of each aggregator in `addresses`, and wait until it listens. Raises LabError."""
    key = directory / "aggregator.key"
    write_secret(key, new_key())
    expires_s = int(time.time() + lifetime_s + _EXPIRY_MARGIN_S)
    write_secret(token_path(directory), make_token(read_key(key), os.getuid(), expires_s, _GROUPS))
    for name, address in addresses.items():
        options = {"name": name, "listen": f"{address}:{PORT}", "key": key, "status": status_path(directory, name)}
        words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
        shell = ["sh", "-c", _IN_BACKGROUND, "sh", str(log_path(directory, name))]
        keeper.run(name, [*shell, str(daemon_program()), *words])
    end = time.monotonic() + _START_S
    for name in addresses:
        while daemon_pid(directory, name) is None:
            if time.monotonic() > end:
                raise LabError(f"the daemon of {name} doesn't start{_last_words(log_path(directory, name))}")
            time.sleep(0.01)


def daemon_pid(directory: Path, name: str) -> int | None:
    """Return the process of an aggregator's daemon, as numbered where this is called; None where none listens."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            # The kernel answers, also for a daemon that is stopped.
            connection.connect(str(status_path(directory, name)))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    pid, _, _ = struct.unpack("3i", credentials)
    return int(pid) or None


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    return next((f": {line}" for line in reversed(lines) if line.strip()), "")
