"""The program of a command line: which file it is, which MPI it uses, and whether something can be preloaded into it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palmette.run.abi import SONAMES, Abi, Evidence, abi_of, is_mpi
from palmette.run.elf import Binary, defines, read_binary
from palmette.run.errors import RunError
from palmette.run.libraries import Needed, needed_libraries

MAX_INTERPRETERS = 4
"""How far `#!` lines are followed, as far as Linux does."""


@dataclass(frozen=True)
class Program:
    """A word of the command line, the file that it starts, and what the kernel loads for that.

    `path` is the file itself, `binary` what is executed: its interpreter where the file is a script.
    """

    word: str
    path: Path
    binary: Binary

    @property
    def is_script(self) -> bool:
        """Whether an interpreter runs the file."""
        return self.path != self.binary.path


def find_program(word: str, environment: Mapping[str, str], directory: Path) -> Program:
    """Return the program that `word` starts in `directory`. Raises RunError when there is none that can be looked into."""
    path = _locate(word, environment, directory)
    if path is None:
        raise RunError(f"{word}: no such program here; correct the name, or say --abi if it is only on the other hosts")
    return Program(word, path, _executed(path, environment))


def mpi_of(program: Program, environment: Mapping[str, str]) -> Evidence | None:
    """Return the ABI of the MPI that `program` is linked with, by itself or through a library; None without any.

    Raises RunError for a program that can't be served: linked statically, with two MPIs, or with one of an unknown ABI.
    """
    binary = program.binary
    if binary.is_static:
        raise RunError(
            f"{binary.path} is linked statically, and nothing can be preloaded; link it with the shared libmpi"
        )
    found: dict[Abi, Needed] = {}
    unknown: list[Needed] = []
    for library in needed_libraries(binary, environment, stop=is_mpi):
        abi = abi_of(library.name)
        if abi is not None:
            found.setdefault(abi, library)
        elif is_mpi(library.name):
            unknown.append(library)
    if len(found) > 1:
        asks = " and ".join(f"{library.name} (for {library.by.name})" for library in found.values())
        raise RunError(f"{binary.path} needs two MPIs, {asks}; build all of it with one")
    if unknown:
        known = ", ".join(SONAMES.values())
        raise RunError(
            f"{binary.path} needs {unknown[0].name}, an MPI that palmette has no library for (it has {known})"
        )
    for abi, library in found.items():
        through = "" if library.by == binary.path else f" through {library.by.name}"
        return Evidence(abi, f"{binary.path.name} needs {library.name}{through}")
    if defines(binary.path, "MPI_Init"):
        raise RunError(f"{binary.path} holds its MPI in itself, linked statically; link it with the shared libmpi")
    return None


def mpi_behind(
    program: Program, arguments: Sequence[str], environment: Mapping[str, str], directory: Path
) -> Evidence | None:
    """Return the ABI of the first program among the arguments of a wrapper: `numactl -m 0 ./app`.

    None when no argument is a program that is linked with MPI. Raises RunError as `mpi_of` does.
    """
    for word in arguments:
        path = _locate(word, environment, directory)
        binary = _binary(path) if path is not None else None
        if path is None or binary is None or binary.is_static or path == program.path:
            continue
        evidence = mpi_of(Program(word, path, binary), environment)
        if evidence is not None:
            return evidence
    return None


def check_privileges(program: Program) -> None:
    """Raise RunError for a program that runs with more rights than its caller: the loader then ignores LD_PRELOAD."""
    path = program.binary.path
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
    beside = directory / word
    if "/" not in word:
        found = shutil.which(word, path=environment.get("PATH", os.defpath))
        if found is not None:
            return Path(found)
    try:
        return beside if beside.is_file() and os.access(beside, os.X_OK) else None
    except OSError:  # a word far too long to be a file's name
        return None


def _executed(path: Path, environment: Mapping[str, str]) -> Binary:
    """Return the ELF file that runs when `path` is started, through `#!` lines."""
    at = path
    for _ in range(MAX_INTERPRETERS):
        binary = _binary(at)
        if binary is not None:
            return binary
        at = _interpreter(at, environment)
    raise RunError(f"{path}: more than {MAX_INTERPRETERS} interpreters stand behind it; start the last one yourself")


def _binary(path: Path) -> Binary | None:
    try:
        # A name of its own for $ORIGIN, which the loader takes from the file behind links.
        return read_binary(path.absolute())
    except OSError:
        return None


def _interpreter(path: Path, environment: Mapping[str, str]) -> Path:
    try:
        with path.open("rb") as file:
            first = file.readline(512)
    except OSError as error:
        raise RunError(f"{path} can't be read ({error.strerror}), so its MPI is unknown; say --abi") from None
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
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
