"""What simulations without palmette gave, kept as data: for a pinned SimGrid they never change.

A rival's algorithm, or traffic alone, is looked up in tests/data/simulated/rivals.json by all that its times depend on.
One of SAMPLE is simulated all the same, and must give what is kept; `make test-long` does that with all of them. What
isn't there is simulated. PALMETTE_TEST_RIVALS=record writes what was simulated into the
file, =anew believes nothing of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from palmette.files import write_text
from palmette_lab.simulate import kept
from palmette_lab.simulate.simgrid import SimulationResult

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "tests" / "data" / "simulated" / "rivals.json"
SAMPLE = 16
SHORT_CPU_S = 30
"""Tests of limits give less: they want to see a simulation that doesn't end."""

SimulationRun = tuple[SimulationResult, dict[str, Any] | None]


@cache
def programs_digest() -> str:
    """Return the digest of the sources of the program that rivals run in."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src" / "programs" / "simbench").iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def key_of(asked: kept.SimulationKey) -> str:
    """Return a name for all that a simulation without palmette depends on."""
    everything = [asked.simgrid, asked.platform, asked.hosts, list(asked.settings), list(asked.arguments)]
    return hashlib.sha256(json.dumps(everything).encode()).hexdigest()[:24]


class Rivals:
    """Stands before `run._run`."""

    def __init__(
        self, simulate: Callable[[str, kept.SimulationKey, int], SimulationRun], mode: str = "", file: Path = FILE
    ) -> None:
        self._simulate, self._mode, self._file = simulate, mode, file
        self._outputs = _read(file)
        self._new: dict[str, str] = {}

    def __call__(self, smpirun: str, asked: kept.SimulationKey, cpu_limit_s: int) -> SimulationRun:
        """Look it up, or simulate it."""
        logs = any(word.startswith("--log=") for word in asked.settings)  # what it logs isn't kept
        if asked.program or logs or cpu_limit_s < SHORT_CPU_S:
            return self._simulate(smpirun, asked, cpu_limit_s)
        key = key_of(asked)
        known = self._outputs.get(key)
        if known is not None and not self._mode and int(key[:8], 16) % SAMPLE:
            return SimulationResult(known, "", ""), None
        ended, report = self._simulate(smpirun, asked, cpu_limit_s)
        if known is not None and self._mode != "record" and not ended.trouble:
            assert alike(ended.output, known), f"{self._file.name} has other times for {asked.arguments}"
        if self._mode == "record" and not ended.trouble:
            self._new[key] = ended.output
        return ended, report

    def write(self) -> None:
        """Add what was simulated to the file; several processes may."""
        if not self._new:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            outputs = dict(sorted({**_read(self._file), **self._new}.items()))
            document = {"programs": programs_digest(), "outputs": outputs}
            write_text(self._file, json.dumps(document, indent=0) + "\n")
        finally:
            os.close(folder)


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
PRECISION_S = 2e-8
"""Precision of SimGrid's clock, with room for sums of it in another order."""


def alike(output: str, other: str) -> bool:
    """Whether two outputs are the same but for the last digits of their times."""
    if NUMBER.sub("#", output) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(output), NUMBER.findall(other), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=PRECISION_S) for a, b in pairs)


def _read(file: Path) -> dict[str, str]:
    """Return key -> output; nothing where the programs have changed since."""
    if not file.is_file():
        return {}
    document = json.loads(file.read_text(encoding="utf-8"))
    return dict(document["outputs"]) if document["programs"] == programs_digest() else {}
