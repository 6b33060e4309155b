"""An aggregation daemon for tests, and a proxy in front of it that injects faults at single frames."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from palmette import _core
from palmette.aggregator import status, token
from palmette.lab.helpers import helper

HEADER_BYTES = 64
VERSION_AT, TYPE_AT, LENGTH_AT = 4, 5, 52
HELLO, CREATE, DATA, RESULT = 1, 2, 5, 6
"""Of docs/decisions/0023."""
DEADLINE_S = 20.0


def topology(path: Path, address: str, form: str = "aggregator@1GB/s:4node@1GB/s:2core") -> Path:
    """Write a synthetic topology whose aggregators' daemon is at `address`."""
    machine = _core.Machine.synthetic(form).to_json()
    for one in machine["tree"]["aggregators"]:
        one["address"] = address
    path.write_text(json.dumps({"format": "palmette-topology", "version": 1, "machine": machine}), encoding="utf-8")
    return path


class Daemon:
    """`palmette-aggregator` on a loopback port that stays the same when it is started again."""

    def __init__(self, folder: Path, limits: dict[str, int] | None = None) -> None:
        self.key = folder / "site.key"
        token.write_secret(self.key, token.new_key())
        self._status = folder / "agg.sock"
        self._config = folder / "daemon.json"
        self._config.write_text(json.dumps({"limits": limits or {}}), encoding="utf-8")
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, and return when it listens."""
        words = {"key": self.key, "listen": self.address, "status": self._status, "config": self._config}
        self.process = subprocess.Popen(
            [helper("palmette-aggregator"), *(str(word) for name in words for word in (f"--{name}", words[name]))],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.match(r"listening on 127\.0\.0\.1:(\d+)", said)
        assert found is not None, said
        self.port = int(found[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """SIGKILL, also of one that is stopped."""
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def send_signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)

    def close(self) -> None:
        self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def told(self) -> dict[str, Any]:
        """Return its status."""
        return status.read(str(self._status))

    def files(self) -> int:
        """Return how many files it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def idle(self) -> dict[str, Any]:
        """Return its status when it has no connection any more: ranks that have ended are noticed a bit later."""
        end = time.monotonic() + DEADLINE_S
        while (told := self.told())["open_connections"] > 0 and time.monotonic() < end:
            time.sleep(0.01)
        return told


@dataclass
class _Side:
    """What comes from one socket and goes to the other."""

    source: socket.socket
    target: socket.socket
    to_daemon: bool
    waiting: bytearray = field(default_factory=bytearray)

    def frames(self) -> Iterator[bytearray]:
        """Yield the frames that have come whole."""
        while len(self.waiting) >= HEADER_BYTES:
            size = HEADER_BYTES + struct.unpack_from("<I", self.waiting, LENGTH_AT)[0]
            if len(self.waiting) < size:
                return
            frame = self.waiting[:size]
            del self.waiting[:size]
            yield frame


Change = Callable[[bytearray, bool], None]
"""Called with each frame and whether it goes to the daemon; may change it."""


class Proxy:
    """Stands between ranks and daemon.

    The connections of one communicator are a generation, and a new one begins when all of the last one are closed. The
    first passes undisturbed, and the g-th after it meets the fault at its frame number `at[g]`, of those with data or
    results, or g without `at`:

    - close: the frame is lost and all connections end;
    - kill: the same after SIGKILL of the daemon; another one is started for the next generation;
    - corrupt: a bit of the frame is another one;
    - truncate: half of the frame comes, then its connection ends;
    - stall: neither the frame nor anything after it comes through, on any connection;
    - stop: SIGSTOP of the daemon before the frame; it goes on with the next generation.
    """

    def __init__(
        self, daemon: Daemon, fault: str = "", at: Sequence[int] | None = None, change: Change | None = None
    ) -> None:
        self._daemon, self._fault, self._at, self._change = daemon, fault, at, change
        self.frames: list[int] = []
        """By generation: those with data or results that came."""
        self._stalled = self._done = False
        self._ends: dict[socket.socket, _Side] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done = True
        self._thread.join(DEADLINE_S)
        self._close_all()
        self._listener.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._done:
            ready = [key.fileobj for key, _ in self._selector.select(0.05)]
            # Ranks close their connections before one of them connects for the next generation.
            if ready == [self._listener]:
                self._accept()
            for one in ready:
                if isinstance(one, socket.socket) and one in self._ends:
                    self._pass_on(self._ends[one])

    def _accept(self) -> None:
        member = self._listener.accept()[0]
        if not self._ends:
            self.frames.append(0)
            self._stalled = False
            if self._fault == "kill" and self._daemon.process.poll() is not None:
                self._daemon.start()
            if self._fault == "stop":
                self._daemon.send_signal(signal.SIGCONT)
        try:
            daemon = socket.create_connection(("127.0.0.1", self._daemon.port), DEADLINE_S)
        except OSError:
            member.close()
            return
        for source, target, to_daemon in ((member, daemon, True), (daemon, member, False)):
            source.settimeout(DEADLINE_S)
            self._ends[source] = _Side(source, target, to_daemon)
            self._selector.register(source, selectors.EVENT_READ)

    def _pass_on(self, side: _Side) -> None:
        try:
            got = side.source.recv(1 << 16)
        except OSError:
            got = b""
        if not got:
            self._close(side)
            return
        side.waiting += got
        for frame in side.frames():
            if self._change:
                self._change(frame, side.to_daemon)
            if frame[TYPE_AT] in (DATA, RESULT):
                number = self.frames[-1]
                self.frames[-1] += 1
                if self._is_due(number):
                    self._inject(side, frame, number)
            if not self._stalled:
                self._send(side, frame)
            if side.source not in self._ends:
                return

    def _is_due(self, number: int) -> bool:
        generation = len(self.frames) - 1
        if not self._fault or generation == 0:
            return False
        return number == (self._at[generation - 1] if self._at else generation - 1)

    def _inject(self, side: _Side, frame: bytearray, number: int) -> None:
        if self._fault == "kill":
            self._daemon.kill()
        if self._fault in ("kill", "close"):
            self._close_all()
        elif self._fault == "corrupt":
            # Every second one in the header, but for the version, which is looked at first.
            at = HEADER_BYTES + 37 * number % (len(frame) - HEADER_BYTES) if number % 2 else TYPE_AT + 3 * number % 58
            frame[at] ^= 1 << number % 8
        elif self._fault == "truncate":
            self._send(side, frame[: len(frame) // 2])
            self._close(side)
        elif self._fault == "stop":
            self._daemon.send_signal(signal.SIGSTOP)
        else:
            self._stalled = True

    def _send(self, side: _Side, frame: bytearray) -> None:
        if side.source not in self._ends:
            return
        try:
            side.target.sendall(frame)
        except OSError:
            self._close(side)

    def _close(self, side: _Side) -> None:
        for end in (side.source, side.target):
            if self._ends.pop(end, None):
                self._selector.unregister(end)
                end.close()

    def _close_all(self) -> None:
        for side in list(self._ends.values()):
            self._close(side)


@contextlib.contextmanager
def running(daemon: Daemon) -> Iterator[Daemon]:
    """End the daemon at the end."""
    try:
        yield daemon
    finally:
        daemon.close()
