"""The one setting of the machine itself that a lab changes: net.core.netdev_max_backlog.

All frames between namespaces of one machine pass through a queue per CPU. Its usual length of 1000 overflows when the
CPUs are busy, and TCP then stalls for seconds. The setting is global, so the labs that are up share a note of what it
was before the first of them, and the last one puts it back.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from palmette.lab.processes import ProcessId

SYSCTL = Path("/proc/sys/net/core/netdev_max_backlog")
WANTED = 50_000


def _note() -> Path:
    run = Path("/run")
    return (run if os.access(run, os.W_OK) else Path(tempfile.gettempdir())) / "palmette-lab-backlog.json"


def _open_locked() -> TextIO:
    """Open and lock the note; again when the lock was got on a file that its last user has removed meanwhile."""
    while True:
        file = _note().open("a+", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink > 0:
            return file
        file.close()


@contextmanager
def _locked() -> Iterator[dict[str, Any]]:
    """Yield the note, {"previous": packets, "keepers": [[pid, started], ...]}, and write it back."""
    with _open_locked() as file:
        file.seek(0)
        text = file.read()
        note: dict[str, Any] = json.loads(text) if text else {"previous": None, "keepers": []}
        # Labs that ended by themselves have not signed off.
        note["keepers"] = [keeper for keeper in note["keepers"] if ProcessId(*keeper).is_alive()]
        yield note
        file.seek(0)
        file.truncate()
        if note["previous"] is not None:
            json.dump(note, file)
        else:
            _note().unlink()


def raise_backlog(keeper: ProcessId) -> None:
    """Make the queue long enough for as long as the lab of `keeper` is up."""
    with _locked() as note:
        now = int(SYSCTL.read_text())
        note["previous"] = note["previous"] or now
        note["keepers"].append([keeper.pid, keeper.started])
        if now < WANTED:
            SYSCTL.write_text(f"{WANTED}\n")


def restore_backlog(keeper: ProcessId) -> None:
    """Sign the lab of `keeper` off; the last one restores the setting, unless somebody else changed it meanwhile."""
    if not _note().exists():
        return
    with _locked() as note:
        note["keepers"] = [other for other in note["keepers"] if other != [keeper.pid, keeper.started]]
        if note["keepers"]:
            return
        if note["previous"] is not None and int(SYSCTL.read_text()) == WANTED:
            SYSCTL.write_text(f"{note['previous']}\n")
        note["previous"] = None
