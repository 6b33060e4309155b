"""On-disk state of running labs, one folder each, so that other processes can attach to and end them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from palmette_lab.lab.errors import LabError
from palmette_lab.lab.processes import ProcessId

FORMAT = "palmette-lab"
VERSION = 1


def state_root() -> Path:
    """Return the folder of all labs: PALMETTE_LAB_STATE, or palmette-lab in XDG_RUNTIME_DIR, /run or the temp one."""
    if "PALMETTE_LAB_STATE" in os.environ:
        return Path(os.environ["PALMETTE_LAB_STATE"]).absolute()
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/run")
    base = runtime if os.access(runtime, os.W_OK) else Path(tempfile.gettempdir())
    return base / "palmette-lab"


def lab_directory(name: str) -> Path:
    """Return the folder of the lab called `name`. Raises LabError for an invalid name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", name):
        raise LabError(f"'{name}' can't be the name of a lab; use up to 32 letters, digits, hyphens and underscores")
    return state_root() / name


@contextmanager
def locked() -> Iterator[None]:
    """Hold the global lock against other processes that start or end a lab."""
    root = state_root()
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (root / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class HostState:
    """A host: its address, the PID of its init (in the keeper's PID namespace) and its slots."""

    name: str
    address: str
    pid: int
    slots: int


@dataclass(frozen=True)
class AggregatorState:
    """An aggregator: its switch, its host's address, and the PID of that host's init as of HostState."""

    name: str
    switch: str
    address: str
    pid: int


@dataclass(frozen=True)
class LabState:
    """All that another process needs to attach. Times are seconds since the epoch; `rates`: the current link rates."""

    name: str
    spec: str
    spine_delay_s: float
    keeper_pid: int
    keeper_started: int
    boot_id: str
    created_s: float
    lifetime_s: float
    hosts: list[HostState]
    rates: dict[str, float | None]
    limits: list[str] = field(default_factory=list)
    """What this lab lacks that others have, a phrase each: in a user namespace not all can be set."""
    aggregators: list[AggregatorState] = field(default_factory=list)

    @property
    def keeper(self) -> ProcessId:
        """The keeper process, whose end takes the lab down."""
        return ProcessId(self.keeper_pid, self.keeper_started)

    def is_alive(self) -> bool:
        """Whether the lab is up: its keeper runs, on this boot of the machine."""
        return self.boot_id == machine_boot_id() and self.keeper.is_alive()

    def write(self, directory: Path) -> None:
        """Write the state into `directory`, atomically."""
        temporary = directory / "state.json.new"
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        temporary.replace(directory / "state.json")


def read_state(directory: Path) -> LabState | None:
    """Return the state in `directory`, or None when there is no valid one (a lab that died during setup)."""
    try:
        document: dict[str, Any] = json.loads((directory / "state.json").read_text(encoding="utf-8"))
        if (document.pop("format"), document.pop("version")) != (FORMAT, VERSION):
            return None
        hosts = [HostState(**host) for host in document.pop("hosts")]
        aggregators = [AggregatorState(**one) for one in document.pop("aggregators", [])]
        return LabState(hosts=hosts, aggregators=aggregators, **document)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def known_labs(root: Path | None = None) -> list[str]:
    """Return the names of all labs that have a folder, dead ones included."""
    try:
        return sorted(entry.name for entry in (root or state_root()).iterdir() if entry.is_dir())
    except OSError:
        return []


@dataclass(frozen=True)
class RunningLab:
    """A lab of this machine that is up: its state, its folder, and whose it is. `ours`: it can be attached to."""

    state: LabState
    directory: Path
    owner: str
    ours: bool


def labs_up() -> list[RunningLab]:
    """Return all labs that are up, other users' too, as far as their state can be read; this user's first."""
    mine = state_root()
    roots = [mine]
    if "PALMETTE_LAB_STATE" not in os.environ:
        places = [Path("/run"), *sorted(Path("/run/user").glob("*")), Path(tempfile.gettempdir())]
        roots += [place / mine.name for place in places]
    found = []
    for root in dict.fromkeys(roots):
        for name in known_labs(root):
            state = read_state(root / name)
            if state is not None and state.is_alive():
                found.append(RunningLab(state, root / name, _owner(root / name), root == mine))
    return found


def where_else(name: str) -> str:
    """Return whose the lab called `name` is that is up but not this user's, and how to use it; empty: there is none."""
    other = next((one for one in labs_up() if one.state.name == name and not one.ours), None)
    if other is None:
        return ""
    if other.directory.stat().st_uid == os.geteuid():
        return f"one of that name is, in another folder (PALMETTE_LAB_STATE={other.directory.parent})"
    how = "sudo" if other.owner == "root" else f"sudo -u {other.owner}"
    return f"one of that name is {other.owner}'s ({how} palmette ...)"


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):
        return "another user"


def remove(directory: Path) -> None:
    """Remove the folder of a lab that is down."""
    shutil.rmtree(directory, ignore_errors=True)


def machine_boot_id() -> str:
    """Return the identifier of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
