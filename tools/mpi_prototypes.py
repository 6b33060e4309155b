"""Prototypes of MPI functions, from an MPI's own mpi.h, and the list of those that the preload library wraps."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter: its declaration, its name, and its type with `[]` written as `*`."""

    declared: str
    name: str
    type: str


class Prototype(NamedTuple):
    """One C function that returns int."""

    name: str
    parameters: tuple[Parameter, ...]

    @property
    def declared(self) -> str:
        """The parameter list, as it stands between the parentheses."""
        return ", ".join(parameter.declared for parameter in self.parameters)

    @property
    def arguments(self) -> str:
        """The names of the parameters, to pass them on."""
        return ", ".join(parameter.name for parameter in self.parameters)


class Listed(NamedTuple):
    """Names from functions.txt: hooks with their `MPI_`, collectives without it."""

    hooks: tuple[str, ...]
    collectives: tuple[str, ...]


def read_list(path: Path) -> Listed:
    """Return what functions.txt names. Raises ValueError with the line that says neither `hook` nor `collective`."""
    names: dict[str, list[str]] = {"hook": [], "collective": []}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in names:
            raise ValueError(f"{path}:{number}: '{line}' is neither `hook MPI_NAME` nor `collective NAME`")
        names[words[0]].append(words[1])
    return Listed(tuple(names["hook"]), tuple(names["collective"]))


def preprocessed_mpi_h(compiler: list[str]) -> str:
    """Return mpi.h as the compiler, with its -I and -D, sees it."""
    return subprocess.run(
        [*compiler, "-E", "-P", "-x", "c", "-"],
        input="#include <mpi.h>\n",
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout


def declared_functions(text: str, names: Iterable[str]) -> list[Prototype]:
    """Return the prototypes of `names` in the text of a preprocessed mpi.h, in the order of `names`."""
    found = []
    for name in names:
        match = re.search(rf"\bint\s+{name}\s*\(([^;]*?)\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)*;", text, re.DOTALL)
        if match:
            plain = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", " ".join(match.group(1).split())).strip()
            found.append(Prototype(name, _parameters(plain)))
    return found


def _parameters(text: str) -> tuple[Parameter, ...]:
    if text in ("", "void"):
        return ()
    return tuple(_parameter(part.strip()) for part in text.split(","))


def _parameter(declared: str) -> Parameter:
    without_sizes, arrays = re.subn(r"\[[^]]*\]", "", declared)
    name = re.findall(r"\w+", without_sizes)[-1]
    if lists := re.search(r"\[\]\s*\[(\d+)\]", declared):  # a list of arrays, as MPI_Group_range_incl takes
        return Parameter(declared, name, f"int(*)[{lists[1]}]")
    bare = re.sub(rf"\b{name}\b\s*$", "", without_sizes.strip()).strip() + "*" * arrays
    return Parameter(declared, name, re.sub(r"\s*\*\s*", "*", bare))
