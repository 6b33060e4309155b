"""The program of a command line: its file, the MPI that it is linked with, and whether it can be preloaded."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from palmette.mpi.abi import ABIS, SONAMES, Abi, Evidence, abi_of, is_mpi
from palmette.mpi.elf import MAGIC, defines, is_program, read_binary
from palmette.mpi.errors import RunError
from palmette.mpi.launch.kept import Signature, keep, recall, signature
from palmette.mpi.libraries import NeededLibrary, needed_libraries
from palmette.mpi.sanitizer import is_asan

MAX_INTERPRETERS = 4
"""How far `#!` lines are followed, as far as Linux does."""


CLOCK_NS = 20_000_000
"""Upper bound on the lag of file timestamps behind the clock."""
SHELL = Path("/bin/sh")
"""What execvp(3), and so launchers and shells, run a text with that has no `#!` line."""
MAX_EXAMINED = 4096
"""Results that depend on more files aren't cached."""


class Program(NamedTuple):
    """A word of the command line, the file that it starts, and the ELF file that is executed for that.

    `path` is the file itself, `executed` its interpreter where the file is a script.
    """

    word: str
    path: Path
    executed: Path

    @property
    def is_script(self) -> bool:
        """Whether an interpreter runs the file."""
        return self.path != self.executed


class LinkInfo(NamedTuple):
    """What an ELF file is linked with, as far as it matters here.

    `evidence` is None without a shared MPI. `is_static`: no dynamic loader starts it, so nothing can be preloaded.
    `holds_mpi`: an MPI is part of the file itself. `asan` is the address sanitizer's shared runtime, None if unused.
    """

    evidence: Evidence | None
    is_static: bool = False
    holds_mpi: bool = False
    asan: Path | None = None


def find_program(word: str, environment: Mapping[str, str], directory: Path, *, by_launcher: bool = True) -> Program:
    """Return the program that `word` starts in `directory`, on its own or other hosts where a launcher does it.

    Raises RunError when there is none that can be read.
    """
    path = _locate(word, environment, directory)
    if path is None:
        raise RunError(f"{word}: {_why_not(word, directory, by_launcher)}")
    return Program(word, path.absolute(), _executed(path, environment))


def _why_not(word: str, directory: Path, by_launcher: bool) -> str:
    """Return why `word` names no program, and what to do."""
    try:
        there = directory / word if word and "\0" not in word else None
        if there is not None and there.is_dir():
            return "a folder, no program; name the program in it"
        if there is not None and there.exists():
            return "this file isn't executable; name the program that was built of it, or chmod +x what is one"
    except OSError:  # a word far too long to be a file's name
        pass
    if by_launcher:
        return "no such program here; correct the name, or say --abi if it is only on the other hosts"
    return "no such program here; correct the name, or PATH (`palmette doctor` lists the launchers there)"


def linked(program: Path, environment: Mapping[str, str]) -> LinkInfo:
    """Return what the ELF file `program` is linked with, by itself or through a library.

    The result is cached on disk, and valid as long as none of the examined files changes and none appears where one
    was searched for but missing. Raises RunError for a program with two MPIs, or with one of an unknown ABI.
    """
    key = [str(program), environment.get("LD_LIBRARY_PATH", "")]
    known = _recalled(recall("linked", key))
    if known is not None:
        return known
    examined = {program}
    begun_ns = time.time_ns()
    found = _linked(program, environment, examined)
    files = [(str(path), signature(path)) for path in examined]
    # A file that has just changed might have been read before the change.
    settled = all(one is None or one[-1] < begun_ns - CLOCK_NS for _, one in files)
    # What was found in relation to the working directory holds only there.
    if settled and len(files) <= MAX_EXAMINED and all(path.is_absolute() for path in examined):
        keep("linked", key, _to_keep(found, files))
    return found


def _to_keep(found: LinkInfo, files: list[tuple[str, Signature | None]]) -> object:
    return {
        "evidence": [found.evidence.abis, found.evidence.because] if found.evidence else None,
        "is_static": found.is_static,
        "holds_mpi": found.holds_mpi,
        "asan": str(found.asan) if found.asan else None,
        "files": files,
    }


def _recalled(stored: object) -> LinkInfo | None:
    """Return the cached result if it is still valid."""
    if not isinstance(stored, dict):
        return None
    try:
        if any(signature(path) != found for path, found in stored["files"]):
            return None
        evidence = None
        if stored["evidence"] is not None:
            abis, because = stored["evidence"]
            evidence = Evidence(tuple(abi for abi in ABIS if abi in abis), str(because))
        asan = Path(stored["asan"]) if stored["asan"] else None
        return LinkInfo(evidence, bool(stored["is_static"]), bool(stored["holds_mpi"]), asan)
    except (KeyError, TypeError, ValueError):
        return None


def _linked(program: Path, environment: Mapping[str, str], examined: set[Path]) -> LinkInfo:
    try:
        binary = read_binary(program)
    except OSError:  # it may be executed all the same
        return LinkInfo(None)
    if binary is None:
        raise RunError(f"{program} is damaged, or no program of this machine (ELF); build it again")
    if binary.is_static:
        return LinkInfo(None, is_static=True, holds_mpi=_mentions(program, b"MPI_Init"))
    found: dict[Abi, NeededLibrary] = {}
    unknown: list[NeededLibrary] = []
    asan: Path | None = None
    for library in needed_libraries(binary, environment, stop=is_mpi, examined=examined):
        abi = abi_of(library.name)
        if abi is not None:
            found.setdefault(abi, library)
        elif is_mpi(library.name):
            unknown.append(library)
        elif is_asan(library.name):
            asan = asan or library.file
    if len(found) > 1:
        asks = " and ".join(f"{library.name} (for {library.by.name})" for library in found.values())
        raise RunError(f"{program} needs two MPIs, {asks}; build all of it with one")
    if unknown:
        known = ", ".join(SONAMES.values())
        raise RunError(f"{program} needs {unknown[0].name}, an MPI that palmette has no library for (it has {known})")
    for abi, library in found.items():
        through = "" if library.by == program else f" through {library.by.name}"
        return LinkInfo(Evidence((abi,), f"{program.name} needs {library.name}{through}"), asan=asan)
    return LinkInfo(None, holds_mpi=defines(program, "MPI_Init"), asan=asan)


def _mentions(path: Path, text: bytes) -> bool:
    """Return whether the file holds `text`: an MPI does in its messages, even with its symbols stripped."""
    import mmap

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        return contents.find(text) >= 0


def linked_itself(program: Program, environment: Mapping[str, str]) -> LinkInfo:
    """Return what the program itself is linked with.

    Raises RunError as `linked` does, and for a program with its MPI linked in statically.
    """
    found = linked(program.executed, environment)
    if found.holds_mpi and found.is_static:
        raise RunError(
            f"{program.executed} is linked statically, and nothing can be preloaded; link it with the shared libmpi"
        )
    if found.holds_mpi:
        raise RunError(f"{program.executed} holds its MPI in itself, linked statically; link it with the shared libmpi")
    return found


def linked_behind(
    program: Program, arguments: Sequence[str], environment: Mapping[str, str], directory: Path
) -> LinkInfo | None:
    """Return what the first MPI program among the arguments of a wrapper is linked with: `numactl -m 0 ./app`.

    None when no argument is such a program. Raises RunError as `linked` does.
    """
    for word in arguments:
        path = _locate(word, environment, directory)
        if path is None or path.absolute() == program.path or not _is_elf(path):
            continue
        found = linked(path.absolute(), environment)
        if found.evidence is not None:
            return found
    return None


def check_privileges(program: Program) -> None:
    """Raise RunError for a program that runs with more rights than its caller: the loader then ignores LD_PRELOAD."""
    path = program.executed
    mode = path.stat().st_mode
    if mode & stat.S_ISUID or (mode & stat.S_ISGID and mode & stat.S_IXGRP):
        raise RunError(
            f"{path} is set-user-ID or set-group-ID, so that the loader ignores preloads; run a copy without"
        )
    try:
        capabilities = os.getxattr(path, "security.capability")
    except OSError:
        return
    if capabilities:
        raise RunError(f"{path} has file capabilities, so that the loader ignores preloads; run a copy without them")


def _locate(word: str, environment: Mapping[str, str], directory: Path) -> Path | None:
    """Return the file that `word` names: a path, a command of PATH, or else a file of the working directory."""
    if not word or "\0" in word:
        return None
    local = directory / word
    if "/" not in word:
        found = shutil.which(word, path=environment.get("PATH", os.defpath))
        if found is not None:
            return Path(found)
    try:
        return local if local.is_file() and os.access(local, os.X_OK) else None
    except OSError:  # a word far too long to be a file's name
        return None


def _executed(path: Path, environment: Mapping[str, str]) -> Path:
    """Return the ELF file that runs when `path` is started, through `#!` lines; `path` where it can't be read."""
    at = path
    for _ in range(MAX_INTERPRETERS):
        try:
            with at.open("rb") as file:
                head = file.read(512)
        except OSError:
            return at.absolute()
        if is_program(head):
            # A name of its own for $ORIGIN, which the loader takes from the file behind links.
            return at.absolute()
        at = _interpreter(at, head, environment)
    raise RunError(f"{path}: more than {MAX_INTERPRETERS} interpreters stand behind it; start the last one yourself")


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_program(file.read(64))
    except OSError:
        return False


def _interpreter(path: Path, head: bytes, environment: Mapping[str, str]) -> Path:
    """Return what runs the script `path` that begins with `head`."""
    if head and not head.startswith((b"#!", MAGIC)) and b"\0" not in head:
        return SHELL
    words = head[2:].split(b"\n")[0].decode(errors="replace").split() if head.startswith(b"#!") else []
    if not words:
        raise RunError(f"{path} is neither a program of this machine (ELF) nor a script that begins with #!")
    if Path(words[0]).name == "env":
        # `env -S python3 -u` and `env python3`; assignments may stand before the command.
        command = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        found = shutil.which(command, path=environment.get("PATH", os.defpath)) if command else None
    else:
        found = shutil.which(words[0])
    if found is None:
        raise RunError(f"{path}: its interpreter {' '.join(words)} isn't there; correct its first line")
    return Path(found)
