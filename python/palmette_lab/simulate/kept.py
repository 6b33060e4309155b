"""Cache of simulations: they are deterministic, the same input gives the same times to the last digit."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from palmette_lab.simulate import simgrid
from palmette_lab.simulate.errors import SimulateError
from palmette_lab.simulate.simgrid import SimulationResult


@dataclass(frozen=True, slots=True)
class SimulationKey:
    """All that a simulated time depends on."""

    simgrid: str
    platform: str
    hosts: str
    settings: Sequence[str]
    arguments: Sequence[str]
    program: str
    """A digest of the program with palmette linked in; empty for a rival: they share a program, which is in the key."""
    topology: str
    """The topology that palmette reads; empty for a rival."""
    environment: dict[str, str]

    @property
    def key(self) -> str:
        """The hash of all inputs, including the programs."""
        everything = [
            [_digest(part) for part in ([simgrid.START] if self.program else [simgrid.ALONE, simgrid.START])],
            self.simgrid,
            self.platform,
            self.hosts,
            list(self.settings),
            list(self.arguments),
            self.program,
            self.topology,
            sorted(self.environment.items()),
        ]
        return hashlib.sha256(json.dumps(everything).encode()).hexdigest()


@cache
def _digest(part: Path) -> str:
    """Digest of a program or preload library of the simulator; empty where it isn't built."""
    return hashlib.sha256(part.read_bytes()).hexdigest() if part.is_file() else ""


class SimulationCache:
    """A folder with a small file for each simulation."""

    def __init__(self, folder: Path) -> None:
        """Make the folder. Raises SimulateError where that can't be done."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SimulateError(f"can't keep results in {folder}: {error.strerror}; choose another folder") from None

    def find(self, asked: SimulationKey, cpu_limit_s: int) -> tuple[SimulationResult, dict[str, Any] | None] | None:
        """Return the outcome and palmette's report, or None; also None if it timed out under a shorter limit."""
        try:
            kept: dict[str, Any] = json.loads(self._file(asked).read_text(encoding="utf-8"))
            ended = SimulationResult(kept["output"], kept["errors"], kept["trouble"])
            report: dict[str, Any] | None = kept["report"]
            limit_s = int(kept["cpu_limit_s"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or cut short by a full disk: simulated again
        return None if ended.trouble and limit_s < cpu_limit_s else (ended, report)

    def keep(
        self, asked: SimulationKey, ended: SimulationResult, report: dict[str, Any] | None, cpu_limit_s: int
    ) -> None:
        """Store it atomically."""
        file = self._file(asked)
        partial = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.partial")
        document = {
            "output": ended.output,
            "errors": ended.errors[-2000:],
            "trouble": ended.trouble,
            "report": report,
            "cpu_limit_s": cpu_limit_s,
        }
        try:
            partial.write_text(json.dumps(document), encoding="utf-8")
            partial.replace(file)
        except OSError as error:
            raise SimulateError(
                f"can't write {file}: {error.strerror}; free disk space, or choose another folder"
            ) from None

    def _file(self, asked: SimulationKey) -> Path:
        return self.folder / f"{asked.key[:32]}.json"
