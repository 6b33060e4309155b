"""On-disk cache of slow queries: what a launcher prints, what a program is linked with.

In `$XDG_CACHE_HOME/palmette` or `~/.cache/palmette`, a small file for each. The cache is optional: where the folder
can't be read or written, or a file is damaged, the query is repeated. No function here raises.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

MAX_ENTRIES = 256
"""The oldest entries are evicted when there are more."""
MAX_BYTES = 256 * 1024
"""Size of the largest entry that is cached."""

Signature = list[int]
"""What changes when a file does: device, inode, size, times of the last change of contents and of permissions in ns."""


def signature(path: str | Path) -> Signature | None:
    """Return the signature of the file at `path`, through links; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called hundreds of times at each start
    except (OSError, ValueError):
        return None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def recall(kind: str, key: object) -> Any:
    """Return what `keep` was given for `key` by this version of palmette; None where nothing is kept."""
    text = _text(kind, key)
    path = _path(kind, text)
    if path is None:
        return None
    try:
        # A file of another user isn't trusted: it decides what is preloaded.
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            stored = json.loads(file.read(MAX_BYTES))
        return stored["value"] if stored["key"] == text else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(kind: str, key: object, value: object) -> None:
    """Keep `value`, which JSON must be able to hold, for `key`. The file is replaced in one step."""
    text = _text(kind, key)
    path = _path(kind, text)
    contents = json.dumps({"key": text, "value": value})
    if path is None or len(contents) > MAX_BYTES:
        return
    # Other hosts may write to the same folder, with the same process numbers.
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(contents, encoding="ascii")
        temporary.replace(path)
        _evict(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _evict(folder: Path) -> None:
    entries = list(folder.iterdir())
    if len(entries) <= MAX_ENTRIES:
        return

    def age(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:  # evicted by another process at the same time
            return 0.0

    # A quarter at once, to amortise the scan of the folder.
    for entry in sorted(entries, key=age)[: len(entries) - MAX_ENTRIES * 3 // 4]:
        with contextlib.suppress(OSError):
            entry.unlink()


def _text(kind: str, key: object) -> str:
    return json.dumps([kind, _generation(), key])


def _path(kind: str, text: str) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        if not home.startswith("/"):
            return None
        base = f"{home}/.cache"
    # Of two keys with the same hash the later one stays; the file holds the key itself.
    return Path(base) / "palmette" / f"{kind}-{binascii.crc32(text.encode()):08x}.json"


@cache
def _generation() -> list[int]:
    """Return what changes with each version of the code that finds the answers."""
    here = Path(__file__).parent
    newest = total = 0
    for folder in (here, here.parent, here.parent.with_name("run"), here.parent.parent):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".py"):
                        found = entry.stat()
                        newest, total = max(newest, found.st_mtime_ns), total + found.st_size
        except OSError:
            continue
    return [newest, total]
