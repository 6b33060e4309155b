"""The only global sysctl that a lab changes: net.core.netdev_max_backlog.

All frames between namespaces of one machine pass through a queue per CPU. Its default length of 1000 overflows when the
CPUs are busy, and TCP then stalls for seconds. The setting is global, so all running labs share a file with its former
value, and the last one restores it.
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

from palmette_lab.lab.processes import ProcessId

SYSCTL = Path("/proc/sys/net/core/netdev_max_backlog")
WANTED = 50_000


def _state_file() -> Path:
    run = Path("/run")
    return (run if os.access(run, os.W_OK) else Path(tempfile.gettempdir())) / "palmette-lab-backlog.json"


def _open_locked() -> TextIO:
    """Open and lock the file; retry where its last user removed it before the lock was acquired."""
    while True:
        file = _state_file().open("a+", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink > 0:
            return file
        file.close()


@contextmanager
def _locked() -> Iterator[dict[str, Any]]:
    """Yield the file's contents, {"previous": packets, "keepers": [[pid, started], ...]}, and write them back."""
    with _open_locked() as file:
        file.seek(0)
        text = file.read()
        shared: dict[str, Any] = json.loads(text) if text else {"previous": None, "keepers": []}
        # Labs that ended by themselves haven't removed their entries.
        shared["keepers"] = [keeper for keeper in shared["keepers"] if ProcessId(*keeper).is_alive()]
        yield shared
        file.seek(0)
        file.truncate()
        if shared["previous"] is not None:
            json.dump(shared, file)
        else:
            _state_file().unlink()


def may_raise() -> bool:
    """Whether the setting may be changed: not in a user namespace, nor in most containers."""
    return os.access(SYSCTL, os.W_OK)


def raise_backlog(keeper: ProcessId) -> None:
    """Raise the queue length while the lab of `keeper` is up, if that is allowed."""
    if not may_raise():
        return
    with _locked() as shared:
        now = int(SYSCTL.read_text())
        shared["previous"] = shared["previous"] or now
        shared["keepers"].append([keeper.pid, keeper.started])
        if now < WANTED:
            SYSCTL.write_text(f"{WANTED}\n")


def restore_backlog(keeper: ProcessId) -> None:
    """Remove the entry of `keeper`; the last one restores the setting, unless it was changed by others meanwhile."""
    # Who may not change the setting has no entry, and from inside of a namespace the keepers of others look dead.
    if not may_raise() or not _state_file().exists():
        return
    with _locked() as shared:
        shared["keepers"] = [other for other in shared["keepers"] if other != [keeper.pid, keeper.started]]
        if shared["keepers"]:
            return
        if shared["previous"] is not None and int(SYSCTL.read_text()) == WANTED:
            SYSCTL.write_text(f"{shared['previous']}\n")
        shared["previous"] = None
