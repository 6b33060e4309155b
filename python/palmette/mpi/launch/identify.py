"""Detecting which launcher an mpiexec, mpirun, srun, flux or aprun is, by the output of `--version`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from palmette.mpi.launch.kept import keep, recall, signature

LauncherKind = Literal["hydra", "intel_hydra", "prrte", "srun", "flux", "aprun", "pals"]

# The first that matches counts: Intel's launcher is a hydra too, and says both.
_SIGNS: tuple[tuple[LauncherKind, str], ...] = (
    ("intel_hydra", r"Intel\(R\) MPI Library.*?Version (?P<version>\S+)"),
    ("hydra", r"HYDRA build details:\s*Version:\s*(?P<version>\S+)"),
    ("prrte", r"(?:Open MPI\) |OpenRTE\) |PRRTE[^\d]*|prterun \(PRRTE\) )(?P<version>\d\S*)"),
    ("srun", r"^slurm\S* (?P<version>\d\S*)"),
    ("flux", r"^libflux-core:\s*(?P<version>\d\S*)"),
    ("aprun", r"\(ALPS\)\s*(?:version )?(?P<version>\d\S*)"),
    ("pals", r"^(?:mpiexec|mpirun|aprun|pals\w*) version (?P<version>\d\S*)"),
)


class LauncherVersion(NamedTuple):
    """The kind of a launcher and the version that it prints."""

    kind: LauncherKind
    version: str


_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LOADEDMODULES", "I_MPI_ROOT", "OPAL_PREFIX", "PRTE_PREFIX", "SLURM_CONF")


def launcher_key(program: Path | None, environment: Mapping[str, str]) -> list[object]:
    """Return what a launcher's answers depend on: its file, and variables by which a wrapper script may choose one."""
    variables = [environment.get(name, "") for name in _VARIABLES]
    return [str(program.absolute()) if program else "", signature(program) if program else None, variables]


@cache
def identify(program: Path) -> LauncherVersion | None:
    """Run `program --version` and return what it is, or None when it is no launcher that palmette knows.

    The answer is cached, also on disk as long as the program doesn't change.
    """
    key = launcher_key(program, os.environ)
    known = recall("launcher", key)
    if isinstance(known, list) and len(known) == 2 and known[0] in get_args(LauncherKind):
        return LauncherVersion(known[0], str(known[1]))
    found = _ask(program)
    if found is not None:
        keep("launcher", key, [found.kind, found.version])
    return found


def _ask(program: Path) -> LauncherVersion | None:
    import subprocess  # not needed where the answer is known

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


def identify_text(text: str) -> LauncherVersion | None:
    """Return what a launcher is that prints `text` as its version, or None."""
    for kind, sign in _SIGNS:
        match = re.search(sign, text, re.DOTALL if kind == "intel_hydra" else re.MULTILINE)
        if match:
            return LauncherVersion(kind, match.group("version"))
    return None
