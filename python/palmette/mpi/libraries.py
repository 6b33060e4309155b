"""Resolves a program's shared libraries as the dynamic loader would, without running anything.

Like ldd, but safe for untrusted programs and usable for other environments than ours: ld.so(8) gives the order,
which is RPATH (where no RUNPATH is), LD_LIBRARY_PATH, RUNPATH, the cache of ldconfig, the system's folders.
"""

from __future__ import annotations

import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from palmette.mpi.elf import Binary, read_binary

SYSTEM_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


class NeededLibrary(NamedTuple):
    """One DT_NEEDED entry: the name, who asks for it, and the file that serves it (None: not found)."""

    name: str
    by: Path
    file: Path | None


CACHE_FILE = Path("/etc/ld.so.cache")
"""What `ldconfig -p` prints."""


def needed_libraries(
    program: Binary,
    environment: Mapping[str, str],
    stop: Callable[[str], bool] = lambda name: False,
    examined: set[Path] | None = None,
) -> Iterator[NeededLibrary]:
    """Yield every library that `program` needs, itself or through others, nearest first, each name once.

    What a library needs isn't followed when `stop(its name)` is true. Files that can't be read count as not found.
    `examined` gets the path of every file that the answer depends on, also of those that aren't there.
    """
    examined = set() if examined is None else examined
    seen: set[str] = set()
    queue: deque[tuple[Binary, tuple[str, ...]]] = deque([(program, ())])
    while queue:
        binary, inherited = queue.popleft()
        # The RPATHs of who needs a library are searched for what that library needs, too.
        rpath = () if binary.runpath else (*_expanded(binary.rpath, binary), *inherited)
        for name in binary.needed:
            if name in seen:
                continue
            seen.add(name)
            found = _find(name, binary, rpath, environment, program.machine, examined)
            yield NeededLibrary(name, binary.path, found.path if found else None)
            if found is not None and not stop(name):
                queue.append((found, rpath))


def _find(
    name: str,
    by: Binary,
    rpath: tuple[str, ...],
    environment: Mapping[str, str],
    machine: tuple[int, bool, str],
    examined: set[Path],
) -> Binary | None:
    if "/" in name:
        return _fitting(Path(name), machine, examined)
    # An empty entry of LD_LIBRARY_PATH stands for the working directory.
    listed = environment.get("LD_LIBRARY_PATH", "")
    folders = [*rpath, *(entry or "." for entry in re.split("[:;]", listed) if listed)]
    folders += _expanded(by.runpath, by)
    for folder in folders:
        found = _fitting(Path(folder) / name, machine, examined)
        if found is not None:
            return found
    examined.add(CACHE_FILE)
    for path in (*_cache().get(name, ()), *(Path(folder) / name for folder in SYSTEM_FOLDERS)):
        found = _fitting(path, machine, examined)
        if found is not None:
            return found
    return None


def _fitting(path: Path, machine: tuple[int, bool, str], examined: set[Path]) -> Binary | None:
    """Return the library at `path` if there is one for that machine: the loader skips others, too."""
    examined.add(path)
    try:
        binary = read_binary(path)
    except OSError:
        return None
    return binary if binary is not None and binary.machine == machine else None


def _expanded(paths: tuple[str, ...], binary: Binary) -> list[str]:
    """Return search paths with $ORIGIN and $LIB filled in; $LIB gives two, for distributions differ."""
    origin = str(binary.path.resolve().parent)
    result = []
    for path in paths:
        filled = re.sub(r"\$(?:ORIGIN|\{ORIGIN\})", lambda _: origin, path)
        values = ("lib64", "lib") if re.search(r"\$(?:LIB\b|\{LIB\})", filled) else ("",)
        result += [re.sub(r"\$(?:LIB\b|\{LIB\})", value, filled) for value in values]
    return result


@cache
def _cache() -> dict[str, tuple[Path, ...]]:
    """Return what ldconfig's cache holds; nothing where there is no ldconfig."""
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        return {}
    import subprocess  # not needed where the program was examined before

    try:
        text = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    entries: dict[str, list[Path]] = {}
    for match in re.finditer(r"^\t(\S+) \(.*\) => (/.*)$", text, re.MULTILINE):
        entries.setdefault(match[1], []).append(Path(match[2]))
    return {name: tuple(paths) for name, paths in entries.items()}
