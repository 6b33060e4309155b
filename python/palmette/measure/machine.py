"""Provenance of a benchmark: the machine and the versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import palmette


def describe_machine() -> dict[str, Any]:
    """Return name, cpu, cores, memory, kernel, system, palmette's version and git commit (None outside a checkout)."""
    return {
        "name": platform.node(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "palmette": palmette.__version__,
        "commit": _commit(),
    }


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _commit() -> str | None:
    """Return the commit of the checkout that this package is used from, with + when files differ from it."""
    package = Path(palmette.__path__[0])
    if not (package.parent.parent / ".git").exists():
        return None

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", package, *words], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "--short=12", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no") if commit else None
    return f"{commit}+" if commit and changed else commit
