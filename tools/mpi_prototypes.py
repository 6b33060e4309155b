"""Prototypes of MPI functions, from an MPI's own mpi.h, and the list of those that the preload library wraps."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mpi_functions import COLLECTIVE, HOOK, read_functions, read_names


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


class FunctionNames(NamedTuple):
    """Names from the table of MPI's functions: hooks with their `MPI_`, collectives without it."""

    hooks: tuple[str, ...]
    collectives: tuple[str, ...]


def read_list(path: Path) -> FunctionNames:
    """Return what the table names. Raises ValueError with the line that can't be meant."""
    read_functions(path)
    collectives = (name.removeprefix("MPI_") for name in read_names(path, *COLLECTIVE))
    return FunctionNames(tuple(read_names(path, HOOK)), tuple(collectives))


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
