"""A headless Chromium, spoken to by its DevTools protocol over a pair of pipes: no package is needed for it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
TIMEOUT_S = 20
_FREE = 40
"""Above the descriptors 3 and 4, which the browser reads and writes."""


class BrowserError(Exception):
    """The browser didn't start, or a page's script failed."""


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page, which is loaded anew by `open`. What it logged as an error is in `errors`."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result. Raises BrowserError."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        raw = json.dumps(message).encode() + b"\0"
        while raw:
            raw = raw[os.write(self._commands, raw) :]
        while (answer := self._next()).get("id") != number:
            self._noted(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise BrowserError("the browser has ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _noted(self, event: dict[str, Any]) -> None:
        method, what = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(one.get("description", one.get("value"))) for one in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(
            ("file:", "data:", "blob:")
        ):
            self.errors.append(f"the page asked for {what['request']['url']}")

    def open(self, page: Path, width: int, height: int = 900, *, dark: bool = False, motion: bool = False) -> None:
        """Load a page in a window of that many pixels; without `motion` it's told that nobody wants any."""
        self.errors.clear()
        self._loaded = False
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        wishes = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "no-preference" if motion else "reduce",
        }
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._noted(self._next())

    def value(self, expression: str) -> Any:
        """Evaluate in the page; promises are awaited. Raises BrowserError with the exception's words."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until the expression holds. Raises BrowserError after TIMEOUT_S."""
        end = time.monotonic() + TIMEOUT_S
        while not self.value(expression):
            if time.monotonic() > end:
                raise BrowserError(f"never: {expression}; {'; '.join(self.errors)}")
            time.sleep(0.05)

    def key(self, name: str, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what the window shows as PNG, or the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A running browser with its files in `profile`; it ends with the block."""
    commands, answers = os.pipe(), os.pipe()
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, _FREE) for one in (commands[0], answers[1])]
    words = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{high[0]} 4>&{high[1]}', "browser", *words],
        pass_fds=high, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for one in (commands[0], answers[1], *high):
        os.close(one)
    try:
        started = Browser(commands[1], answers[0])
        yield started
        started._session = None
        started.call("Browser.close")
    finally:
        os.close(commands[1])
        os.close(answers[0])
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
