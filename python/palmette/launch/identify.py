"""Telling which launcher an mpiexec, mpirun or srun is, by what it says of itself."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

LauncherKind = Literal["hydra", "intel_hydra", "prrte", "srun"]

# The first that matches counts: Intel's launcher is a hydra too, and says both.
_SIGNS: tuple[tuple[LauncherKind, str], ...] = (
    ("intel_hydra", r"Intel\(R\) MPI Library.*?Version (?P<version>\S+)"),
    ("hydra", r"HYDRA build details:\s*Version:\s*(?P<version>\S+)"),
    ("prrte", r"(?:Open MPI\) |OpenRTE\) |PRRTE[^\d]*|prterun \(PRRTE\) )(?P<version>\d\S*)"),
    ("srun", r"^slurm\S* (?P<version>\d\S*)"),
)


@dataclass(frozen=True)
class Identified:
    """The kind of a launcher and the version that it tells."""

    kind: LauncherKind
    version: str


@cache
def identify(program: Path) -> Identified | None:
    """Run `program --version` and return what it is, or None when it is no launcher that palmette knows.

    The answer is kept: a program is asked once.
    """
    try:
        answer = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return identify_text(answer.stdout)


def identify_text(text: str) -> Identified | None:
    """Return what a launcher is that prints `text` as its version, or None."""
    for kind, sign in _SIGNS:
        match = re.search(sign, text, re.DOTALL if kind == "intel_hydra" else re.MULTILINE)
        if match:
            return Identified(kind, match.group("version"))
    return None
