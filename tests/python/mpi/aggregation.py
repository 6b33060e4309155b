"""An aggregation daemon for tests, and a proxy in front of it that injects faults at single frames."""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from palmette import _core
from palmette.aggregator import status, token
from palmette_lab.lab.helpers import helper

HEADER_BYTES = 64
VERSION_AT, TYPE_AT, LENGTH_AT = 4, 5, 52
HELLO, CREATE, READY, DATA, RESULT = 1, 2, 4, 5, 6
"""Types of frames (docs/decisions/0023)."""
ALL_KINDS = (HELLO, CREATE, READY, DATA, RESULT)
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

    def __init__(self, folder: Path, limits: dict[str, int] | None = None, profile: str = "open") -> None:
        self.key = folder / "site.key"
        token.write_secret(self.key, token.new_key())
        self._status = folder / "agg.sock"
        self._config = folder / "daemon.json"
        self._config.write_text(json.dumps({"profile": profile, "limits": limits or {}}), encoding="utf-8")
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
        with self.process as process:
            process.kill()

    def told(self) -> dict[str, Any]:
        """Return its status."""
        return status.read(str(self._status))

    def files(self) -> int:
        """Return how many files it has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

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
    generation: int
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
    """Stands between the ranks, each of which has one connection for each communicator, and their daemon.

    The connections of one communicator are a generation. The first passes undisturbed, and the g-th after it meets the
    fault at frame `at[g - 1]` of those of `kinds`, counted from 0, or without `at` at frame g - 1:

    - close: the frame is lost and all connections of the generation end;
    - kill: the same after SIGKILL of the daemon; another one is started for the next generation;
    - corrupt: a bit of the frame is another one;
    - truncate: half of the frame comes, then its connection ends;
    - stall: neither the frame nor anything after it comes through, on any connection of the generation;
    - stop: SIGSTOP of the daemon before the frame; it goes on with the next generation.
    """

    def __init__(
        self,
        daemon: Daemon,
        fault: str = "",
        at: Sequence[int] | None = None,
        kinds: Container[int] = (DATA, RESULT),
        ranks: int = 8,
        change: Change | None = None,
    ) -> None:
        self._daemon, self._fault, self._kinds = daemon, fault, kinds
        self._at = at
        self._ranks, self._change = ranks, change
        self.frames: list[int] = []
        """Frames of `kinds` that came, by generation."""
        self._accepted = 0
        self._stalled: set[int] = set()
        self._closed: set[int] = set()
        self._done = False
        self._sides: dict[socket.socket, _Side] = {}
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
        for side in list(self._sides.values()):
            self._close(side)
        self._listener.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._done:
            for key, _ in self._selector.select(0.05):
                if key.fileobj is self._listener:
                    self._accept()
                elif side := self._sides.get(cast("socket.socket", key.fileobj)):
                    self._pass_on(side)

    def _accept(self) -> None:
        member = self._listener.accept()[0]
        generation = self._accepted // self._ranks
        if self._accepted % self._ranks == 0:
            self.frames.append(0)
            if self._daemon.process.poll() is not None:
                self._daemon.start()
            if self._fault == "stop":
                self._daemon.process.send_signal(signal.SIGCONT)
        self._accepted += 1
        try:
            daemon = socket.create_connection(("127.0.0.1", self._daemon.port), DEADLINE_S)
        except OSError:
            member.close()
            return
        for source, target, to_daemon in ((member, daemon, True), (daemon, member, False)):
            source.settimeout(DEADLINE_S)
            self._sides[source] = _Side(source, target, to_daemon, generation)
            self._selector.register(source, selectors.EVENT_READ)
        if generation in self._closed:
            self._close(self._sides[member])

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
            if side.source not in self._sides:
                return
            if self._change:
                self._change(frame, side.to_daemon)
            if frame[TYPE_AT] in self._kinds:
                number = self.frames[side.generation]
                self.frames[side.generation] += 1
                if self._is_due(side.generation, number):
                    self._inject(side, frame, number)
            if side.generation not in self._stalled:
                self._send(side, frame)

    def _is_due(self, generation: int, number: int) -> bool:
        if not self._fault or generation == 0:
            return False
        if self._at is None:
            return number == generation - 1
        return generation <= len(self._at) and number == self._at[generation - 1]

    def _inject(self, side: _Side, frame: bytearray, number: int) -> None:
        if self._fault == "kill":
            self._daemon.kill()
        if self._fault in ("kill", "close"):
            self._closed.add(side.generation)
            for other in list(self._sides.values()):
                if other.generation == side.generation:
                    self._close(other)
        elif self._fault == "corrupt":
            # Every second one in the header, but for the version, which is looked at first.
            size = len(frame) - HEADER_BYTES
            at = HEADER_BYTES + 37 * number % size if number % 2 and size else TYPE_AT + 3 * number % 58
            frame[at] ^= 1 << number % 8
        elif self._fault == "truncate":
            self._send(side, frame[: len(frame) // 2])
            self._close(side)
        elif self._fault == "stop":
            self._daemon.process.send_signal(signal.SIGSTOP)
        else:
            self._stalled.add(side.generation)

    def _send(self, side: _Side, frame: bytearray) -> None:
        try:
            side.target.sendall(frame)
        except OSError:
            self._close(side)

    def _close(self, side: _Side) -> None:
        for end in (side.source, side.target):
            if self._sides.pop(end, None):
                self._selector.unregister(end)
                end.close()


@contextlib.contextmanager
def running(daemon: Daemon) -> Iterator[Daemon]:
    """End the daemon at the end."""
    try:
        yield daemon
    finally:
        daemon.kill()
